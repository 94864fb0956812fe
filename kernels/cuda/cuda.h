/* cuda.h - shared by the files of the CUDA device, for C and C++.
 *
 * Kernels are queued in one stream, in order; overlapping copies have streams of their own
 * (async.c). A failed call is remembered with its name and that of the last kernel, and
 * synchronize() reports it; work queued after it does no harm, because a broken context refuses
 * everything.
 */
#ifndef KERNELS_CUDA_CUDA_H
#define KERNELS_CUDA_CUDA_H

#include <cuda_runtime_api.h>

#include "kernels/cuda/library/library.h"
#include "kernels/async.h"

enum {
    PARTIALS_MAX = 1 << 16, /* doubles: partial sums of the blocks of a reduction */
    RESULTS_MAX = 512,      /* doubles: results of reductions that are copied together */
    STAGING_BYTES = 4 << 20,
    STAGINGS = 2, /* one is filled while the other is copied */
    DEVICE_NAME_MAX = 480,
    FAILURE_MAX = 512,
    REPLAYS_NOTE_MAX = 160,
    GPU_WAIT_LIMIT_S = 600, /* for a GPU that does not respond; examples/README.md lists all limits
                             */
};

/* Constants of cuBLAS' headers for its product: float32, any algorithm, and compute types */
enum {
    BLAS_NO_MEMORY = 3,        /* CUBLAS_STATUS_ALLOC_FAILED */
    BLAS_FLOAT = 0,            /* CUDA_R_32F */
    BLAS_ANY_ALGORITHM = -1,   /* CUBLAS_GEMM_DEFAULT */
    BLAS_COMPUTE_FLOAT32 = 68, /* CUBLAS_COMPUTE_32F */
    BLAS_COMPUTE_BF16 = 75,    /* CUBLAS_COMPUTE_32F_FAST_16BF */
    BLAS_COMPUTE_TF32 = 77,    /* CUBLAS_COMPUTE_32F_FAST_TF32 */
};

/* The part of cuBLAS that is used, declared here because its header may not be installed. */
struct cuda_blas {
    struct cuda_library library;
    void *handle, *workspace;
    int compute; /* BLAS_COMPUTE_...: to what operands are rounded */
    const char *(*status_text)(int status);
    int (*destroy)(void *handle);
    int (*gemm)(void *handle, int transpose_a, int transpose_b, int m, int n, int k,
                const void *alpha, const void *a, int a_type, int lda, const void *b, int b_type,
                int ldb, const void *beta, void *c, int c_type, int ldc, int compute,
                int algorithm);
};

struct cuda_state {
    struct kernels table; /* what device->kernels points to */
    char name[DEVICE_NAME_MAX];
    int index; /* GPU number */
    bool is_watched;
    enum precision precision;
    cudaStream_t stream;
    cudaStream_t in; /* overlapping copies of batches */
    struct beside {  /* the same, of values (up) and gradients (out) */
        cudaStream_t stream;
        cudaEvent_t before, behind; /* for this stream to wait for `stream`, and the other way round
                                     */
        bool is_used;               /* something was queued that `stream` has not waited for */
        const struct mark *last;    /* `up` only: the mark after all its copies; NULL: none was set
                                       yet */
    } up, out;
    struct {
        bool is_on;
        const struct mark *follows; /* the last mark of `up`, if the recorded work waits for it */
    } recording;
    struct { /* see replays.c */
        bool is_tried, hold;
        char note[REPLAYS_NOTE_MAX]; /* message for the user; "": none */
        char told[REPLAYS_NOTE_MAX];
    } replays;
    void *staging[STAGINGS]; /* pinned */
    cudaEvent_t staged[STAGINGS];
    int next_staging;
    double *partials;     /* [PARTIALS_MAX] in device memory */
    double *results;      /* [RESULTS_MAX] in device memory, after partials */
    double *host_results; /* [RESULTS_MAX], pinned */
    float *product_sums;  /* in device memory: partial sums of a product split along k; NULL with
                             cuBLAS */
    struct cuda_blas blas;
    struct cuda_dnn *dnn; /* dnn.h, opened on demand; NULL: own convolutions */
    struct {
        const char *kernel; /* the last one launched; NULL: none yet */
        const char *mark;   /* what is being queued; NULL: unnamed; both borrowed */
        const char *mark_name;
    } queued;
    int wait_limit_ms;
    bool is_silent; /* the limit was reached: no more waits for the GPU */
    err failure;    /* first failure of queued work, until synchronize() returns it */
    char failure_text[FAILURE_MAX];
};

/* Returns whether the call succeeded; remembers a failure. */
bool cuda_check(struct device *, cudaError_t, const char *call);

/* Returns a failure as an err at once, without remembering it. */
err cuda_demand(cudaError_t, const char *call);

/* Returns the remembered failure and clears it; OK: none. */
err cuda_failure(struct cuda_state *);

/* The kind of a failure, by what the caller can do about it. ERR_LOST: the GPU itself failed. */
err cuda_kind(cudaError_t);

