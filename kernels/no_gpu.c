/* no_gpu.c - stands in for cuda/ where the build found no nvcc. */
#include "kernels/device.h"

err gpu_list(struct gpus *ret)
{
    return fail(ERR_DEVICE, "this dtrain was built without CUDA");
}

err gpu_count(int *ret)
{
    return fail(ERR_DEVICE, "this dtrain was built without CUDA");
}

err device_open_gpu(const struct gpu_options *options, struct device *ret)
{
    return fail(ERR_DEVICE, "this dtrain was built without CUDA");
}
