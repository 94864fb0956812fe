/* bench_copy.h - kernels that memory limits, held against a copy within the GPU. */
#ifndef TESTS_CUDA_BENCH_BENCH_COPY_H
#define TESTS_CUDA_BENCH_BENCH_COPY_H

#include "tests/cuda/bench/bench.h"

struct stream {
    const char *group, *name;
    struct timed timed;
    double bytes; /* the fewest that must be read and written */
    double goal;
};

void bench_against_copy(struct bench *, const struct stream *);

#endif
