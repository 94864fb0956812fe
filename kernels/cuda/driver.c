/* driver.c - checks for a driver that supports this CUDA runtime.
 *
 * The statically linked runtime loads the driver's library itself and then reports one error for
 * all causes, so this checks first.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "kernels/cuda/cuda.h"

/* CUDA's major versions, and the first driver release that supports each */
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

/* Toolkits contain a stub library of that name, only for linking. */
static err no_driver(cudaError_t status)
{
    if (status == cudaSuccess)
        return fail(ERR_DEVICE,
                    "libcuda.so.1 is no driver, but a stub that programs are linked to");
    return fail(ERR_DEVICE, "libcuda.so.1 does not work: %s", cudaGetErrorString(status));
}

/* The loader's error text, if the library exists but cannot be loaded. */
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
