/* x86.c - the instruction sets of x86-64, and which kernels OpenBLAS should use. */
#include <stddef.h>

#include "kernels/cpu/cpu.h"

extern const struct kernels kernels_table_avx512;
extern const struct kernels kernels_table_avx2;
extern const struct kernels kernels_table_sse2;

/* x86-64-v3 and the AVX-512 of x86-64-v4, as far as our code and the libraries use them */
static bool has_avx2(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

static bool always(void)
{
    return true;
}

const struct instruction_set instruction_sets[] = {
    {"avx512", "cpu avx512", has_avx512, &kernels_table_avx512},
    {"avx2", "cpu avx2", has_avx2, &kernels_table_avx2},
    {"sse2", "cpu sse2", always, &kernels_table_sse2},
    {NULL, NULL, NULL, NULL},
};

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names && strcmp(name, *names) != 0) names++;
    return *names != NULL;
}

/* OpenBLAS' names for the kernels that it should choose. On processors that it does not know it
 * chooses older ones, at half the speed or less. */
const char *openblas_core_wanted(const char *current)
{
    static const char *const with_avx512[] = {"SkylakeX", "Cooperlake", "SapphireRapids", NULL};
    static const char *const with_avx2[] = {"Haswell", "Zen", "Excavator", NULL};

    if (is_one_of(current, with_avx512)) return NULL;
    if (has_avx512()) return "SkylakeX";
    if (is_one_of(current, with_avx2)) return NULL;
    return has_avx2() ? "Haswell" : NULL;
}
