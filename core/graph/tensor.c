/* tensor.c - shapes: counting, comparing, checking, printing. */
#include "core/graph/tensor.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/base/fingerprint.h"

/* The product of a shape that passed shape_check cannot overflow. */
int64_t shape_count_from(const struct shape *shape, int axis)
{
    int64_t count = 1;
    for (int i = axis; i < shape->rank; i++) count *= shape->dim[i];
    return count;
}

int64_t shape_count(const struct shape *shape)
{
    return shape_count_from(shape, 0);
}

struct shape shape_from(const struct shape *shape, int axis)
{
    struct shape rest = {.rank = shape->rank - axis};
    for (int i = 0; i < rest.rank; i++) rest.dim[i] = shape->dim[axis + i];
    return rest;
}

bool shape_equal(const struct shape *a, const struct shape *b)
{
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i]) return false;
    return true;
}

size_t dtype_size(enum dtype dtype)
{
    return dtype == UINT8 ? 1 : dtype == INT64 ? 8 : 4;
}

size_t tensor_bytes(const struct tensor *tensor)
{
    return (size_t)shape_count(&tensor->shape) * dtype_size(tensor->dtype);
}

const char *dtype_name(enum dtype dtype)
{
    switch (dtype) {
    case FLOAT32:
        return "float32";
    case INT32:
        return "int32";
    case UINT8:
        return "uint8";
    case INT64:
        return "int64";
    }
    return "unknown";
}

const char *shape_text(const struct shape *shape, char text[SHAPE_TEXT_MAX])
{
    /* A shape that failed its check may hold anything: text that does not fit is cut off. */
    size_t used = (size_t)snprintf(text, SHAPE_TEXT_MAX, "[");
    for (int i = 0; i < shape->rank && i < RANK_MAX && used < SHAPE_TEXT_MAX - 1; i++)
        used += (size_t)snprintf(text + used, SHAPE_TEXT_MAX - used, "%s%" PRId64, i ? ", " : "",
                                 shape->dim[i]);
    if (used < SHAPE_TEXT_MAX - 1) snprintf(text + used, SHAPE_TEXT_MAX - used, "]");
    return text;
}

/* Divides, so that products of numbers from outside cannot overflow. */
err shape_check(const struct shape *shape)
{
    if (shape->rank < 0 || shape->rank > RANK_MAX)
        return fail(ERR_INPUT, "%d dimensions; at most %d are possible", shape->rank, RANK_MAX);

    char text[SHAPE_TEXT_MAX];
    int64_t count = 1;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dim[i] < 1)
            return fail(ERR_INPUT, "shape %s: every dimension must be at least 1",
                        shape_text(shape, text));
        if (shape->dim[i] > TENSOR_ELEMENTS_MAX / count)
            return fail(ERR_INPUT, "shape %s has more than 2^40 elements", shape_text(shape, text));
        count *= shape->dim[i];
    }
    return OK;
}

int64_t id_of_64_bits(uint64_t number)
{
    const uint64_t half = (uint64_t)1 << 62;
    if (number < (uint64_t)ANY_ID) return (int64_t)number;
    return (int64_t)(half + fingerprint(&number, sizeof number) % (half - 1));
}