/* Makes the device's GPU current in the calling thread. */
void cuda_select(struct device *);
/* The same, before queueing work. false: the GPU does not respond; its queue may be full, so that
 * queueing could block forever. */
bool cuda_may_queue(struct device *);

/* Call after the launch of a kernel: remembers its name, or that it failed. */
void cuda_launched(struct device *, const char *kernel, cudaError_t);

/* Remembers a failure, unless there is one already. call NULL: the message names no call. */
void cuda_remember(struct device *, err kind, const char *call, const char *why);

/* Remembers a failure that no CUDA call returned. */
void cuda_refuse(struct device *, const char *why);

/* Copies the first `count` results to the host, and waits. Zeros if the device failed, which
 * synchronize() reports. Valid until the next call. */
const double *cuda_results(struct device *, int count);

/* All waits for the GPU, except launches that find its queue full: until the work queued in the
 * stream is done, or the event is reached. false: it failed, or does not respond, which
 * synchronize() reports. */
bool cuda_await_stream(struct device *, cudaStream_t);
bool cuda_await_event(struct device *, cudaEvent_t);
/* Call after a failed library call: if the GPU failed before it, that failure is remembered first.
 * Does not wait during a recording, which fails anyway. */
void cuda_await_cause(struct device *);
void cuda_wait_init(struct cuda_state *);

/* Staging, stream and scratch memory; fini accepts partial initialization. */
err cuda_memory_init(struct device *);
void cuda_memory_fini(struct cuda_state *);

/* Streams and events of async.c; fini accepts partial initialization. */
err cuda_async_init(struct cuda_state *);
void cuda_async_fini(struct cuda_state *);
/* Work queued next waits for the copies in `up` and `out`. */
void cuda_join(struct device *);

/* See async.h. */
err cuda_record(struct device *);
err cuda_record_end(struct device *, struct recording **ret);
void cuda_replay(struct device *, const struct recording *);
void cuda_recording_close(struct device *, struct recording *);

/* Tests once per device, outside of a recording, whether replays.hold: that an event recorded in a
 * replay counts as not reached from the replay's launch until its turn. Waits; fails as the wait
 * does. */
err cuda_replays_try(struct device *);

/* ERR_DEVICE: the driver is missing, or too old for the runtime. */
err cuda_driver_find(void);
/* Major version of CUDA that the driver supports: 13. 0: no driver. */
int cuda_driver_major(void);
/* "580.65.06 for CUDA 13.0", "of an unknown release for CUDA 13.0" */
void cuda_driver_describe(char *ret, size_t size);

/* Looks for an installed cuBLAS. ERR_DEVICE: not found, or an unsupported version; our own products
 * are used then. */
err cuda_blas_find(struct cuda_library *ret);
/* Creates a handle on the device's stream. */
err cuda_blas_open(struct device *, enum precision);
void cuda_blas_close(struct cuda_state *);

/* The same for cuDNN, for convolutions. It is large, and many models never need it: opening only
 * checks whether it supports the precision (ERR_DEVICE: no), and the first convolution loads the
 * library. */
err cuda_dnn_find(struct cuda_library *ret);
err cuda_dnn_open(struct device *, enum precision);
void cuda_dnn_close(struct cuda_state *);
/* NULL: not available. The first call leaves a message for device_note() that it is used, or why
 * not. */
struct cuda_dnn *cuda_dnn_use(struct device *);

/* to [columns, rows] (+)= transpose of from [rows, columns]. Both dimensions are at least 1, and
 * there are fewer than 2^31 elements. */
struct transposition {
    float *to;
    const float *from;
    int64_t rows, columns;
    bool add;
};
void cuda_transpose(struct device *, const struct transposition *);

/* Convolution by our own kernels, which support every shape: the functions of struct kernels, on a
 * plan of their own. */
struct own_conv2d;
struct own_convolution {
    err (*open)(struct device *, const struct conv2d *, struct own_conv2d **ret);
    size_t (*bytes)(struct device *, const struct conv2d *);
    void (*close)(struct device *, struct own_conv2d *);
    void (*forward)(struct device *, struct own_conv2d *, float *y, const float *x,
                    const float *kernel, const float *bias, float *pre, enum activation,
                    float alpha);
    void (*back_data)(struct device *, struct own_conv2d *, float *dx, const float *dy,
                      const float *kernel, bool add);
    void (*back_kernel)(struct device *, struct own_conv2d *, float *dkernel, const float *dy,
                        const float *x, bool add);
};
extern const struct own_convolution cuda_own_convolution;

/* Scratch memory of our own products, used without cuBLAS */
err cuda_product_init(struct device *);
void cuda_product_fini(struct cuda_state *);

/* The kernels, each in the file of its name or group */
#define KERNEL(returns, name, ...) returns cuda_##name(struct device *, __VA_ARGS__);
#include "kernels/kernels.def"

/* The rest of the table */
void cuda_memory_fill(struct kernels *);
void cuda_async_fill(struct cuda_state *);

#endif
