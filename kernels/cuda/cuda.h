/* cuda.h - the parts of the CUDA device, as they see each other. C and C++ read it.
 *
 * Kernels go into one stream, in order; copies beside them have streams of their own (async.c). A
 * call that fails is remembered with its name and that of the last kernel, and synchronize() tells
 * it; what was queued after it does no harm, since a context that is broken refuses everything.
 */
#ifndef KERNELS_CUDA_CUDA_H
#define KERNELS_CUDA_CUDA_H

#include <cuda_runtime_api.h>

#include "kernels/cuda/library/library.h"
#include "kernels/async.h"

enum {
    PARTIALS_MAX = 1 << 16, /* doubles: what blocks of a reduction leave for the last one */
    RESULTS_MAX = 512,      /* doubles: reductions whose results come in one copy */
    STAGING_BYTES = 4 << 20,
    STAGINGS = 2, /* one is filled while the other is under way */
    DEVICE_NAME_MAX = 480,
    FAILURE_MAX = 512,
    REPLAYS_NOTE_MAX = 160,
    GPU_WAIT_LIMIT_S = 600, /* for a GPU that does not answer; examples/README.md has all limits */
};

/* Numbers of cuBLAS' headers for its product: float32, any algorithm, and ways to compute */
enum {
    BLAS_NO_MEMORY = 3,        /* CUBLAS_STATUS_ALLOC_FAILED */
    BLAS_FLOAT = 0,            /* CUDA_R_32F */
    BLAS_ANY_ALGORITHM = -1,   /* CUBLAS_GEMM_DEFAULT */
    BLAS_COMPUTE_FLOAT32 = 68, /* CUBLAS_COMPUTE_32F */
    BLAS_COMPUTE_BF16 = 75,    /* CUBLAS_COMPUTE_32F_FAST_16BF */
    BLAS_COMPUTE_TF32 = 77,    /* CUBLAS_COMPUTE_32F_FAST_TF32 */
};

/* cuBLAS as far as it is used: by its own numbers, since its header need not be there. */
struct cuda_blas {
    struct cuda_library library;
    void *handle, *workspace;
    int compute; /* BLAS_COMPUTE_...: what is made of the operands */
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
    int index; /* of the GPU */
    bool is_watched;
    enum precision precision;
    cudaStream_t stream;
    cudaStream_t in; /* copies beside it: of batches */
    struct beside {  /* the same, of values and of gradients */
        cudaStream_t stream;
        cudaEvent_t before, behind; /* where the first stream was when this was told to follow, and
                                       the other way round */
        bool is_used;               /* something was queued that nobody has waited for */
        const struct mark *last;    /* of `up`: behind all of it; NULL: none was set there yet */
    } up, out;
    struct {
        bool is_on;
        const struct mark *follows; /* the last of `up`, if what is recorded follows that */
    } recording;
    struct { /* see replays.c */
        bool is_tried, hold;
        char note[REPLAYS_NOTE_MAX]; /* for the user, to be told; "": nothing */
        char told[REPLAYS_NOTE_MAX];
    } replays;
    void *staging[STAGINGS]; /* pinned */
    cudaEvent_t staged[STAGINGS];
    int next_staging;
    double *partials;     /* [PARTIALS_MAX] of the device */
    double *results;      /* [RESULTS_MAX] of the device, behind them */
    double *host_results; /* [RESULTS_MAX], pinned */
    float *product_sums;  /* of the device: what the slices of a product leave; NULL with cuBLAS */
    struct cuda_blas blas;
    struct cuda_dnn *dnn; /* in dnn.h, opened by need; NULL: convolutions are our own */
    struct {
        const char *kernel; /* the last that was launched; NULL: none yet */
        const char *mark;   /* what is queued now, NULL: nothing in particular; both borrowed */
        const char *mark_name;
    } queued;
    int wait_limit_ms;
    bool is_silent; /* the limit was reached: nothing may wait for the GPU any more */
    err failure;    /* the first failure of queued work, until synchronize() tells it */
    char failure_text[FAILURE_MAX];
};

/* Whether it went well; remembers it otherwise. */
bool cuda_check(struct device *, cudaError_t, const char *call);

/* The same where it is told at once and not remembered. */
err cuda_demand(cudaError_t, const char *call);

/* What is remembered, which is forgotten by it; OK: nothing. */
err cuda_failure(struct cuda_state *);

