/* schedule_cosine.c - the cosine family of TensorFlow 1.x, computed in double.
 *
 * All fall from learning_rate to about alpha * learning_rate along half a cosine (or several, for
 * num_periods above 0.5) and stay there from decay_steps on; only restarts begin anew. With
 * C(p) = (1 + cos(pi p)) / 2 and s = min(step, D):
 *     cosine_decay         rate * ((1 - alpha) * C(s / D) + alpha)
 *     cosine_decay_restarts  the same over period i, whose first rate is m_mul^i times the first
 *     linear_cosine_decay  rate * ((alpha + (D - s) / D) * C(2 num_periods s / D) + beta)
 *     noisy_...            with a normal draw added to (D - s) / D
 */
#include <math.h>

#include "core/base/random.h"
#include "core/train/variables/schedule_list.h"

struct cosine {
    double learning_rate;
    int64_t decay_steps;
    double alpha;
};

struct restarts {
    double learning_rate;
    int64_t first_decay_steps;  /* length of period 0 */
    double t_mul, m_mul, alpha; /* growth of length and of height per period; the floor */
};

struct linear_cosine {
    double learning_rate;
    int64_t decay_steps; /* D */
    double num_periods, alpha, beta;
};

struct noisy {
    struct linear_cosine linear;             /* first: its fields are at the same offsets */
    double initial_variance, variance_decay; /* variance: initial / (1 + s)^decay */
    int64_t noise_seed;
};

static const struct field cosine_fields[] = {
    {.name = "learning_rate",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct cosine, learning_rate),
     .min = 0,
     .max = RATE_MAX,
     .help = "the rate of step 0"},
    {.name = "decay_steps",
     .type = FIELD_INT,
     .offset = offsetof(struct cosine, decay_steps),
     .min = 1,
     .max = STEPS_MAX,
     .help = "the step at which the lowest rate is reached"},
    {.name = "alpha",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct cosine, alpha),
     .fallback = "0.0",
     .min = 0,
     .max = 1,
     .help = "the lowest rate, as a share of learning_rate"},
    {0},
};

static const struct field restarts_fields[] = {
    {.name = "learning_rate",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct restarts, learning_rate),
     .min = 0,
     .max = RATE_MAX,
     .help = "the rate of step 0"},
    {.name = "first_decay_steps",
     .type = FIELD_INT,
     .offset = offsetof(struct restarts, first_decay_steps),
     .min = 1,
     .max = STEPS_MAX,
     .help = "length of the first period"},
    {.name = "t_mul",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct restarts, t_mul),
     .fallback = "2.0",
     .min = 1, /* shorter and shorter periods would end at a step beyond which there is no rate */
     .max = 1000,
     .help = "each period is so many times as long as the one before"},
    {.name = "m_mul",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct restarts, m_mul),
     .fallback = "1.0",
     .min = 0,
     .max = 1000,
     .help = "each period starts from so many times the rate of the one before"},
    {.name = "alpha",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct restarts, alpha),
     .fallback = "0.0",
     .min = 0,
     .max = 1,
     .help = "the lowest rate, as a share of learning_rate"},
    {0},
};

static const struct field linear_fields[] = {
    {.name = "learning_rate",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct linear_cosine, learning_rate),
     .min = 0,
     .max = RATE_MAX,
     .help = "the rate that everything is a share of"},
    {.name = "decay_steps",
     .type = FIELD_INT,
     .offset = offsetof(struct linear_cosine, decay_steps),
     .min = 1,
     .max = STEPS_MAX,
     .help = "the step at which the linear part reaches 0"},
    {.name = "num_periods",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct linear_cosine, num_periods),
     .fallback = "0.5",
     .min = 0,
     .max = 1000,
     .help = "periods of the cosine in decay_steps"},
    {.name = "alpha",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct linear_cosine, alpha),
     .fallback = "0.0",
     .min = 0,
     .max = 1,
     .help = "added to the linear part"},
    {.name = "beta",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct linear_cosine, beta),
     .fallback = "0.001",
     .min = 0,
     .max = 1,
     .help = "added to the product, so that the rate never reaches 0"},
    {0},
};

