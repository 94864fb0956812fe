/* probe.cu - is compiled when the build is set up, as the kernels will be: whether nvcc fits the
 * host's compiler and headers, and is new enough. No part of the program. */
#include "kernels/cuda/launch.cuh"

#if CUDART_VERSION < 12000
#error "CUDA 12.0 is the oldest that can be used"
#endif

static __global__ void probe(double *lane)
{
    (void)block_sum(lane, 1.0);
}

void cuda_probe(struct device *d)
{
    launch(d, {"probe", 1, 1}, probe, (double *)d->state);
}
