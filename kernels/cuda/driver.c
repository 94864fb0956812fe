/* driver.c - whether there is a driver that this CUDA runtime can work with.
 *
 * The runtime, which is linked statically, opens the driver's library by itself and then says one
 * thing for all that may be wrong with it, so it is looked at here first.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "kernels/cuda/cuda.h"

/* CUDA's major versions and the first release of the driver that runs programs of it */
static const struct requirement {
    int major;
    const char *release;
} requirements[] = {{12, "525"}, {13, "580"}};
enum { REQUIREMENTS = sizeof requirements / sizeof *requirements };

static const char *release_wanted(int major)
{
    for (int i = 0; i < REQUIREMENTS; i++)
        if (requirements[i].major == major) return requirements[i].release;
    return "a newer one";
}

void cuda_driver_release(char *ret, size_t size)
{
    FILE *file = fopen("/sys/module/nvidia/version", "r");
    *ret = '\0';
    if (!file) return;
    if (!fgets(ret, (int)size, file)) *ret = '\0';
    (void)fclose(file);
    ret[strcspn(ret, "\n")] = '\0';
}

err cuda_driver_find(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return fail(ERR_DEVICE, "libcuda.so.1 not found");
    (void)dlclose(library);

    int driver = 0, runtime = CUDART_VERSION; /* 12020: CUDA 12.2 */
    char release[32];
    if (cudaDriverGetVersion(&driver) == cudaSuccess && driver / 1000 >= runtime / 1000) return OK;
    (void)cudaGetLastError();
    cuda_driver_release(release, sizeof release);
    return fail(ERR_DEVICE, "driver too old: needs %s, has %s (CUDA %d.%d)",
                release_wanted(runtime / 1000), *release ? release : "an unknown release",
                driver / 1000, driver % 1000 / 10);
}
