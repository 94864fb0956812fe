/* loops_x86.c - chooses the best copy of the loops that this processor can run. */
#include "core/data/loops.h"

extern const struct loops loops_avx512, loops_avx2, loops_plain;

const struct loops *loops_best(void)
{
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
        return &loops_avx512;
    return __builtin_cpu_supports("avx2") ? &loops_avx2 : &loops_plain;
}
