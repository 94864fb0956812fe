/* without_blas.c - cuBLAS is not opened, though it may be there: products are our own. */
#include "kernels/cuda/cuda.h"

err __wrap_cuda_blas_open(struct device *d, enum precision precision);

err __wrap_cuda_blas_open(struct device *d, enum precision precision)
{
    (void)d;
    (void)precision;
    return fail(ERR_DEVICE, "a test wants products of our own");
}
