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

static void read_release(char *ret, size_t size)
{
    FILE *file = fopen("/sys/module/nvidia/version", "r");
    *ret = '\0';
    if (!file) return;
    if (!fgets(ret, (int)size, file)) *ret = '\0';
    (void)fclose(file);
    ret[strcspn(ret, "\n")] = '\0';
}

/* 12020: CUDA 12.2; 0: there is none */
static int driver_version(void)
{
    int driver = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess) (void)cudaGetLastError();
    return driver;
}

int cuda_driver_major(void)
{
    return driver_version() / 1000;
}

void cuda_driver_describe(char *ret, size_t size)
{
    char release[32];
    const int driver = driver_version();
    read_release(release, sizeof release);
    snprintf(ret, size, "%s for CUDA %d.%d", *release ? release : "of an unknown release",
             driver / 1000, driver % 1000 / 10);
}

/* Toolkits come with a library of that name that only stands for it while programs are linked. */
static err no_driver(cudaError_t status)
{
    if (status == cudaSuccess)
        return fail(ERR_DEVICE,
                    "libcuda.so.1 is no driver, but a stub that programs are linked to");
    return fail(ERR_DEVICE, "libcuda.so.1 does not work: %s", cudaGetErrorString(status));
}

/* The loader's own words where there is one that it cannot take. */
static err not_open(const char *why)
{
    if (!why || strstr(why, "libcuda.so.1: cannot open shared object file: No such file"))
        return fail(ERR_DEVICE, "libcuda.so.1 not found");
    return fail(ERR_DEVICE, "libcuda.so.1 cannot be loaded: %s", why);
}

err cuda_driver_find(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return not_open(dlerror());
    (void)dlclose(library);

    int driver = 0, runtime = CUDART_VERSION; /* 12020: CUDA 12.2 */
    char release[32];
    const cudaError_t status = cudaDriverGetVersion(&driver);
    if (status == cudaSuccess && driver / 1000 >= runtime / 1000) return OK;
    (void)cudaGetLastError();
    if (status != cudaSuccess || driver <= 0) return no_driver(status);
    read_release(release, sizeof release);
    return fail(ERR_DEVICE, "driver too old: needs %s, has %s (CUDA %d.%d)",
                release_wanted(runtime / 1000), *release ? release : "an unknown release",
                driver / 1000, driver % 1000 / 10);
}
