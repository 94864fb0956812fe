/* schedule_plain.c - constants, powers and polynomials.
 *
 * Names, arguments and results are those of TensorFlow 1.x (tf.train.*_decay), computed in double.
 * With p = step / decay_steps, rounded down where staircase is set:
 *     exponential_decay   rate * decay_rate^p
 *     natural_exp_decay   rate * exp(-decay_rate * p)
 *     inverse_time_decay  rate / (1 + decay_rate * p)
 *     polynomial_decay    (rate - end) * (1 - min(step, D) / D)^power + end
 */
#include <math.h>

#include "core/train/variables/schedule_list.h"

enum { PIECES_MAX = 1024 };

/* rate, whatever the step */
struct constant {
    double learning_rate;
};

/* A boundary belongs to the rate before it, as in TensorFlow. */
struct piecewise {
    struct ints boundaries; /* last step of each piece but the last one */
    struct floats values;   /* one more */
};

/* exponential, natural exponential, inverse time */
struct decay {
    double learning_rate;
    int64_t decay_steps; /* of one p */
    double decay_rate;
    bool staircase; /* whole p only */
};

struct polynomial {
    double learning_rate;
    int64_t decay_steps; /* D */
    double end_learning_rate, power;
    bool cycle; /* D becomes the next multiple of itself that step has not passed */
};

static const struct field constant_fields[] = {
    {.name = "learning_rate",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct constant, learning_rate),
     .min = 0,
     .max = RATE_MAX,
     .help = "the rate of every step"},
    {0},
};

static const struct field piecewise_fields[] = {
    {.name = "boundaries",
     .type = FIELD_INTS,
     .offset = offsetof(struct piecewise, boundaries),
     .min = 0,
     .max = STEPS_MAX,
     .count_min = 1,
     .count_max = PIECES_MAX - 1,
     .help = "the last step of each rate but the last, ascending"},
    {.name = "values",
     .type = FIELD_FLOATS,
     .offset = offsetof(struct piecewise, values),
     .min = 0,
     .max = RATE_MAX,
     .count_min = 2,
     .count_max = PIECES_MAX,
     .help = "the rates, one more than boundaries"},
    {0},
};

/* Shared by the three kinds that differ in their formula only. */
static const struct field decay_fields[] = {
    {.name = "learning_rate",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct decay, learning_rate),
     .min = 0,
     .max = RATE_MAX,
     .help = "the rate of step 0"},
    {.name = "decay_steps",
     .type = FIELD_INT,
     .offset = offsetof(struct decay, decay_steps),
     .min = 1,
     .max = STEPS_MAX,
     .help = "steps in which the decay is applied once"},
    {.name = "decay_rate",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct decay, decay_rate),
     .min = 0,
     .max = RATE_MAX,
     .help = "how much the rate falls in decay_steps, see the formula"},
    {.name = "staircase",
     .type = FIELD_BOOL,
     .offset = offsetof(struct decay, staircase),
     .fallback = "false",
     .help = "fall once every decay_steps instead of at every step"},
    {0},
};

static const struct field polynomial_fields[] = {
    {.name = "learning_rate",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct polynomial, learning_rate),
     .min = 0,
     .max = RATE_MAX,
     .help = "the rate of step 0"},
    {.name = "decay_steps",
     .type = FIELD_INT,
     .offset = offsetof(struct polynomial, decay_steps),
     .min = 1,
     .max = STEPS_MAX,
     .help = "the step at which end_learning_rate is reached"},
    {.name = "end_learning_rate",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct polynomial, end_learning_rate),
     .fallback = "0.0001",
     .min = 0,
     .max = RATE_MAX,
     .help = "the rate from decay_steps on"},
    {.name = "power",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct polynomial, power),
     .fallback = "1.0",
     .min = 0,
     .max = 1000,
     .help = "exponent of the curve; 1 is a straight line"},
    {.name = "cycle",
     .type = FIELD_BOOL,
     .offset = offsetof(struct polynomial, cycle),
     .fallback = "false",
     .help = "after decay_steps climb again and decay to a later end, over and over"},
    {0},
};

