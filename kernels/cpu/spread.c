/* spread.c - one loop over several threads. */
#include "kernels/cpu/cpu.h"

/* From the OpenMP runtime that oneDNN uses; declared here because clang has no omp.h for it. It
 * sets the number for the calling thread alone. */
void omp_set_num_threads(int threads);

enum { PART_ALIGN = 16 }; /* floats of a cache line: no two threads write to the same one */

void spread(const struct device *d, int64_t n, int64_t grain, range_body *body,
            const void *arguments)
{
    int64_t parts = n / grain;
    if (parts > d->threads) parts = d->threads;
    if (parts <= 1) {
        body(arguments, 0, n);
        return;
    }
    int64_t step = (n / parts + PART_ALIGN) / PART_ALIGN * PART_ALIGN;
#pragma omp parallel for num_threads((int)parts) schedule(static, 1)
    for (int64_t begin = 0; begin < n; begin += step)
        body(arguments, begin, begin + step < n ? begin + step : n);
}

void library_threads(const struct device *d)
{
    omp_set_num_threads(d->threads);
}
