/* no_gpu.c - stands in for cuda/ where the build found no nvcc. */
#include "kernels/note.h"

const bool gpus_are_built_in = false;

static err fail_absent(void)
{
    return fail(ERR_DEVICE, "this dtrain was built without CUDA");
}

err gpu_list(struct gpus *ret)
{
    return fail_absent();
}

err gpu_count(int *ret)
{
    return fail_absent();
}

err device_open_gpu(const struct gpu_options *options, struct device *ret)
{
    return fail_absent();
}

const char *device_note(struct device *d)
{
    return "";
}
