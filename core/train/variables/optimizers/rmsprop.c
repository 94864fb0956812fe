/* rmsprop: rms += (g^2 - rms)(1 - decay); mom = momentum * mom + rate * g / sqrt(rms + epsilon);
 * w -= mom. Centered: mean += (g - mean)(1 - decay), and the root is of rms - mean^2 + epsilon.
 *
 * As in TensorFlow epsilon is inside the root and rms starts at 1. The mean has its place between
 * rms and momentum in a checkpoint, and is not there at all when not centered.
 */
#include "core/train/variables/optimizer.h"

struct rmsprop {
    struct schedule_spec learning_rate;
    double decay;    /* kept share of rms and mean per step */
    double momentum; /* kept share of the last step; 0 for none, its slot is there all the same */
    double epsilon;  /* inside the root */
    bool centered;   /* keep the mean too */
};

static const struct field fields[] = {
    {.name = "learning_rate",
     .type = FIELD_VARIANT,
     .offset = offsetof(struct rmsprop, learning_rate),
     .object = &schedule_spec_object,
     .kinds = &schedule_kinds,
     .help = "step size: a number, or a schedule"},
    {.name = "decay",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct rmsprop, decay),
     .fallback = "0.9",
     .min = 0,
     .max = 1,
     .help = "share of the mean square that is kept from step to step"},
    {.name = "momentum",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct rmsprop, momentum),
     .fallback = "0.0",
     .min = 0,
     .max = 1,
     .help = "share of the last step that is made again"},
    {.name = "epsilon",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct rmsprop, epsilon),
     .fallback = "1e-10",
     .min = 1e-30, /* the mean square of a weight without gradients sinks to zero */
     .max = 1e30,
     .help = "added to the mean square under the root"},
    {.name = "centered",
     .type = FIELD_BOOL,
     .offset = offsetof(struct rmsprop, centered),
     .fallback = "false",
     .help = "divide by the root of the variance instead of the mean square"},
    {0},
};

static float zero(const void *attributes)
{
    return 0.0f;
}

static float one(const void *attributes)
{
    return 1.0f;
}

/* Names go by position: RMSProp_1 is the mean where there is one, else the momentum. */
static int slots_used(const void *attributes)
{
    const struct rmsprop *a = attributes;
    return a->centered ? 3 : 2;
}

static void apply(const void *attributes, struct device *device, const struct update *u)
{
    const struct rmsprop *a = attributes;
    const struct update_rmsprop update = {
        .value = u->value,
        .rms = u->slot[0],
        .mean = a->centered ? u->slot[1] : NULL,
        .momentum = a->centered ? u->slot[2] : u->slot[1],
        .gradient = u->gradient,
        .rate = u->rate,
        .decay = (float)a->decay,
        .momentum_decay = (float)a->momentum,
        .epsilon = (float)a->epsilon,
    };
    device->kernels->update_rmsprop(device, &update, u->n);
}

const struct optimizer optimizer_rmsprop = {
    .object = {.name = "rmsprop",
               .summary = "gradients divided by the root of their running mean square",
               .fields = fields,
               .size = sizeof(struct rmsprop)},
    .slot_count = 3,
    .slot = {{"RMSProp", one}, {"RMSProp_1", zero}, {"RMSProp_2", zero}},
    .slots_used = slots_used,
    .apply = apply,
};
