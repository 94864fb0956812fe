/* optimizer.h - how gradients change variables. One constant per file in optimizers/, with the
 * formula (kernels/rule.h).
 *
 * A ps and a single process use the same constants. State in addition to the values: slots (one
 * float per value, same layout) and powers (one float for all variables: Adam's beta powers, which
 * advance with each update applied).
 */
#ifndef CORE_TRAIN_VARIABLES_OPTIMIZER_H
#define CORE_TRAIN_VARIABLES_OPTIMIZER_H

#include "core/base/fields/fields.h"
#include "core/train/variables/schedule.h"
#include "kernels/kernels.h"

enum { POWERS_MAX = 2 };

struct slot {
    const char *name;                         /* as a checkpoint has it: "Adam", "Adam_1" */
    float (*initial)(const void *attributes); /* NULL: 0 */
};

struct power {
    const char *name; /* "beta1_power" */
    float (*factor)(
        const void *attributes); /* initial value, and what it is multiplied by after each update */
};

/* What an update depends on in addition to values and gradients. */
struct juncture {
    float rate;          /* the schedule's rate */
    const float *powers; /* before the update */
    int64_t step;        /* global, before the update */
};

/* The field of the struct schedule_spec learning_rate with which every optimizer's attributes
 * begin. without: its default, NULL if there is no usual rate. */
#define LEARNING_RATE(attributes, member, without)                                                 \
    {                                                                                              \
        .name = "learning_rate", .type = FIELD_VARIANT, .offset = offsetof(attributes, member),    \
        .fallback = without, .object = &schedule_spec_object, .kinds = &schedule_kinds,            \
        .help = "step size: a number, or a schedule"                                               \
    }

struct optimizer {
    struct object object;
    const struct rule *rule;
    int power_count;
    struct slot slot[SLOTS_MAX]; /* the slots of the rule's form, in the order of their names in a
                                    checkpoint */
    struct power power[POWERS_MAX];
    bool sweeps; /* in tables, rows without a gradient change too, as with a gradient of zero */
    const char
        *refuses_decay; /* why weight decay cannot be used with it ("... which %s"); NULL: it can */
    int (*form)(const void *attributes); /* form of the rule; NULL: always 0 */
    /* Computes the rule's constants for this update: at most CONSTANTS_BYTES_MAX. */
    void (*derive)(const void *attributes, const struct juncture *, void *ret);
};
extern const struct kinds optimizer_kinds;                             /* key "type" */
int optimizer_form(const struct optimizer *, const void *attributes);  /* form of the rule */
int optimizer_slots(const struct optimizer *, const void *attributes); /* in use */
float optimizer_initial(const struct optimizer *, const void *attributes, int slot);

/* Clipping is done by the worker on the gradient of its batch, before it is pushed (as with
 * TensorFlow's compute_gradients / apply_gradients, also per worker). The worker has the whole
 * gradient, of all ps, so the global norm is over all variables, whatever their placement; it is
 * summed per variable in creation order, in double. Formulas: tf.clip_by_*. With clipping no part
 * is sent before backward is done. */
enum clip_type { CLIP_NONE, CLIP_VALUE, CLIP_NORM, CLIP_GLOBAL_NORM };
struct clip {
    enum clip_type type; /* NORM: each variable by its own norm */
    double low, high;    /* VALUE */
    double norm;
};
extern const struct kinds clip_kinds;

struct optimizer_spec {
    struct variant optimizer;
    struct variant clip; /* kind NULL: none */
    const char *match;   /* fnmatch pattern on names of variables */
};
extern const struct object optimizer_spec_object;

const struct optimizer *optimizer_of(const struct optimizer_spec *);

const struct schedule_spec *optimizer_learning_rate(const struct optimizer_spec *);
struct clip optimizer_clip(const struct optimizer_spec *);
/* ERR_INPUT: members of the schedule or of the clipping do not fit together; path: of the optimizer
 * in the spec, for the message. */
err optimizer_check(const struct optimizer_spec *, const char *path);
/* Clips gradients of `count` tensors in place. ret_norm: the global norm before clipping, computed
 * for GLOBAL_NORM only, else 0. */
void clip_gradients(const struct clip *, struct device *, float *const gradients[],
                    const int64_t sizes[], int count, double *ret_norm);

/* The global norm. Sums are taken in the order of the list, so that in creation order the result
 * has the same bits whatever the placement. */
double gradients_norm(struct device *, float *const gradients[], const int64_t sizes[], int count);

#endif
