/* bf16.h - products of bfloat16 numbers, summed in float32, by oneDNN: what a shape needs is made
 * when it is first asked for and kept.
 */
#ifndef KERNELS_CPU_BF16_H
#define KERNELS_CPU_BF16_H

#include "kernels/cpu/cpu.h"

/* c [m, n] (+)= a [m, k] b; b is [k, n] or, transposed, [n, k]. k is a multiple of BF16_TERMS:
 * whoever has fewer fills up with zeros, which spares the library a copy of a. */
struct bf16_shape {
    int64_t m, n, k;
    bool transpose_b, add;
};

enum { BF16_TERMS = 32 }; /* a row of an AMX tile */

/* Multiply-adds for each number that is rounded below which rounding costs more than it saves (two
 * in float32 take as long as rounding one), and those of a whole product. */
enum { BF16_USES_MIN = 32, BF16_WORK_MIN = 1 << 21 };

/* What a device keeps for them. ERR_MEMORY. */
err bf16_open(struct bf16 **ret);
void bf16_close(struct bf16 *); /* NULL, too */

/* Memory for the operands of the next product, a [m, k] and b; false: there is none. It stays where
 * it is until a larger product comes. */
bool bf16_operands(struct bf16 *, const struct bf16_shape *, uint16_t **ret_a, uint16_t **ret_b);

/* The product of what is in these. A failure is noted with the device. */
void bf16_multiply(struct device *, const struct bf16_shape *, float *c);

#endif