static const struct field noisy_fields[] = {
    {.name = "learning_rate",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct noisy, linear.learning_rate),
     .min = 0,
     .max = RATE_MAX,
     .help = "the rate that everything is a share of"},
    {.name = "decay_steps",
     .type = FIELD_INT,
     .offset = offsetof(struct noisy, linear.decay_steps),
     .min = 1,
     .max = STEPS_MAX,
     .help = "the step at which the linear part reaches 0"},
    {.name = "num_periods",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct noisy, linear.num_periods),
     .fallback = "0.5",
     .min = 0,
     .max = 1000,
     .help = "periods of the cosine in decay_steps"},
    {.name = "alpha",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct noisy, linear.alpha),
     .fallback = "0.0",
     .min = 0,
     .max = 1,
     .help = "added to the linear part"},
    {.name = "beta",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct noisy, linear.beta),
     .fallback = "0.001",
     .min = 0,
     .max = 1,
     .help = "added to the product, so that the rate does not stay at 0"},
    {.name = "initial_variance",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct noisy, initial_variance),
     .fallback = "1.0",
     .min = 0,
     .max = 1e6,
     .help = "variance of the noise at step 0"},
    {.name = "variance_decay",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct noisy, variance_decay),
     .fallback = "0.55",
     .min = 0,
     .max = 100,
     .help = "the variance at a step is initial_variance / (1 + step) ^ variance_decay"},
    {.name = "noise_seed",
     .type = FIELD_INT,
     .offset = offsetof(struct noisy, noise_seed),
     .fallback = "0",
     .min = 0,
     .max = STEPS_MAX,
     .help = "which noise: the same seed gives the same rates in every run and on every task"},
    {0},
};

/* Half a cosine from 1 at p = 0 to 0 at p = 1. */
static double half_cosine(double p)
{
    return 0.5 * (1.0 + cos(M_PI * p));
}

static double cosine_rate(const void *attributes, int64_t step)
{
    const struct cosine *a = attributes;
    const double p = fmin((double)step / (double)a->decay_steps, 1.0);
    return a->learning_rate * ((1.0 - a->alpha) * half_cosine(p) + a->alpha);
}

/* Period i is t_mul^i times as long as the first, so it begins at (1 - t_mul^i) / (1 - t_mul) of
 * the first one's length. */
static double restarts_rate(const void *attributes, int64_t step)
{
    const struct restarts *a = attributes;
    double f = (double)step / (double)a->first_decay_steps, period;
    if (a->t_mul == 1.0) {
        period = floor(f);
        f -= period;
    } else {
        /* the quotient of two logarithms may lie one rounding below the whole number it stands for
         */
        period = floor(log(1.0 - f * (1.0 - a->t_mul)) / log(a->t_mul) + 1e-9);
        const double growth = pow(a->t_mul, period);
        f = (f - (1.0 - growth) / (1.0 - a->t_mul)) / growth;
    }
    const double top = pow(a->m_mul, period);
    return a->learning_rate * ((1.0 - a->alpha) * top * half_cosine(f) + a->alpha);
}

/* noise is added to the linear part, which goes from 1 to 0 */
static double linear_cosine(const struct linear_cosine *a, double step, double noise)
{
    const double end = (double)a->decay_steps;
    const double linear = (end - step) / end + noise;
    const double cosine = half_cosine(2.0 * a->num_periods * step / end);
    return a->learning_rate * ((a->alpha + linear) * cosine + a->beta);
}

static double linear_cosine_rate(const void *attributes, int64_t step)
{
    const struct linear_cosine *a = attributes;
    return linear_cosine(a, fmin((double)step, (double)a->decay_steps), 0.0);
}

/* The noise is a function of the step, not drawn from a state, so that all tasks and a restarted
 * run see the same rates. */
static double noisy_rate(const void *attributes, int64_t step)
{
    const struct noisy *a = attributes;
    const double s = fmin((double)step, (double)a->linear.decay_steps);
    const double variance = a->initial_variance / pow(1.0 + s, a->variance_decay);
    const uint64_t key = random_key((uint64_t)a->noise_seed, "noisy_linear_cosine_decay");
    return linear_cosine(&a->linear, s, sqrt(variance) * random_normal(key, (uint64_t)step));
}

const struct schedule schedule_cosine_decay = {
    .object = {.name = "cosine_decay",
               .summary = "down half a cosine in decay_steps",
               .fields = cosine_fields,
               .size = sizeof(struct cosine)},
    .rate = cosine_rate,
};

const struct schedule schedule_cosine_decay_restarts = {
    .object = {.name = "cosine_decay_restarts",
               .summary = "half cosines one after the other, each t_mul times as long as the last",
               .fields = restarts_fields,
               .size = sizeof(struct restarts)},
    .rate = restarts_rate,
};

const struct schedule schedule_linear_cosine_decay = {
    .object = {.name = "linear_cosine_decay",
               .summary = "a straight line times a cosine",
               .fields = linear_fields,
               .size = sizeof(struct linear_cosine)},
    .rate = linear_cosine_rate,
};

const struct schedule schedule_noisy_linear_cosine_decay = {
    .object = {.name = "noisy_linear_cosine_decay",
               .summary = "linear_cosine_decay with noise that shrinks from step to step",
               .fields = noisy_fields,
               .size = sizeof(struct noisy)},
    .rate = noisy_rate,
};
