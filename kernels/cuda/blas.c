/* blas.c - cuBLAS, opened where users have it: it is too large to be linked and comes with CUDA's
 * toolkit or with Python packages. It is called by numbers of its header, which the build does not
 * need.
 *
 * Products are the same in every run: one stream, scratch memory of our own and no atomics.
 */
#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cuda.h"

enum {
    SUCCESS = 0,       /* CUBLAS_STATUS_SUCCESS */
    MAJOR_VERSION = 0, /* of libraryPropertyType; then minor and patch */
    VERSION_PARTS = 3,
    WORKSPACE_BYTES = 32 << 20, /* what NVIDIA advises for Hopper; less for older ones */
    PATTERN_MAX = 512,
    FOLDERS_MAX = 64, /* that one pattern may match */
};

/* Newest first. Their interfaces are the same as far as they are used here. */
static const int majors[] = {13, 12};
enum { MAJORS = sizeof majors / sizeof *majors };

/* Where it may lie: a variable that names the front of the path (NULL: none), and the rest, a
 * pattern of glob(3). Python's packages are `nvidia/cublas` until CUDA 12 and `nvidia/cu13`. */
static const struct place {
    const char *variable, *rest;
} places[] = {
    {"CUDA_HOME", "/lib64"},
    {"CUDA_PATH", "/lib64"},
    {"CUDA_HOME", "/lib"},
    {NULL, "/usr/local/cuda/lib64"},
    {NULL, "/usr/local/cuda-1[0-9]*/lib64"},
    {NULL, "/opt/cuda/lib64"},
    {"VIRTUAL_ENV", "/lib/python3*/site-packages/nvidia/cu*/lib"},
    {"CONDA_PREFIX", "/lib/python3*/site-packages/nvidia/cu*/lib"},
    {"CONDA_PREFIX", "/lib"},
    {"HOME", "/.local/lib/python3*/site-packages/nvidia/cu*/lib"},
    {NULL, "/usr/local/lib/python3*/dist-packages/nvidia/cu*/lib"},
    {NULL, "/usr/local/lib/python3*/site-packages/nvidia/cu*/lib"},
    {NULL, "/usr/lib/python3*/site-packages/nvidia/cu*/lib"},
    {NULL, "/opt/conda/lib/python3*/site-packages/nvidia/cu*/lib"},
};
enum { PLACES = sizeof places / sizeof *places };

/* A function of the library; false where it has none of that name. */
static bool function(void *library, const char *name, void *ret_pointer)
{
    void *found = dlsym(library, name);
    memcpy(ret_pointer, &found, sizeof found);
    return found != NULL;
}

static bool read_version(void *library, int *ret)
{
    int (*get)(int property, int *value), part[VERSION_PARTS];
    if (!function(library, "cublasGetProperty", &get)) return false;
    for (int i = 0; i < VERSION_PARTS; i++)
        if (get(MAJOR_VERSION + i, &part[i]) != SUCCESS) return false;
    *ret = part[0] * 10000 + part[1] * 100 + part[2];
    return true;
}

/* Opens name if it is of that major version, and notes what has come of it. */
static bool open_library(const char *name, int major, struct cuda_blas *ret)
{
    struct cuda_blas blas = {.library = dlopen(name, RTLD_NOW | RTLD_LOCAL)};
    if (!blas.library) return false;
    struct link_map *map;
    if (!read_version(blas.library, &blas.version) || blas.version / 10000 != major ||
        dlinfo(blas.library, RTLD_DI_LINKMAP, &map) != 0) {
        (void)dlclose(blas.library);
        return false;
    }
    snprintf(blas.path, sizeof blas.path, "%s", map->l_name);
    *ret = blas;
    return true;
}

