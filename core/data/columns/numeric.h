/* numeric.h - what the spec says of a numeric column. */
#ifndef CORE_DATA_COLUMNS_NUMERIC_H
#define CORE_DATA_COLUMNS_NUMERIC_H

#include "core/data/columns/column.h"

struct numeric_attributes {
    struct column_source source; /* max: how many, all of them */
    bool log1p, standardize;
    struct floats mean, deviation; /* [max] each, of what there is after log1p; or none */
    double scale, offset;
    json_t *fallback, *min, *padding; /* borrowed from the spec */
};
extern const struct column_kind column_numeric;

bool numeric_default_is_mean(const struct numeric_attributes *);
/* What stands for the numbers of an empty cell, before any transform; false: nothing does. Of
 * "mean" the mean is known, or 0. */
bool numeric_default(const struct numeric_attributes *, double *ret);

/* What the column is made of before it is rounded: [max] numbers. ERR_INPUT: what was expected. */
err numeric_read(struct column_maker *, const struct cell *cells, double *to);

#endif
