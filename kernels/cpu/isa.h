/* isa.h - what the files that are compiled once per instruction set share.
 *
 * meson.build compiles vector.c, reduce.c, activate.c, update.c, rows.c, losses.c, metrics.c,
 * pool.c, narrow.c and table.c once for each instruction set, with ISA_NAME and ISA_LANES (floats
 * in a register) given on the command line. KERNELS(part) is the only name that such a file shows
 * to the others.
 */
#ifndef KERNELS_CPU_ISA_H
#define KERNELS_CPU_ISA_H

#include "kernels/cpu/cpu.h"
#include "kernels/kernels.h"

#define KERNELS_JOIN_NAMES(part, isa) kernels_##part##_##isa
#define KERNELS_JOIN(part, isa) KERNELS_JOIN_NAMES(part, isa)
#define KERNELS(part) KERNELS_JOIN(part, ISA_NAME)

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

/* Each writes its rows of the table. */
void KERNELS(vector)(struct kernels *);
void KERNELS(reduce)(struct kernels *);
void KERNELS(activate)(struct kernels *);
void KERNELS(update)(struct kernels *);
void KERNELS(rows)(struct kernels *);
void KERNELS(losses)(struct kernels *);
void KERNELS(metrics)(struct kernels *);
void KERNELS(pool)(struct kernels *);
void KERNELS(narrow)(struct narrow_gemm *);

#endif
