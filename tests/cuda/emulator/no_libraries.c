/* no_libraries.c - stands in for what finds cuBLAS and cuDNN: there are none for an emulated GPU.
 */
#include "kernels/cuda/cuda.h"

static err none(void)
{
    return fail(ERR_DEVICE, "none for an emulated GPU");
}

err cuda_blas_find(struct cuda_library *ret)
{
    return none();
}

err cuda_blas_open(struct device *d, enum precision precision)
{
    return none();
}

void cuda_blas_close(struct cuda_state *state)
{
    state->blas = (struct cuda_blas){0};
}

err cuda_dnn_find(struct cuda_library *ret)
{
    return none();
}

err cuda_dnn_open(struct device *d, enum precision precision)
{
    return none();
}

struct cuda_dnn *cuda_dnn_use(struct device *d)
{
    return NULL;
}

void cuda_dnn_close(struct cuda_state *state)
{
    state->dnn = NULL;
}
