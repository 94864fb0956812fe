/* curve_device.c - the CPU, with one thread */
#include "tests/core/train/curve_device.h"

const double curve_tolerance = 0;

err curve_device(struct device *ret)
{
    return device_open_cpu(1, NULL, ret);
}
