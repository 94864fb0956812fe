/* dataset_check.h - checks every row before training; for labels see transform_check in data.h. */
#ifndef CORE_DATA_DATASET_CHECK_H
#define CORE_DATA_DATASET_CHECK_H

#include "core/data/data.h"

/* ERR_INPUT names the file and the first row with a feature that is NaN or infinite. */
err dataset_check_features(const struct dataset *);

#endif
