/* bundle.c - types, shapes and boxes. */
#include "core/train/checkpoint/bundle/bundle_inside.h"

/* TensorFlow's type numbers; size 0: not supported here. */
static const struct {
    size_t size;
    const char *name;
} types[] = {
    [BUNDLE_FLOAT] = {4, "float32"},
    [BUNDLE_DOUBLE] = {8, "float64"},
    [BUNDLE_INT32] = {4, "int32"},
    [BUNDLE_UINT8] = {1, "uint8"},
    [5] = {0, "int16"},
    [6] = {0, "int8"},
    [7] = {0, "string"},
    [8] = {0, "complex64"},
    [BUNDLE_INT64] = {8, "int64"},
    [10] = {0, "bool"},
    [11] = {0, "qint8"},
    [12] = {0, "quint8"},
    [13] = {0, "qint32"},
    [14] = {0, "bfloat16"},
    [15] = {0, "qint16"},
    [16] = {0, "quint16"},
    [17] = {0, "uint16"},
    [18] = {0, "complex128"},
    [19] = {0, "float16"},
    [20] = {0, "resource"},
    [21] = {0, "variant"},
    [22] = {0, "uint32"},
    [23] = {0, "uint64"},
};
enum { TYPES = sizeof types / sizeof *types };

size_t bundle_dtype_size(int dtype)
{
    return dtype >= 0 && dtype < TYPES ? types[dtype].size : 0;
}

const char *bundle_dtype_name(int dtype)
{
    return dtype > 0 && dtype < TYPES ? types[dtype].name : "unknown type";
}

/* Skips axes of length 0, so that an overflow of the other lengths is still noticed. */
int64_t bundle_count(const struct bundle_shape *shape)
{
    int64_t count = 1;
    bool is_empty = false;
    for (int i = 0; i < shape->rank; i++) {
        const int64_t dim = shape->dim[i];
        if (dim < 0) return -1;
        if (dim == 0)
            is_empty = true;
        else if (__builtin_mul_overflow(count, dim, &count))
            return -1;
    }
    return is_empty ? 0 : count;
}

struct bundle_box bundle_whole(const struct bundle_shape *shape)
{
    struct bundle_box box = {0};
    for (int i = 0; i < shape->rank; i++) box.length[i] = shape->dim[i];
    return box;
}

bool box_is_inside(const struct bundle_box *box, const struct bundle_shape *shape)
{
    for (int i = 0; i < shape->rank; i++) {
        if (box->start[i] < 0 || box->length[i] < 0 || box->length[i] > shape->dim[i] ||
            box->start[i] > shape->dim[i] - box->length[i])
            return false;
    }
    return true;
}

bool box_is_equal(const struct bundle_box *a, const struct bundle_box *b, int rank)
{
    for (int i = 0; i < rank; i++) {
        if (a->start[i] != b->start[i] || a->length[i] != b->length[i]) return false;
    }
    return true;
}

struct bundle_shape box_shape(const struct bundle_box *box, int rank)
{
    struct bundle_shape shape = {.rank = rank};
    for (int i = 0; i < rank; i++) shape.dim[i] = box->length[i];
    return shape;
}

int64_t box_common(const struct bundle_box *a, const struct bundle_box *b, int rank,
                   struct bundle_box *ret)
{
    struct bundle_box common = {0};
    int64_t count = 1;
    for (int i = 0; i < rank; i++) {
        const int64_t a_end = a->start[i] + a->length[i], b_end = b->start[i] + b->length[i];
        const int64_t end = a_end < b_end ? a_end : b_end;
        common.start[i] = a->start[i] > b->start[i] ? a->start[i] : b->start[i];
        common.length[i] = end > common.start[i] ? end - common.start[i] : 0;
        count *= common.length[i];
    }
    *ret = common;
    return count;
}
