/* curve_device.h - where the workers of test_curves.c compute: the CPU, or what stands in its
 * place. */
#ifndef TESTS_CORE_TRAIN_CURVE_DEVICE_H
#define TESTS_CORE_TRAIN_CURVE_DEVICE_H

#include "kernels/device.h"

err curve_device(struct device *ret);

/* How far the mean of its losses may be from TensorFlow's, relative, and the evaluation afterwards
 * twice as far; 0: each loss is as near as float32 allows. */
extern const double curve_tolerance;

#endif
