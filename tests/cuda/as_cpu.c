/* as_cpu.c - lets tests that were written for the CPU run on a GPU, real or emulated: the linker
 * sends their calls of device_open_cpu() here (--wrap).
 *
 * The device is a watched one, whose memory is the host's too, since such tests fill and read it
 * directly. It stands for the best instruction set with one thread; others are told to be absent.
 * GPU_BARE in the environment: it uses no library of NVIDIA's.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/device.h"

err __wrap_device_open_cpu(int threads, const char *isa, struct device *ret);
err __real_device_open_cpu(int threads, const char *isa, struct device *ret);

err __wrap_device_open_cpu(int threads, const char *isa, struct device *ret)
{
    if (threads == 1 && (!isa || strcmp(isa, "avx512") == 0))
        return device_open_gpu(
            &(struct gpu_options){.is_watched = true, .is_bare = getenv("GPU_BARE") != NULL}, ret);
    struct device cpu;
    TRY(__real_device_open_cpu(threads, isa, &cpu)); /* what nobody has stays an error */
    device_close(&cpu);
    return fail(ERR_DEVICE, "a GPU is no %s with %d threads", isa ? isa : "CPU", threads);
}
