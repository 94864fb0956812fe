/* bench_dnn.h - cuDNN called bare: what its own convolutions take, where it is found. */
#ifndef TESTS_CUDA_BENCH_BENCH_DNN_H
#define TESTS_CUDA_BENCH_BENCH_DNN_H

#include "tests/cuda/bench/bench.h"

enum direction { FORWARD, BACK_DATA, BACK_KERNEL, DIRECTIONS };

enum { BARE_NAME_MAX = 16 };

/* The fastest way that cuDNN's own search has found to do one convolution */
struct bare_best {
    double us;                  /* 0: there is none */
    char layout[BARE_NAME_MAX]; /* of the images: "NHWC", "NCHW" */
    int algorithm;
};

/* ERR_DEVICE: why there is none. With memory of its own for what algorithms need. */
err bare_dnn_open(struct bench *, struct bare_dnn **ret);
void bare_dnn_close(struct bench *, struct bare_dnn *);
/* 91002 */
size_t bare_dnn_version(const struct bare_dnn *);

struct bare_best bare_dnn_best(struct bench *, const struct conv2d *, enum direction);

#endif
