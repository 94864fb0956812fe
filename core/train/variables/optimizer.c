/* optimizer.c - common to all optimizers: the learning rate and clipping.
 *
 * Specs have clipping within the optimizer, as it is part of the update; but workers do it, as only
 * they have a whole gradient:
 *     value        each number into min .. max
 *     norm         each variable: g * c / max(|g|, c)
 *     global_norm  all variables: g * c / max(|all g|, c)
 */
#include "core/train/variables/optimizer.h"

#include <math.h>

enum { PATH_BYTES_MAX = 256 };

struct clip_value {
    double min, max;
};

struct clip_norm {
    double norm;
};

static const struct field value_fields[] = {
    {.name = "min",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct clip_value, min),
     .min = -1e30,
     .max = 1e30,
     .help = "lower bound"},
    {.name = "max",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct clip_value, max),
     .min = -1e30,
     .max = 1e30,
     .help = "upper bound"},
    {0},
};

static const struct field norm_fields[] = {
    {.name = "norm",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct clip_norm, norm),
     .min = 1e-30, /* zero would make every gradient zero, or NaN */
     .max = 1e30,
     .help = "largest norm that passes unchanged"},
    {0},
};

/* The descriptor of a kind of clipping: how its attributes become a struct clip. */
struct clip_rule {
    struct object object;
    struct clip (*make)(const void *attributes);
};

static struct clip make_value(const void *attributes)
{
    const struct clip_value *a = attributes;
    return (struct clip){.type = CLIP_VALUE, .low = a->min, .high = a->max};
}

static struct clip make_norm(const void *attributes)
{
    const struct clip_norm *a = attributes;
    return (struct clip){.type = CLIP_NORM, .norm = a->norm};
}

static struct clip make_global_norm(const void *attributes)
{
    const struct clip_norm *a = attributes;
    return (struct clip){.type = CLIP_GLOBAL_NORM, .norm = a->norm};
}

static const struct clip_rule rule_value = {
    .object = {.name = "value",
               .summary = "clips every element of a gradient to min .. max",
               .fields = value_fields,
               .size = sizeof(struct clip_value)},
    .make = make_value,
};

static const struct clip_rule rule_norm = {
    .object = {.name = "norm",
               .summary = "scales each variable's gradient down to the given norm",
               .fields = norm_fields,
               .size = sizeof(struct clip_norm)},
    .make = make_norm,
};

static const struct clip_rule rule_global_norm = {
    .object = {.name = "global_norm",
               .summary = "scales all gradients together down to the given global norm; a row of a "
                          "table counts once, whatever the batch has of it (TensorFlow's norm "
                          "counts each place of tf.gather)",
               .fields = norm_fields,
               .size = sizeof(struct clip_norm)},
    .make = make_global_norm,
};

static const struct kind clip_table[] = {
    {&rule_value.object, &rule_value},
    {&rule_norm.object, &rule_norm},
    {&rule_global_norm.object, &rule_global_norm},
};

static const struct kind *clip_at(int index)
{
    return index < (int)(sizeof clip_table / sizeof clip_table[0]) ? &clip_table[index] : NULL;
}

static const struct field spec_fields[] = {
    {.name = "match",
     .type = FIELD_STRING,
     .offset = offsetof(struct optimizer_spec, match),
     .fallback = "\"*\"",
     .help = "variables it updates: a name, or a pattern such as \"wide/*\"; the first matching "
             "optimizer is used"},
    {.name = "clip",
     .type = FIELD_VARIANT,
     .offset = offsetof(struct optimizer_spec, clip),
     .fallback = "null",
     .kinds = &clip_kinds,
     .help = "clipping of each worker's gradient, before it is pushed; null: none"},
    {0},
};

const struct optimizer *optimizer_of(const struct optimizer_spec *spec)
{
    return spec->optimizer.kind->descriptor;
}

const struct schedule_spec *optimizer_learning_rate(const struct optimizer_spec *spec)
{
    return spec->optimizer.attributes; /* attributes of all optimizers begin with it */
}

struct clip optimizer_clip(const struct optimizer_spec *spec)
{
    if (!spec->clip.kind) return (struct clip){.type = CLIP_NONE};
    const struct clip_rule *rule = spec->clip.kind->descriptor;
    return rule->make(spec->clip.attributes);
}

