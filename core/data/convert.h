/* convert.h - stored columns to what the graph reads: y = scale * x + offset, labels of one type.
 */
#ifndef CORE_DATA_CONVERT_H
#define CORE_DATA_CONVERT_H

#include "core/data/data.h"

struct conversion {
    struct column made; /* FLOAT32, INT32 or INT64; as the graph reads it, at NULL */
    float scale, offset;
};
/* ret: as many as the dataset has columns */
void conversions_of(const struct transform *, const struct dataset *, struct conversion *ret);

/* What is stored is what would be made of it. */
bool conversion_is_identity(const struct conversion *, const struct column *stored);

/* Rows first .. first + rows - 1, in stored order. */
void convert(const struct conversion *, const struct column *stored, int64_t first, int64_t rows,
             void *ret);

#endif
