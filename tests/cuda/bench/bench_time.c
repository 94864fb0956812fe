/* bench_time.c - how long a call takes: recorded where that is possible, so that the host is not
 * part of it, else launched call by call and timed from the first to the end of the last. */
#include <stdio.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "tests/cuda/bench/bench_graph.h"

enum {
    SAMPLES_MAX = 15,
    SAMPLE_US = 10000, /* far above what beginning and ending a sample take */
    RECORDED_MAX = 64, /* calls; enough that small tensors fill no cache */
    CALLS_MAX = 10000,
    RALLY_CALLS = 3, /* by which the length of a sample is estimated */
    BRIEF_SAMPLES = 1,
    BRIEF_SAMPLE_US = 100,
};

/* A bench that is scaled down shows that it runs, and no figures. */
static int sample_count(const struct bench *b)
{
    return b->scale > 1 ? BRIEF_SAMPLES : SAMPLES_MAX;
}

static int calls_of(const struct bench *b, double us, int most)
{
    const double sample_us = b->scale > 1 ? BRIEF_SAMPLE_US : SAMPLE_US;
    return us * most < sample_us ? most : 1 + (int)(sample_us / us);
}

static double launched_us(struct bench *b, const struct timed *timed, int calls)
{
    const uint64_t start = clock_ns();
    for (int i = 0; i < calls; i++) timed->body(b, timed->arguments, i);
    bench_wait(b);
    return (double)(clock_ns() - start) / 1e3 / calls;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *samples, int count)
{
    qsort(samples, (size_t)count, sizeof *samples, by_size);
    return samples[count / 2];
}

static double median_launched(struct bench *b, const struct timed *timed, double once_us)
{
    double samples[SAMPLES_MAX];
    const int calls = calls_of(b, once_us, CALLS_MAX), count = sample_count(b);
    for (int i = 0; i < count; i++) samples[i] = launched_us(b, timed, calls);
    return median(samples, count);
}

static double median_recorded(struct bench *b, struct recording *r, int calls)
{
    double samples[SAMPLES_MAX];
    (void)recorded_us(b, r, 1); /* the first start brings the graph to the GPU */
    const int starts = calls_of(b, recorded_us(b, r, 1), CALLS_MAX), count = sample_count(b);
    for (int i = 0; i < count; i++) samples[i] = recorded_us(b, r, starts) / starts / calls;
    return median(samples, count);
}

double bench_us(struct bench *b, const struct timed *timed)
{
    (void)launched_us(b, timed, 1); /* loads what is loaded when it is first called */
    const double once_us = launched_us(b, timed, b->scale > 1 ? 1 : RALLY_CALLS);
    const int calls = calls_of(b, once_us, RECORDED_MAX);
    struct recording *recorded;
    if (timed->waits) return median_launched(b, timed, once_us);
    if (recorded_open(b, timed, calls, &recorded)) {
        if (b->scale == 1) printf("what follows was launched call by call: %s\n", error_text());
        return median_launched(b, timed, once_us);
    }
    const double us = median_recorded(b, recorded, calls);
    recorded_close(b, recorded);
    return us;
}
