/* cuda.h - the parts of the CUDA device, as they see each other. C and C++ read it.
 *
 * All work goes into one stream, in order. A call that fails is remembered with its name and that
 * of the last kernel, and synchronize() tells it; what was queued after it does no harm, since a
 * context that is broken refuses everything.
 */
#ifndef KERNELS_CUDA_CUDA_H
#define KERNELS_CUDA_CUDA_H

#include <cuda_runtime_api.h>

#include "kernels/kernels.h"

enum {
    PARTIALS_MAX = 1 << 16, /* doubles: what blocks of a reduction leave for the last one */
    STAGING_BYTES = 4 << 20,
    STAGINGS = 2, /* one is filled while the other is under way */
    DEVICE_NAME_MAX = 160,
    FAILURE_MAX = 512,
};

/* Numbers of cuBLAS' headers for its product: float32, any algorithm, and ways to compute */
enum {
    BLAS_FLOAT = 0,            /* CUDA_R_32F */
    BLAS_ANY_ALGORITHM = -1,   /* CUBLAS_GEMM_DEFAULT */
    BLAS_COMPUTE_FLOAT32 = 68, /* CUBLAS_COMPUTE_32F */
    BLAS_COMPUTE_BF16 = 75,    /* CUBLAS_COMPUTE_32F_FAST_16BF */
    BLAS_COMPUTE_TF32 = 77,    /* CUBLAS_COMPUTE_32F_FAST_TF32 */
};

/* cuBLAS as far as it is used: by its own numbers, since its header need not be there. */
struct cuda_blas {
    void *library, *handle, *workspace;
    int version; /* 130100 */
    char path[192];
    int compute; /* BLAS_COMPUTE_...: what is made of the operands */
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
    void *staging[STAGINGS]; /* pinned */
    cudaEvent_t staged[STAGINGS];
    double *partials;    /* [PARTIALS_MAX] of the device */
    double *result;      /* pinned: one number that a reduction brings back */
    float *product_sums; /* of the device: what the slices of a product leave; NULL with cuBLAS */
    struct cuda_blas blas;
    const char *kernel; /* the last that was launched; NULL: none yet */
    const char *marked; /* what is queued now, NULL: nothing in particular; both borrowed */
    const char *marked_name;
    err failure; /* the first failure of queued work, until synchronize() tells it */
    char failure_text[FAILURE_MAX];
};

/* Whether it went well; remembers it otherwise. */
bool cuda_check(struct device *, cudaError_t, const char *call);

/* The kind of a failure: what the caller can do about it. ERR_LOST: the GPU itself broke. */
err cuda_kind(cudaError_t);

/* Makes the device's GPU that of the calling thread: CUDA keeps one for each. */
void cuda_select(struct device *);

/* After the launch of a kernel: remembers its name, or that it failed. */
void cuda_launched(struct device *, const char *kernel, cudaError_t);

/* Remembers a failure that no call of CUDA has told. */
void cuda_refuse(struct device *, const char *why);

/* Brings partials[0] to the host: waits. */
double cuda_result(struct device *);

/* Staging, stream and scratch memory; fini takes a half-made one. */
err cuda_memory_init(struct device *);
void cuda_memory_fini(struct cuda_state *);

/* ERR_DEVICE: the driver is not there, or too old for the runtime. */
err cuda_driver_find(void);
/* "580.65.06"; "" where the system does not say */
void cuda_driver_release(char *ret, size_t size);

/* Looks for cuBLAS where users have it. ERR_DEVICE: it is nowhere, or of another version; our own
 * products are used then. Fills library, path and version of `ret` alone. */
err cuda_blas_find(struct cuda_blas *ret);
void cuda_blas_drop(struct cuda_blas *);
/* With a handle on the device's stream. */
err cuda_blas_open(struct device *, enum precision);
void cuda_blas_close(struct cuda_state *);

/* Scratch memory of our own products, which they take where there is no cuBLAS */
err cuda_product_init(struct device *);
void cuda_product_fini(struct cuda_state *);

void cuda_memory_fill(struct kernels *);
void cuda_vector_fill(struct kernels *);
void cuda_reduce_fill(struct kernels *);
void cuda_activate_fill(struct kernels *);
void cuda_rows_fill(struct kernels *);
void cuda_losses_fill(struct kernels *);
void cuda_metrics_fill(struct kernels *);
void cuda_pool_fill(struct kernels *);
void cuda_update_fill(struct kernels *);
void cuda_gemm_fill(struct kernels *);
void cuda_conv_fill(struct kernels *);

#endif
