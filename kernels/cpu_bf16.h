/* cpu_bf16.h - products and convolutions of the CPU in bfloat16. */
#ifndef KERNELS_CPU_BF16_DEVICE_H
#define KERNELS_CPU_BF16_DEVICE_H

#include "kernels/device.h"

/* From now on large products and convolutions of this device round their operands to bfloat16; call
 * it before any convolution is opened. ERR_DEVICE: it would not be faster, because this processor
 * has no AMX; nothing changes. DTRAIN_CPU_BF16=always in the environment allows AVX-512, too;
 * ERR_INPUT: it has another value. */
err device_cpu_bf16(struct device *);

#endif
