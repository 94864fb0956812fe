/* isa.h - shared by the files that are compiled once per instruction set.
 *
 * Those are the kernels; meson.build passes ISA_NAME and ISA_LANES (floats in a register) on the
 * command line. ISA(name) is the external name of something in such a file.
 */
#ifndef KERNELS_CPU_ISA_H
#define KERNELS_CPU_ISA_H

#include "kernels/cpu/cpu.h"
#include "kernels/kernels.h"

#define ISA_JOIN_NAMES(name, isa) kernels_##name##_##isa
#define ISA_JOIN(name, isa) ISA_JOIN_NAMES(name, isa)
#define ISA(name) ISA_JOIN(name, ISA_NAME)

enum { LANES = ISA_LANES };

typedef float lanes __attribute__((vector_size(4 * ISA_LANES)));

static inline __attribute__((always_inline)) lanes lanes_load(const float *x)
{
    lanes v;
    memcpy(&v, x, sizeof v);
    return v;
}

static inline __attribute__((always_inline)) lanes lanes_all(float x)
{
    return x - (lanes){0};
}

#define KERNEL(returns, name, ...) returns ISA(name)(struct device *, __VA_ARGS__);
#include "kernels/kernels.def"

/* Products whose result has few columns, which neither library computes well: whether the shape
 * qualifies, and the product. packed: NARROW_PACKED_MAX floats, for b. */
bool ISA(narrow_can)(const struct gemm *);
void ISA(narrow_run)(struct device *, const struct gemm *, float *packed);

/* Products in bfloat16: whether the device computes this one in bfloat16, and the product. */
bool ISA(bf16_can)(const struct device *, const struct gemm *);
void ISA(bf16_run)(struct device *, const struct gemm *);

#endif
