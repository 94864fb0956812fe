/* bundle.h - enough of a TensorFlow V2 checkpoint to read the initial values of the curves: one
 * data shard, an index of one block (format: LevelDB table of BundleEntryProto). */
#ifndef TESTS_TRAIN_BUNDLE_H
#define TESTS_TRAIN_BUNDLE_H

#include <stdint.h>

#include "core/base/error.h"

/* The float32 tensor `name` of the checkpoint `prefix`; exactly `count` values. */
err bundle_read(const char *prefix, const char *name, float *ret_values, int64_t count);

#endif
