/* table.c - puts the parts of one instruction set together. */
#include "kernels/cpu/isa.h"

/* Called by x86.c or generic.c under its full name */
void KERNELS(fill)(struct kernels *, struct narrow_gemm *);

void KERNELS(fill)(struct kernels *table, struct narrow_gemm *narrow)
{
    KERNELS(vector)(table);
    KERNELS(reduce)(table);
    KERNELS(activate)(table);
    KERNELS(update)(table);
    KERNELS(rows)(table);
    KERNELS(losses)(table);
    KERNELS(metrics)(table);
    KERNELS(pool)(table);
    KERNELS(narrow)(narrow);
}
