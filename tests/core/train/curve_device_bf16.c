/* curve_device_bf16.c - the CPU, with one thread, whose large products and convolutions are in
 * bfloat16; in float32 where oneDNN has none here. */
#include <stdlib.h>

#include "kernels/cpu_bf16.h"
#include "tests/core/train/curve_device.h"

const double curve_tolerance = 0.01;

err curve_device(struct device *ret)
{
    setenv("DTRAIN_CPU_BF16", "always", 1);
    TRY(device_open_cpu(1, NULL, ret));
    (void)device_cpu_bf16(ret);
    return OK;
}
