/* cpu_bf16.h - products and convolutions of a CPU in bfloat16. */
#ifndef KERNELS_CPU_BF16_DEVICE_H
#define KERNELS_CPU_BF16_DEVICE_H

#include "kernels/device.h"

/* From now on large products and convolutions of this CPU round what they multiply to bfloat16; it
 * is called before any convolution is opened. ERR_DEVICE says why it would not be faster, and then
 * nothing changes: this processor has no AMX. DTRAIN_CPU_BF16=always in the environment has it done
 * by AVX-512, too; ERR_INPUT: it is another word. */
err device_cpu_bf16(struct device *);

#endif
