/* fixed.c - initializers that give every element the same value. */
#include "core/graph/op.h"

struct constant_attributes {
    double value;
};

static const struct field constant_fields[] = {
    FIELD_OF("value", FLOAT, struct constant_attributes, value, .fallback = "0",
             .help = "value of every element"),
    {0},
};

/* The key is not used: nothing is drawn. */
static err fill(const struct initial *of, float value, float *ret_values)
{
    for (int64_t i = 0; i < of->count; i++) ret_values[i] = value;
    return OK;
}

static err zeros(const void *attributes, const struct initial *of, float *ret_values)
{
    return fill(of, 0.0f, ret_values);
}

static err ones(const void *attributes, const struct initial *of, float *ret_values)
{
    return fill(of, 1.0f, ret_values);
}

static err constant(const void *attributes, const struct initial *of, float *ret_values)
{
    const struct constant_attributes *a = attributes;
    return fill(of, (float)a->value, ret_values);
}

const struct initializer initializer_zeros = {.object = {"zeros", "0"}, .fill = zeros};

const struct initializer initializer_ones = {.object = {"ones", "1"}, .fill = ones};

const struct initializer initializer_constant = {
    .object = {"constant", "one value", constant_fields, sizeof(struct constant_attributes)},
    .fill = constant,
};
