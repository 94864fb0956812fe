/* noisy_linear_cosine_decay: linear_cosine_decay with a normal draw added to (D - s) / D. */
#include <math.h>

#include "core/base/random.h"
#include "core/train/variables/schedules/decay.h"

struct noisy {
    struct linear_cosine linear;             /* first: its fields are at the same offsets */
    double initial_variance, variance_decay; /* variance: initial / (1 + s)^decay */
    int64_t noise_seed;
};

static const struct field fields[] = {
    FIELD_OF("learning_rate", FLOAT, struct noisy, linear.learning_rate, .min = 0, .max = RATE_MAX,
             .help = "base rate that the schedule scales"),
    DURATION_FIELDS("decay_steps", offsetof(struct noisy, linear.decay_steps), "decay_epochs",
                    offsetof(struct noisy, linear.decay_epochs),
                    "the step at which the linear part reaches 0"),
    FIELD_OF("num_periods", FLOAT, struct noisy, linear.num_periods, .fallback = "0.5", .min = 0,
             .max = 1000, .help = "periods of the cosine in decay_steps"),
    FIELD_OF("alpha", FLOAT, struct noisy, linear.alpha, .fallback = "0.0", .min = 0, .max = 1,
             .help = "added to the linear part"),
    FIELD_OF("beta", FLOAT, struct noisy, linear.beta, .fallback = "0.001", .min = 0, .max = 1,
             .help = "added to the product, so that the rate does not stay at 0"),
    FIELD_OF("initial_variance", FLOAT, struct noisy, initial_variance, .fallback = "1.0", .min = 0,
             .max = 1e6, .help = "variance of the noise at step 0"),
    FIELD_OF("variance_decay", FLOAT, struct noisy, variance_decay, .fallback = "0.55", .min = 0,
             .max = 100,
             .help = "the variance at a step is initial_variance / (1 + step) ^ variance_decay"),
    FIELD_OF(
        "noise_seed", INT, struct noisy, noise_seed, .fallback = "0", .min = 0, .max = STEPS_MAX,
        .help =
            "seed of the noise: the same seed gives the same rates in every run and on every task"),
    {0},
};

/* The noise is a function of the step, not drawn from a state, so that all tasks and a restarted
 * run see the same rates. */
static double rate(const void *attributes, int64_t step)
{
    const struct noisy *a = attributes;
    const double s = fmin((double)step, (double)a->linear.decay_steps);
    const double variance = a->initial_variance / pow(1.0 + s, a->variance_decay);
    const uint64_t key = random_key((uint64_t)a->noise_seed, "noisy_linear_cosine_decay");
    return linear_cosine(&a->linear, s, sqrt(variance) * random_normal(key, (uint64_t)step));
}

const struct schedule schedule_noisy_linear_cosine_decay = {
    .object = {.name = "noisy_linear_cosine_decay",
               .summary = "linear_cosine_decay with noise that shrinks from step to step",
               .fields = fields,
               .size = sizeof(struct noisy)},
    .rate = rate,
    .duration =
        DURATION(struct linear_cosine, decay_steps, decay_epochs), /* which it begins with */
};
