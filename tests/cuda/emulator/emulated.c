/* emulated.c - opens the emulated GPU, and stands in for what looks for the driver and for cuBLAS.
 */
#include "tests/cuda/emulator/emulated.h"

#include <stdio.h>

#include "kernels/cuda/cuda.h"

err device_open_emulated(struct device *ret)
{
    return device_open_gpu(&(struct gpu_options){0}, ret);
}

void emulated_set_wait_limit(struct device *d, int milliseconds)
{
    struct cuda_state *state = d->state;
    state->wait_limit_ms = milliseconds;
}

static int driver_major = 13;

void emulated_set_driver(int major)
{
    driver_major = major;
}

int cuda_driver_major(void)
{
    return driver_major;
}

err cuda_driver_find(void)
{
    return OK;
}

void cuda_driver_describe(char *ret, size_t size)
{
    snprintf(ret, size, "emulated");
}
