/* keys.h - ids of growing tables, and the keys under which their rows are stored.
 *
 * Ids may have any pattern; keys are the same numbers permuted, so that equal ranges of keys hold
 * about equally many rows. Both are from 0 to KEYS - 1, and the mapping is one to one.
 */
#ifndef CORE_TRAIN_VARIABLES_GROWING_KEYS_H
#define CORE_TRAIN_VARIABLES_GROWING_KEYS_H

#include <stdint.h>

#include "core/graph/tensor.h"

static const int64_t KEYS = ANY_ID;

int64_t key_of_id(int64_t id);
int64_t id_of_key(int64_t key);

#endif
