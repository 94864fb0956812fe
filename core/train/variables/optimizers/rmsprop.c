/* rmsprop: rms += (g^2 - rms)(1 - decay); mom = momentum * mom + rate * g / sqrt(rms + epsilon);
 * w -= mom. Centered: mean += (g - mean)(1 - decay), and the root is of rms - mean^2 + epsilon.
 *
 * As in TensorFlow epsilon is inside the root and rms starts at 1. The mean has its place between
 * rms and momentum in a checkpoint, and is not there at all when not centered.
 */
#include "kernels/rule.h"

struct rmsprop_constants {
    float rate, decay, momentum, epsilon;
};

RULE_OF_TWO(rmsprop, 2, 3) /* rms, the mean where centered (form 1), mom */
{
    const float rms = slot[0] + (g * g - slot[0]) * (1.0f - k->decay);
    float variance = rms;
    slot[0] = rms;
    if (form == 1) {
        const float mean = slot[1] + (g - slot[1]) * (1.0f - k->decay);
        slot[1] = mean;
        variance = rms - mean * mean;
    }
    const float momentum =
        slot[form + 1] * k->momentum + k->rate * g / sqrtf(variance + k->epsilon);
    slot[form + 1] = momentum;
    *value -= momentum;
}

#ifndef RULE_ONLY
#include "core/train/variables/optimizer.h"

struct rmsprop {
    struct schedule_spec learning_rate;
    double decay;    /* kept share of rms and mean per step */
    double momentum; /* kept share of the last step; 0 for none, its slot is there all the same */
    double epsilon;  /* inside the root */
    bool centered;   /* keep the mean too */
};

static const struct field fields[] = {
    LEARNING_RATE(struct rmsprop, learning_rate, NULL),
    FIELD_OF("decay", FLOAT, struct rmsprop, decay, .fallback = "0.9", .min = 0, .max = 1,
             .help = "decay of the mean square"),
    FIELD_OF("momentum", FLOAT, struct rmsprop, momentum, .fallback = "0.0", .min = 0, .max = 1,
             .help = "fraction of the previous step that is added"),
    /* the mean square of a weight without gradients sinks to zero */
    FIELD_OF("epsilon", FLOAT, struct rmsprop, epsilon, .fallback = "1e-10", .min = 1e-30,
             .max = 1e30, .help = "added to the mean square under the root"),
    FIELD_OF("centered", BOOL, struct rmsprop, centered, .fallback = "false",
             .help = "normalize by the variance instead of the mean square (centered)"),
    {0},
};

static float one(const void *attributes)
{
    return 1.0f;
}

/* Names go by position: RMSProp_1 is the mean where there is one, else the momentum. */
static int form(const void *attributes)
{
    const struct rmsprop *a = attributes;
    return a->centered;
}

static void derive(const void *attributes, const struct juncture *now, void *ret)
{
    const struct rmsprop *a = attributes;
    struct rmsprop_constants *k = ret;
    *k = (struct rmsprop_constants){
        .rate = now->rate,
        .decay = (float)a->decay,
        .momentum = (float)a->momentum,
        .epsilon = (float)a->epsilon,
    };
}

const struct optimizer optimizer_rmsprop = {
    .object = {.name = "rmsprop",
               .summary = "gradients divided by the root of their running mean square",
               .fields = fields,
               .size = sizeof(struct rmsprop)},
    .rule = &rule_rmsprop,
    .slot = {{"RMSProp", one}, {"RMSProp_1"}, {"RMSProp_2"}},
    .form = form,
    .derive = derive,
};

#endif
