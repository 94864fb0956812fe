/* convert.h - stored examples to what the graph reads: y = scale * x + offset, labels of one type.
 */
#ifndef CORE_DATA_CONVERT_H
#define CORE_DATA_CONVERT_H

#include "core/data/data.h"

/* Rows first .. first + rows - 1, in stored order. */
void convert_features(const struct dataset *, const struct transform *, int64_t first, int64_t rows,
                      float *ret);
void convert_labels(const struct dataset *, const struct transform *, int64_t first, int64_t rows,
                    void *ret);

/* Features in memory are what the transform would make of them. */
bool convert_is_identity(const struct dataset *, const struct transform *);

size_t convert_feature_bytes(const struct dataset *); /* of one example as stored */
int64_t convert_label_count(const struct dataset *);  /* of one example */

#endif