static double constant_rate(const void *attributes, int64_t step)
{
    const struct constant *a = attributes;
    return a->learning_rate;
}

static err piecewise_check(const void *attributes, const char *path)
{
    const struct piecewise *a = attributes;
    if (a->values.count != a->boundaries.count + 1) {
        return fail(ERR_INPUT, "%s.values: expected %d numbers, one more than boundaries, got %d",
                    path, a->boundaries.count + 1, a->values.count);
    }
    for (int i = 1; i < a->boundaries.count; i++) {
        if (a->boundaries.at[i] > a->boundaries.at[i - 1]) continue;
        return fail(ERR_INPUT, "%s.boundaries[%d]: expected more than the %lld before it, got %lld",
                    path, i, (long long)a->boundaries.at[i - 1], (long long)a->boundaries.at[i]);
    }
    return OK;
}

static double piecewise_rate(const void *attributes, int64_t step)
{
    const struct piecewise *a = attributes;
    int piece = 0;
    while (piece < a->boundaries.count && step > a->boundaries.at[piece]) piece++;
    return a->values.at[piece];
}

/* p */
static double decays_so_far(const struct decay *a, int64_t step)
{
    const double p = (double)step / (double)a->decay_steps;
    return a->staircase ? floor(p) : p;
}

static double exponential_rate(const void *attributes, int64_t step)
{
    const struct decay *a = attributes;
    return a->learning_rate * pow(a->decay_rate, decays_so_far(a, step));
}

static double natural_exp_rate(const void *attributes, int64_t step)
{
    const struct decay *a = attributes;
    return a->learning_rate * exp(-a->decay_rate * decays_so_far(a, step));
}

static double inverse_time_rate(const void *attributes, int64_t step)
{
    const struct decay *a = attributes;
    return a->learning_rate / (1.0 + a->decay_rate * decays_so_far(a, step));
}

static double polynomial_rate(const void *attributes, int64_t step)
{
    const struct polynomial *a = attributes;
    double s = (double)step, end = (double)a->decay_steps;
    if (a->cycle) {
        end *= fmax(ceil(s / end), 1.0); /* step 0 belongs to the first cycle */
    } else {
        s = fmin(s, end);
    }
    return (a->learning_rate - a->end_learning_rate) * pow(1.0 - s / end, a->power) +
           a->end_learning_rate;
}

const struct schedule schedule_constant = {
    .object = {.name = "constant",
               .summary = "the same rate for ever; a bare number says the same",
               .fields = constant_fields,
               .size = sizeof(struct constant)},
    .rate = constant_rate,
};

const struct schedule schedule_piecewise_constant = {
    .object = {.name = "piecewise_constant",
               .summary = "values[0] up to and with step boundaries[0], values[1] up to "
                          "boundaries[1], and so on",
               .fields = piecewise_fields,
               .size = sizeof(struct piecewise)},
    .rate = piecewise_rate,
    .check = piecewise_check,
};

const struct schedule schedule_exponential_decay = {
    .object = {.name = "exponential_decay",
               .summary = "learning_rate * decay_rate ^ (step / decay_steps)",
               .fields = decay_fields,
               .size = sizeof(struct decay)},
    .rate = exponential_rate,
};

const struct schedule schedule_natural_exp_decay = {
    .object = {.name = "natural_exp_decay",
               .summary = "learning_rate * exp(-decay_rate * step / decay_steps)",
               .fields = decay_fields,
               .size = sizeof(struct decay)},
    .rate = natural_exp_rate,
};

const struct schedule schedule_inverse_time_decay = {
    .object = {.name = "inverse_time_decay",
               .summary = "learning_rate / (1 + decay_rate * step / decay_steps)",
               .fields = decay_fields,
               .size = sizeof(struct decay)},
    .rate = inverse_time_rate,
};

const struct schedule schedule_polynomial_decay = {
    .object = {.name = "polynomial_decay",
               .summary = "from learning_rate to end_learning_rate in decay_steps, "
                          "as (1 - step / decay_steps) ^ power",
               .fields = polynomial_fields,
               .size = sizeof(struct polynomial)},
    .rate = polynomial_rate,
};