/* The kind of a failure: what the caller can do about it. ERR_LOST: the GPU itself broke. */
err cuda_kind(cudaError_t);

/* Makes the device's GPU that of the calling thread: CUDA keeps one for each. */
void cuda_select(struct device *);
/* The same before something is queued: false where the GPU does not answer any more, since its
 * queue may be full, and whoever queues then would wait without a limit. */
bool cuda_may_queue(struct device *);

/* After the launch of a kernel: remembers its name, or that it failed. */
void cuda_launched(struct device *, const char *kernel, cudaError_t);

/* Remembers a failure, unless there is one already. call NULL: it is told of no call. */
void cuda_remember(struct device *, err kind, const char *call, const char *why);

/* Remembers a failure that no call of CUDA has told. */
void cuda_refuse(struct device *, const char *why);

/* Brings the first results to the host: waits. 0 where the device failed, which synchronize()
 * tells. They stay until the next call. */
const double *cuda_results(struct device *, int count);

/* All waits for the GPU, but for a launch that finds its queue full: until what is queued in the
 * stream is done, or the event has been reached. false: it failed, or does not answer, which
 * synchronize() tells. */
bool cuda_await_stream(struct device *, cudaStream_t);
bool cuda_await_event(struct device *, cudaEvent_t);
/* After a library's call that failed: a GPU that broke before it is told of first. What is being
 * recorded cannot be waited for; the recording comes to nothing anyway. */
void cuda_await_cause(struct device *);
void cuda_wait_init(struct cuda_state *);

/* Staging, stream and scratch memory; fini takes a half-made one. */
err cuda_memory_init(struct device *);
void cuda_memory_fini(struct cuda_state *);

/* Streams and events of async.c; fini takes half-made ones. */
err cuda_async_init(struct cuda_state *);
void cuda_async_fini(struct cuda_state *);
/* What is queued next waits for what is under way in `up` and `out`. */
void cuda_join(struct device *);

/* See async.h. */
err cuda_record(struct device *);
err cuda_record_end(struct device *, struct recording **ret);
void cuda_replay(struct device *, const struct recording *);
void cuda_recording_close(struct device *, struct recording *);

/* Once for each device, when nothing is recorded: whether replays.hold, that an event of a
 * recording is not reached from its launch on until its turn has come. Waits; an error is one of
 * the wait. */
err cuda_replays_try(struct device *);

/* ERR_DEVICE: the driver is not there, or too old for the runtime. */
err cuda_driver_find(void);
/* Of CUDA, that the driver can run: 13. 0: there is no driver. */
int cuda_driver_major(void);
/* "580.65.06 for CUDA 13.0", "of an unknown release for CUDA 13.0" */
void cuda_driver_describe(char *ret, size_t size);

/* Looks for cuBLAS where users have it. ERR_DEVICE: it is nowhere, or of another version; our own
 * products are used then. */
err cuda_blas_find(struct cuda_library *ret);
/* With a handle on the device's stream. */
err cuda_blas_open(struct device *, enum precision);
void cuda_blas_close(struct cuda_state *);

/* The same of cuDNN, for convolutions. It is large, and models without any never need it: opening
 * only says whether it does what the precision asks for (ERR_DEVICE: no), and the first convolution
 * opens the library. */
err cuda_dnn_find(struct cuda_library *ret);
err cuda_dnn_open(struct device *, enum precision);
void cuda_dnn_close(struct cuda_state *);
/* NULL: it is not there. Who asks first hears of it, or why, by device_note(). */
struct cuda_dnn *cuda_dnn_use(struct device *);

/* to [columns, rows] = from [rows, columns] with rows and columns exchanged, (+)= where add. Both
 * extents are at least 1, and there are less than 2^31 elements. */
struct transposition {
    float *to;
    const float *from;
    int64_t rows, columns;
    bool add;
};
void cuda_transpose(struct device *, const struct transposition *);

/* Convolution by kernels of our own, which do every shape that can be: the functions of struct
 * kernels, on a plan of their own. */
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

/* Scratch memory of our own products, which they take where there is no cuBLAS */
err cuda_product_init(struct device *);
void cuda_product_fini(struct cuda_state *);

/* The kernels, each by the file that has its name or that of its kind */
#define KERNEL(returns, name, ...) returns cuda_##name(struct device *, __VA_ARGS__);
#include "kernels/kernels.def"

/* The rest of the table */
void cuda_memory_fill(struct kernels *);
void cuda_async_fill(struct cuda_state *);

#endif
