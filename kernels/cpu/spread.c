/* spread.c - distributes a loop over threads. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu_threads.h"

/* From the OpenMP runtime that oneDNN uses; declared here because clang has no header for it.
 * Applies to the calling thread only. */
void omp_set_num_threads(int threads);

/* Parts of many elements begin at cache lines, so that no two threads write to the same one; parts
 * of few (images, slices), anywhere. */
enum { PART_ALIGN = 16, ALIGNED_PART_MIN = 8 * PART_ALIGN };

static _Thread_local uint64_t shared_out;

uint64_t cpu_shared_out(void)
{
    return shared_out;
}

static int64_t part_length(int64_t n, int64_t parts)
{
    int64_t length = (n + parts - 1) / parts;
    if (length < ALIGNED_PART_MIN) return length;
    return (length + PART_ALIGN - 1) / PART_ALIGN * PART_ALIGN;
}

void spread(const struct device *d, int64_t n, int64_t grain, range_body *body,
            const void *arguments)
{
    int64_t parts = n / grain;
    if (parts > d->threads) parts = d->threads;
    if (parts <= 1) { /* not through OpenMP, which would set up a team of one */
        body(arguments, 0, n);
        return;
    }
    const int64_t length = part_length(n, parts);
    shared_out++;
#pragma omp parallel for num_threads((int)parts) schedule(static, 1)
    for (int64_t begin = 0; begin < n; begin += length)
        body(arguments, begin, begin + length < n ? begin + length : n);
}

void library_threads(const struct device *d)
{
    shared_out += d->threads > 1;
    omp_set_num_threads(d->threads);
}
