/* rounded.c - rounds floats to 16 bits, and sums 16-bit numbers. */
#include "kernels/cpu/isa.h"
#include "kernels/elements.h"

struct rounded_copy {
    uint16_t *y;
    float *error;
    const float *x;
};

/* as is a constant where this is inlined. */
ELEMENT void round_stretch(enum number as, const void *arguments, int64_t begin, int64_t end)
{
    const struct rounded_copy v = *(const struct rounded_copy *)arguments;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) v.y[i] = element_round_off(as, v.x[i], &v.error[i]);
}

static void round_bf16(const void *arguments, int64_t begin, int64_t end)
{
    round_stretch(NUMBER_BF16, arguments, begin, end);
}

static void round_fp16(const void *arguments, int64_t begin, int64_t end)
{
    round_stretch(NUMBER_FP16, arguments, begin, end);
}

void ISA(round_off)(struct device *d, uint16_t *y, float *error, const float *x, enum number as,
                    int64_t n)
{
    spread(d, n, SPREAD_GRAIN / 2, as == NUMBER_BF16 ? round_bf16 : round_fp16,
           &(struct rounded_copy){y, error, x});
}

struct rounded_sum {
    float *y;
    const uint16_t *const *sources;
    int count;
    float scale;
};

enum { SUMMED_BLOCK = 1024 }; /* floats: the running sum stays in the first cache */

ELEMENT void sum_block(enum number as, const struct rounded_sum *v, int64_t begin, int64_t n)
{
    float sum[SUMMED_BLOCK];
    const uint16_t *first = v->sources[0] + begin;
    for (int64_t i = 0; i < n; i++) sum[i] = element_widen(as, first[i]);
    for (int source = 1; source < v->count; source++) {
        const uint16_t *x = v->sources[source] + begin;
        for (int64_t i = 0; i < n; i++) sum[i] += element_widen(as, x[i]);
    }
    for (int64_t i = 0; i < n; i++) v->y[begin + i] = v->scale * sum[i];
}

ELEMENT void sum_stretch(enum number as, const void *arguments, int64_t begin, int64_t end)
{
    const struct rounded_sum v = *(const struct rounded_sum *)arguments;
    for (int64_t at = begin; at < end; at += SUMMED_BLOCK)
        sum_block(as, &v, at, end - at < SUMMED_BLOCK ? end - at : SUMMED_BLOCK);
}

static void sum_bf16(const void *arguments, int64_t begin, int64_t end)
{
    sum_stretch(NUMBER_BF16, arguments, begin, end);
}

static void sum_fp16(const void *arguments, int64_t begin, int64_t end)
{
    sum_stretch(NUMBER_FP16, arguments, begin, end);
}

void ISA(sum_rounded)(struct device *d, float *y, const uint16_t *const sources[], int count,
                      enum number as, float scale, int64_t n)
{
    spread(d, n, SPREAD_GRAIN, as == NUMBER_BF16 ? sum_bf16 : sum_fp16,
           &(struct rounded_sum){y, sources, count, scale});
}
