/* no_blas.c - stands in for kernels/cuda/blas.c: there is no cuBLAS for an emulated GPU. */
#include "kernels/cuda/cuda.h"

err cuda_blas_find(struct cuda_blas *ret)
{
    return fail(ERR_DEVICE, "none for an emulated GPU");
}

void cuda_blas_drop(struct cuda_blas *blas)
{
    *blas = (struct cuda_blas){0};
}

err cuda_blas_open(struct device *d, enum precision precision)
{
    return cuda_blas_find(&(struct cuda_blas){0});
}

void cuda_blas_close(struct cuda_state *state)
{
    cuda_blas_drop(&state->blas);
}
