/* variance_scaling.c - initializers whose variance depends on the number of inputs and outputs.
 * Formulas and names: those of TensorFlow's tf.keras.initializers. */
#include "core/base/random.h"
#include "core/graph/op.h"

#include <math.h>

enum mode { FAN_IN, FAN_OUT, FAN_AVG };
enum distribution { TRUNCATED_NORMAL, NORMAL, UNTRUNCATED_NORMAL, UNIFORM }; /* NORMAL: the first */

struct variance_scaling {
    double scale;
    int mode, distribution;
};

static const char *const modes[] = {"fan_in", "fan_out", "fan_avg", NULL};
static const char *const distributions[] = {"truncated_normal", "normal", "untruncated_normal",
                                            "uniform", NULL};

static const struct field fields[] = {
    FIELD_OF("scale", FLOAT, struct variance_scaling, scale, .fallback = "1", .min = 1e-12,
             .max = 1e12, .help = "the variance is scale / fan"),
    FIELD_OF("mode", ENUM, struct variance_scaling, mode, .fallback = "\"fan_in\"",
             .choices = modes, .help = "fan: inputs, outputs, or the mean of both"),
    FIELD_OF("distribution", ENUM, struct variance_scaling, distribution,
             .fallback = "\"truncated_normal\"", .choices = distributions,
             .help = "normal is truncated_normal"),
    {0},
};

/* stddev of a standard normal distribution truncated at 2 */
static const double TRUNCATED_STDDEV = 0.87962566103423978;

/* Fan-in, fan-out or their mean of a kernel [window ..., in, out]. */
static double fan_of(const struct shape *shape, enum mode mode)
{
    double in = 1, out = 1;
    if (shape->rank == 1) in = out = (double)shape->dim[0];
    if (shape->rank >= 2) {
        in = (double)shape->dim[shape->rank - 2];
        out = (double)shape->dim[shape->rank - 1];
    }
    double window = 1;
    for (int i = 0; i + 2 < shape->rank; i++) window *= (double)shape->dim[i];
    if (mode == FAN_AVG) return (in + out) * window / 2;
    return (mode == FAN_IN ? in : out) * window;
}

/* stddev is that after truncation, hence the division. */
static err fill(const struct variance_scaling *a, const struct initial *of, float *ret_values)
{
    const double variance = a->scale / fmax(1, fan_of(of->shape, (enum mode)a->mode));
    const double stddev = sqrt(variance), limit = sqrt(3 * variance);
    for (int64_t i = 0; i < of->count; i++) {
        const uint64_t index = (uint64_t)(of->first + i);
        if (a->distribution == UNIFORM)
            ret_values[i] = (float)(limit * (2 * (double)random_uniform(of->key, index) - 1));
        else if (a->distribution == UNTRUNCATED_NORMAL)
            ret_values[i] = (float)(stddev * random_normal(of->key, index));
        else
            ret_values[i] =
                (float)(stddev / TRUNCATED_STDDEV * random_truncated_normal(of->key, index));
    }
    return OK;
}

static err variance_scaling(const void *attributes, const struct initial *of, float *ret_values)
{
    return fill(attributes, of, ret_values);
}

const struct initializer initializer_variance_scaling = {
    .object = {"variance_scaling", "variance scale / fan", fields, sizeof(struct variance_scaling)},
    .fill = variance_scaling,
};

/* The usual names, each with fixed attributes of the above. */
static err glorot_uniform(const void *attributes, const struct initial *of, float *ret_values)
{
    return fill(&(struct variance_scaling){1, FAN_AVG, UNIFORM}, of, ret_values);
}

const struct initializer initializer_glorot_uniform = {
    .object = {"glorot_uniform", "uniform within +-sqrt(6 / (in + out))"},
    .fill = glorot_uniform,
};

static err glorot_normal(const void *attributes, const struct initial *of, float *ret_values)
{
    return fill(&(struct variance_scaling){1, FAN_AVG, TRUNCATED_NORMAL}, of, ret_values);
}

const struct initializer initializer_glorot_normal = {
    .object = {"glorot_normal", "normal of variance 2 / (in + out), truncated"},
    .fill = glorot_normal,
};

static err he_uniform(const void *attributes, const struct initial *of, float *ret_values)
{
    return fill(&(struct variance_scaling){2, FAN_IN, UNIFORM}, of, ret_values);
}

const struct initializer initializer_he_uniform = {
    .object = {"he_uniform", "uniform within +-sqrt(6 / in)"},
    .fill = he_uniform,
};

static err he_normal(const void *attributes, const struct initial *of, float *ret_values)
{
    return fill(&(struct variance_scaling){2, FAN_IN, TRUNCATED_NORMAL}, of, ret_values);
}

const struct initializer initializer_he_normal = {
    .object = {"he_normal", "normal of variance 2 / in, truncated"},
    .fill = he_normal,
};

static err lecun_uniform(const void *attributes, const struct initial *of, float *ret_values)
{
    return fill(&(struct variance_scaling){1, FAN_IN, UNIFORM}, of, ret_values);
}

const struct initializer initializer_lecun_uniform = {
    .object = {"lecun_uniform", "uniform within +-sqrt(3 / in)"},
    .fill = lecun_uniform,
};

static err lecun_normal(const void *attributes, const struct initial *of, float *ret_values)
{
    return fill(&(struct variance_scaling){1, FAN_IN, TRUNCATED_NORMAL}, of, ret_values);
}

const struct initializer initializer_lecun_normal = {
    .object = {"lecun_normal", "normal of variance 1 / in, truncated"},
    .fill = lecun_normal,
};
