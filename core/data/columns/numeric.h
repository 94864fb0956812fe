/* numeric.h - the attributes of a numeric column. */
#ifndef CORE_DATA_COLUMNS_NUMERIC_H
#define CORE_DATA_COLUMNS_NUMERIC_H

#include "core/data/columns/column.h"

struct numeric_attributes {
    struct column_source source; /* max: how many numbers a row has */
    bool log1p, standardize;
    struct floats mean, deviation; /* [max] each, applied after log1p; or none */
    double scale, offset;
    json_t *fallback, *min, *padding; /* borrowed from the spec */
};
extern const struct column_kind column_numeric;

bool numeric_default_is_mean(const struct numeric_attributes *);
/* The number that replaces an empty cell, before any transform; false: none. If the default is
 * "mean": the number that standardizes to 0, or 0 if the mean is not known yet. */
bool numeric_default(const struct numeric_attributes *, double *ret);

/* Computes the column's values before rounding to float: [max]. ERR_INPUT: what was expected. */
err numeric_read(struct column_maker *, const struct cell *cells, double *to);

#endif
