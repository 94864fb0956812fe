/* curve_device.c - the GPU, real or emulated, whose memory is its own */
#include "tests/core/train/curve_device.h"

const double curve_tolerance = 0;

err curve_device(struct device *ret)
{
    return device_open_gpu(&(struct gpu_options){0}, ret);
}