err optimizer_check(const struct optimizer_spec *spec, const char *path)
{
    char learning_rate[PATH_BYTES_MAX];
    snprintf(learning_rate, sizeof learning_rate, "%s.learning_rate", path);
    TRY(schedule_check(optimizer_learning_rate(spec), learning_rate));
    const struct clip clip = optimizer_clip(spec);
    if (clip.type != CLIP_VALUE || clip.low <= clip.high) return OK;
    return fail(ERR_INPUT, "%s.clip.max: expected at least min (%g), got %g", path, clip.low,
                clip.high);
}

/* The factor that reduces a gradient of this norm to the limit; 1 if it is within the limit, NaN
 * for a norm that is not finite, so that the failure of the step is noticed. */
static float shrink(double norm, double limit)
{
    if (!isfinite(norm)) return NAN;
    return norm > limit ? (float)(limit / norm) : 1.0f;
}

int optimizer_form(const struct optimizer *optimizer, const void *attributes)
{
    return optimizer->form ? optimizer->form(attributes) : 0;
}

int optimizer_slots(const struct optimizer *optimizer, const void *attributes)
{
    return optimizer->rule->slots[optimizer_form(optimizer, attributes)];
}

float optimizer_initial(const struct optimizer *optimizer, const void *attributes, int slot)
{
    return optimizer->slot[slot].initial ? optimizer->slot[slot].initial(attributes) : 0.0f;
}

enum { SUMS_AT_ONCE = 256 };

/* Sums the squares of the first SUMS_AT_ONCE gradients at most. Returns how many were summed. */
static int sum_squares(struct device *device, float *const gradients[], const int64_t sizes[],
                       int count, double *ret_squares)
{
    struct summed of[SUMS_AT_ONCE];
    const int some = count < SUMS_AT_ONCE ? count : SUMS_AT_ONCE;
    for (int i = 0; i < some; i++) of[i] = (struct summed){gradients[i], sizes[i], SUM_SQUARE};
    device->kernels->sums(device, of, some, ret_squares);
    return some;
}

double gradients_norm(struct device *device, float *const gradients[], const int64_t sizes[],
                      int count)
{
    double total = 0.0, squares[SUMS_AT_ONCE];
    for (int first = 0; first < count; first += SUMS_AT_ONCE) {
        const int some =
            sum_squares(device, gradients + first, sizes + first, count - first, squares);
        for (int i = 0; i < some; i++) total += squares[i];
    }
    return sqrt(total);
}

/* Two passes: the global norm is needed before scaling. */
static void clip_all_together(double limit, struct device *device, float *const gradients[],
                              const int64_t sizes[], int count, double *ret_norm)
{
    *ret_norm = gradients_norm(device, gradients, sizes, count);
    const float factor = shrink(*ret_norm, limit);
    if (factor == 1.0f) return;
    for (int i = 0; i < count; i++) device->kernels->scale(device, gradients[i], factor, sizes[i]);
}

static void clip_each(double limit, struct device *device, float *const gradients[],
                      const int64_t sizes[], int count)
{
    double squares[SUMS_AT_ONCE];
    for (int first = 0; first < count; first += SUMS_AT_ONCE) {
        const int some =
            sum_squares(device, gradients + first, sizes + first, count - first, squares);
        for (int i = 0; i < some; i++) {
            const float factor = shrink(sqrt(squares[i]), limit);
            if (factor != 1.0f)
                device->kernels->scale(device, gradients[first + i], factor, sizes[first + i]);
        }
    }
}

void clip_gradients(const struct clip *clip, struct device *device, float *const gradients[],
                    const int64_t sizes[], int count, double *ret_norm)
{
    *ret_norm = 0.0;
    if (clip->type == CLIP_GLOBAL_NORM)
        clip_all_together(clip->norm, device, gradients, sizes, count, ret_norm);
    else if (clip->type == CLIP_NORM)
        clip_each(clip->norm, device, gradients, sizes, count);
    else if (clip->type == CLIP_VALUE)
        for (int i = 0; i < count; i++)
            device->kernels->clamp(device, gradients[i], (float)clip->low, (float)clip->high,
                                   sizes[i]);
}

const struct kinds clip_kinds = {.key = "type", .noun = "clipping", .at = clip_at};

const struct object optimizer_spec_object = {.name = "optimizer",
                                             .summary = "how gradients change the variables",
                                             .fields = spec_fields,
                                             .size = sizeof(struct optimizer_spec)};
