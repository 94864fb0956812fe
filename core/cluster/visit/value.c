/* value.c - see value.h. */
#include "core/cluster/visit/value.h"

#include <math.h>
#include <stdlib.h>

/* Takes the shape from the first elements; the others are compared with it when they are read. */
static err measure(json_t *json, struct value *value)
{
    struct shape *shape = &value->shape;
    value->count = 1;
    while (json_is_array(json)) {
        size_t length = json_array_size(json);
        if (shape->rank == RANK_MAX)
            return fail(ERR_INPUT, "value: lists in lists, more than %d deep", RANK_MAX);
        if (length == 0) return fail(ERR_INPUT, "value: an empty list");
        if (length > (size_t)(VISIT_ELEMENTS_MAX / value->count))
            return fail(ERR_INPUT, "value: more than %d numbers", VISIT_ELEMENTS_MAX);
        shape->dim[shape->rank++] = (int64_t)length;
        value->count *= (int64_t)length;
        json = json_array_get(json, 0);
    }
    return OK;
}

/* Reads what is below one axis to *at on; recursion is bounded by the rank. */
static err fill(json_t *json, const struct shape *shape, int axis, double **at)
{
    if (axis == shape->rank) {
        if (!json_is_number(json))
            return fail(ERR_INPUT, "value: expected a number, or lists of numbers of one length");
        *(*at)++ = json_number_value(json);
        return OK;
    }
    if (!json_is_array(json) || json_array_size(json) != (size_t)shape->dim[axis])
        return fail(ERR_INPUT, "value: lists of unequal lengths");
    for (size_t i = 0; i < json_array_size(json); i++)
        TRY(fill(json_array_get(json, i), shape, axis + 1, at));
    return OK;
}

err value_read(json_t *json, struct value *ret)
{
    struct value value = {0};
    TRY(measure(json, &value));
    value.at = malloc((size_t)value.count * sizeof *value.at);
    if (!value.at) return fail(ERR_MEMORY, "no memory for %lld numbers", (long long)value.count);
    double *at = value.at;
    err e = fill(json, &value.shape, 0, &at);
    if (e)
        value_free(&value);
    else
        *ret = value;
    return e;
}

void value_free(struct value *value)
{
    free(value->at);
    *value = (struct value){0};
}

json_t *value_number(double x)
{
    if (isfinite(x)) return json_real(x);
    return json_string(isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
}

json_t *value_shape(const struct shape *shape)
{
    json_t *list = json_array();
    for (int i = 0; i < shape->rank; i++) json_array_append_new(list, json_integer(shape->dim[i]));
    return list;
}
