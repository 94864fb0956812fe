/* emulated.c - opens the emulated GPU, and stands in for what looks for the driver and for cuBLAS.
 */
#include "tests/cuda/emulated.h"

#include "kernels/cuda/cuda.h"

err device_open_emulated(struct device *ret)
{
    return device_open_gpu(&(struct gpu_options){0}, ret);
}

err cuda_driver_find(void)
{
    return OK;
}

void cuda_driver_release(char *ret, size_t size)
{
    *ret = '\0';
}

err cuda_blas_find(struct cuda_blas *ret)
{
    return fail(ERR_DEVICE, "none for an emulated GPU");
}

void cuda_blas_drop(struct cuda_blas *blas)
{
    *blas = (struct cuda_blas){0};
}

err cuda_blas_open(struct device *d, bool allows_tf32)
{
    return cuda_blas_find(&(struct cuda_blas){0});
}

void cuda_blas_close(struct cuda_state *state)
{
    cuda_blas_drop(&state->blas);
}
