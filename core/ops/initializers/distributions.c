/* distributions.c - initializers that draw every element from one distribution.
 *
 * Element i is draw i of the variable's key, so the values do not depend on how many ps hold the
 * variable. Computed in double and rounded once.
 */
#include "core/base/random.h"
#include "core/graph/op.h"

/* of random_normal and truncated_normal */
struct normal_attributes {
    double mean, stddev;
};

/* of random_uniform */
struct uniform {
    double minval, maxval;
};

static const struct field normal_fields[] = {
    FIELD_OF("mean", FLOAT, struct normal_attributes, mean, .fallback = "0",
             .help = "mean of the distribution"),
    FIELD_OF("stddev", FLOAT, struct normal_attributes, stddev, .fallback = "1", .max = 1e9,
             .help = "standard deviation, before any truncation"),
    {0},
};

static const struct field uniform_fields[] = {
    FIELD_OF("minval", FLOAT, struct uniform, minval, .fallback = "0", .help = "smallest value"),
    FIELD_OF("maxval", FLOAT, struct uniform, maxval, .fallback = "1",
             .help = "largest value (exclusive)"),
    {0},
};

static err random_normal_fill(const void *attributes, const struct initial *of, float *ret_values)
{
    const struct normal_attributes *a = attributes;
    for (int64_t i = 0; i < of->count; i++)
        ret_values[i] =
            (float)(a->mean + a->stddev * random_normal(of->key, (uint64_t)(of->first + i)));
    return OK;
}

/* Within 2 stddev of the mean; its standard deviation is 0.88 of the attribute. */
static err truncated_normal_fill(const void *attributes, const struct initial *of,
                                 float *ret_values)
{
    const struct normal_attributes *a = attributes;
    for (int64_t i = 0; i < of->count; i++)
        ret_values[i] = (float)(a->mean + a->stddev * random_truncated_normal(
                                                          of->key, (uint64_t)(of->first + i)));
    return OK;
}

/* In [minval, maxval) up to rounding. */
static err random_uniform_fill(const void *attributes, const struct initial *of, float *ret_values)
{
    const struct uniform *a = attributes;
    if (a->maxval < a->minval)
        return fail(ERR_INPUT, "random_uniform: maxval %g is less than minval %g", a->maxval,
                    a->minval);
    for (int64_t i = 0; i < of->count; i++)
        ret_values[i] = (float)(a->minval + (a->maxval - a->minval) *
                                                random_uniform(of->key, (uint64_t)(of->first + i)));
    return OK;
}

const struct initializer initializer_random_normal = {
    .object = {"random_normal", "a normal distribution", normal_fields,
               sizeof(struct normal_attributes)},
    .fill = random_normal_fill,
};

const struct initializer initializer_truncated_normal = {
    .object = {"truncated_normal", "a normal distribution, redrawn beyond 2 stddev", normal_fields,
               sizeof(struct normal_attributes)},
    .fill = truncated_normal_fill,
};

const struct initializer initializer_random_uniform = {
    .object = {"random_uniform", "uniform from minval to maxval", uniform_fields,
               sizeof(struct uniform)},
    .fill = random_uniform_fill,
};
