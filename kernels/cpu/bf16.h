/* bf16.h - products of bfloat16 numbers, summed in float32, by oneDNN: a primitive per shape is
 * created on first use and cached. */
#ifndef KERNELS_CPU_BF16_H
#define KERNELS_CPU_BF16_H

#include "kernels/cpu/cpu.h"

/* c [m, n] (+)= a [m, k] b; b is [k, n] or, transposed, [n, k]. k is a multiple of BF16_TERMS: pad
 * with zeros, which saves the library a copy of a. */
struct bf16_shape {
    int64_t m, n, k;
    bool transpose_b, add;
};

enum { BF16_TERMS = 32 }; /* a row of an AMX tile */

/* Multiply-adds per rounded number below which rounding costs more than it saves (two in float32
 * take as long as rounding one), and multiply-adds of a whole product. */
enum { BF16_USES_MIN = 32, BF16_WORK_MIN = 1 << 21 };

/* The state of one device. ERR_MEMORY. */
err bf16_open(struct bf16 **ret);
void bf16_close(struct bf16 *); /* NULL is fine */

/* Memory for the operands of the next product, a [m, k] and b; false: out of memory. Valid until a
 * larger product. */
bool bf16_operands(struct bf16 *, const struct bf16_shape *, uint16_t **ret_a, uint16_t **ret_b);

/* Multiplies these operands. A failure is reported by synchronize(). */
void bf16_multiply(struct device *, const struct bf16_shape *, float *c);

#endif
