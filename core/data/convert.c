/* convert.c - stored examples to what the graph reads: see convert.h. */
#include "core/data/convert.h"
#include "core/data/loops.h"

#include <string.h>

size_t convert_feature_bytes(const struct dataset *d)
{
    return (size_t)shape_count(&d->feature_shape) * dtype_size(d->feature_dtype);
}

int64_t convert_label_count(const struct dataset *d)
{
    return shape_count(&d->label_shape);
}

bool convert_is_identity(const struct dataset *d, const struct transform *t)
{
    return d->feature_dtype == FLOAT32 && t->scale == 1 && t->offset == 0;
}

void convert_features(const struct dataset *d, const struct transform *t, int64_t first,
                      int64_t rows, float *ret)
{
    size_t row_bytes = convert_feature_bytes(d);
    const void *from = (const char *)d->features + row_bytes * (size_t)first;
    int64_t count = rows * shape_count(&d->feature_shape);
    /* most often bytes of images; floats as stored need no arithmetic */
    if (convert_is_identity(d, t))
        memcpy(ret, from, row_bytes * (size_t)rows);
    else if (d->feature_dtype == UINT8)
        loops_best()->scale_bytes(ret, from, t->scale, t->offset, count);
    else
        loops_best()->scale_floats(ret, from, t->scale, t->offset, count);
}

void convert_labels(const struct dataset *d, const struct transform *t, int64_t first, int64_t rows,
                    void *ret)
{
    int64_t of_row = convert_label_count(d), count = rows * of_row;
    const void *from = (const char *)d->labels + 4 * first * of_row; /* both types have 4 bytes */
    if (d->label_dtype == t->label_dtype) {
        memcpy(ret, from, (size_t)count * 4);
    } else if (t->label_dtype == FLOAT32) {
        const int32_t *label = from;
        for (int64_t i = 0; i < count; i++) ((float *)ret)[i] = (float)label[i];
    } else {
        /* whole and within 32 bits: transform_check has seen to it */
        const float *label = from;
        for (int64_t i = 0; i < count; i++) ((int32_t *)ret)[i] = (int32_t)label[i];
    }
}
