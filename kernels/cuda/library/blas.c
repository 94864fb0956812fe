/* blas.c - cuBLAS, called with constants of its header, which the build does not need.
 *
 * Products have the same bits in every run: one stream, our own scratch memory and no atomics.
 */
#include "kernels/cuda/cuda.h"

enum {
    SUCCESS = 0,                /* CUBLAS_STATUS_SUCCESS */
    WORKSPACE_BYTES = 32 << 20, /* NVIDIA's advice for Hopper; older GPUs need less */
};

static const char *const parts[] = {"cublasLt", NULL};

/* Their interfaces are the same for the functions used here. */
static const int majors[] = {13, 12, 0};

static const struct library_kind kind = {"cublas", "cublasGetProperty", parts, majors, true};

err cuda_blas_find(struct cuda_library *ret)
{
    return cuda_library_find(&kind, ret);
}

static err demand(const struct cuda_blas *blas, int status, const char *call)
{
    return status == SUCCESS ? OK : fail(ERR_DEVICE, "%s: %s", call, blas->status_text(status));
}

static int compute_of(enum precision precision)
{
    switch (precision) {
    case PRECISION_TF32:
        return BLAS_COMPUTE_TF32;
    case PRECISION_BF16:
        return BLAS_COMPUTE_BF16;
    case PRECISION_FLOAT32:
        break;
    }
    return BLAS_COMPUTE_FLOAT32;
}

static err set_up(struct cuda_state *state)
{
    struct cuda_blas *blas = &state->blas;
    const struct cuda_library *library = &blas->library;
    int (*create)(void **handle), (*set_stream)(void *handle, cudaStream_t);
    int (*set_workspace)(void *handle, void *memory, size_t bytes);
    if (!cuda_library_function(library, "cublasCreate_v2", &create) ||
        !cuda_library_function(library, "cublasSetStream_v2", &set_stream) ||
        !cuda_library_function(library, "cublasSetWorkspace_v2", &set_workspace) ||
        !cuda_library_function(library, "cublasGemmEx", &blas->gemm) ||
        !cuda_library_function(library, "cublasGetStatusString", &blas->status_text) ||
        !cuda_library_function(library, "cublasDestroy_v2", &blas->destroy))
        return fail(ERR_DEVICE, "%s lacks a function", library->path);

    TRY(demand(blas, create(&blas->handle), "cublasCreate"));
    if (cudaMalloc(&blas->workspace, WORKSPACE_BYTES) != cudaSuccess) {
        (void)cudaGetLastError();
        return fail(ERR_MEMORY, "no memory for cuBLAS");
    }
    /* in this order, because setting the stream resets the workspace */
    TRY(demand(blas, set_stream(blas->handle, state->stream), "cublasSetStream"));
    return demand(blas, set_workspace(blas->handle, blas->workspace, WORKSPACE_BYTES),
                  "cublasSetWorkspace");
}

err cuda_blas_open(struct device *d, enum precision precision)
{
    struct cuda_state *state = d->state;
    TRY(cuda_blas_find(&state->blas.library));
    state->blas.compute = compute_of(precision);
    err e = set_up(state);
    if (e) cuda_blas_close(state);
    return e;
}

void cuda_blas_close(struct cuda_state *state)
{
    struct cuda_blas *blas = &state->blas;
    if (blas->handle) (void)blas->destroy(blas->handle);
    if (blas->workspace) (void)cudaFree(blas->workspace);
    *blas = (struct cuda_blas){0};
}