/* The library needs another beside it, which the loader alone might not find. */
static bool open_in_folder(const char *folder, int major, struct cuda_blas *ret)
{
    char name[PATTERN_MAX];
    snprintf(name, sizeof name, "%s/libcublasLt.so.%d", folder, major);
    void *neighbour = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!neighbour) return false;
    snprintf(name, sizeof name, "%s/libcublas.so.%d", folder, major);
    bool is_open = open_library(name, major, ret);
    (void)dlclose(neighbour); /* the library itself keeps it */
    return is_open;
}

static bool open_in_place(const struct place *place, int major, struct cuda_blas *ret)
{
    char pattern[PATTERN_MAX];
    const char *front = place->variable ? getenv(place->variable) : "";
    if (!front || (place->variable && !*front)) return false;
    snprintf(pattern, sizeof pattern, "%s%s", front, place->rest);
    glob_t found;
    if (glob(pattern, 0, NULL, &found) != 0) return false;
    bool is_open = false;
    for (size_t i = 0; i < found.gl_pathc && i < FOLDERS_MAX && !is_open; i++)
        is_open = open_in_folder(found.gl_pathv[i], major, ret);
    globfree(&found);
    return is_open;
}

err cuda_blas_find(struct cuda_blas *ret)
{
    for (int i = 0; i < MAJORS; i++) {
        char name[32];
        snprintf(name, sizeof name, "libcublas.so.%d", majors[i]);
        if (open_library(name, majors[i], ret)) return OK;
        for (int j = 0; j < PLACES; j++)
            if (open_in_place(&places[j], majors[i], ret)) return OK;
    }
    return fail(ERR_DEVICE, "libcublas.so.%d not found", majors[0]);
}

void cuda_blas_drop(struct cuda_blas *blas)
{
    if (blas->library) (void)dlclose(blas->library);
    *blas = (struct cuda_blas){0};
}

static err demand(int status, const char *call)
{
    return status == SUCCESS ? OK : fail(ERR_DEVICE, "%s: status %d", call, status);
}

static int compute_of(enum precision precision)
{
    switch (precision) {
    case PRECISION_TF32:
        return BLAS_COMPUTE_TF32;
    case PRECISION_BF16:
        return BLAS_COMPUTE_BF16;
    case PRECISION_FLOAT32:
        break;
    }
    return BLAS_COMPUTE_FLOAT32;
}

static err set_up(struct cuda_state *state)
{
    struct cuda_blas *blas = &state->blas;
    int (*create)(void **handle), (*set_stream)(void *handle, cudaStream_t);
    int (*set_workspace)(void *handle, void *memory, size_t bytes);
    if (!function(blas->library, "cublasCreate_v2", &create) ||
        !function(blas->library, "cublasSetStream_v2", &set_stream) ||
        !function(blas->library, "cublasSetWorkspace_v2", &set_workspace) ||
        !function(blas->library, "cublasGemmEx", &blas->gemm) ||
        !function(blas->library, "cublasDestroy_v2", &blas->destroy))
        return fail(ERR_DEVICE, "%s lacks a function", blas->path);

    TRY(demand(create(&blas->handle), "cublasCreate"));
    if (cudaMalloc(&blas->workspace, WORKSPACE_BYTES) != cudaSuccess) {
        (void)cudaGetLastError();
        return fail(ERR_MEMORY, "no memory for cuBLAS");
    }
    /* setting the stream takes a workspace away, so this order */
    TRY(demand(set_stream(blas->handle, state->stream), "cublasSetStream"));
    return demand(set_workspace(blas->handle, blas->workspace, WORKSPACE_BYTES),
                  "cublasSetWorkspace");
}

err cuda_blas_open(struct device *d, enum precision precision)
{
    struct cuda_state *state = d->state;
    TRY(cuda_blas_find(&state->blas));
    state->blas.compute = compute_of(precision);
    err e = set_up(state);
    if (e) cuda_blas_close(state);
    return e;
}

void cuda_blas_close(struct cuda_state *state)
{
    struct cuda_blas *blas = &state->blas;
    if (blas->handle) (void)blas->destroy(blas->handle);
    if (blas->workspace) (void)cudaFree(blas->workspace);
    cuda_blas_drop(blas);
}
