/* library.h - libraries of NVIDIA's that are opened where users have them: they are too large to be
 * linked, and come with CUDA's toolkit or with Python packages. */
#ifndef KERNELS_CUDA_LIBRARY_LIBRARY_H
#define KERNELS_CUDA_LIBRARY_LIBRARY_H

#include <stdbool.h>

#include "core/base/error.h"

/* What is looked for */
struct library_kind {
    const char *name;         /* "cublas": libcublas.so.13 */
    const char *get_property; /* its function that tells its version, in parts */
    const char *const *parts; /* libraries that must lie beside it; ends with NULL */
    const int *majors;        /* versions that will do, the best first; ends with 0 */
    bool counts_as_cuda;      /* its majors are CUDA's: those above the driver's cannot work */
};

/* One that was found. It is never closed: what NVIDIA's libraries leave behind, threads among it,
 * would run into code that is gone. */
struct cuda_library {
    void *handle; /* NULL: none */
    int version;  /* 130100 */
    char path[192];
};

/* On the loader's path, or in the folders of toolkits and Python packages. ERR_DEVICE: it is
 * nowhere, or of other versions only. */
err cuda_library_find(const struct library_kind *, struct cuda_library *ret);

/* Other libraries of the name, "nvrtc", that lie in its folder or in one of the same tree: where it
 * opens them itself one day, by name alone, the loader has them. None is no failure. */
void cuda_library_open_beside(const struct cuda_library *, const char *name);

/* A function of it; false where it has none of that name. */
bool cuda_library_function(const struct cuda_library *, const char *name, void *ret_pointer);

/* "cuBLAS 13.1.0": of this many characters at most */
enum { LIBRARY_VERSION_MAX = 48 };
void cuda_library_version(const struct cuda_library *, const char *name,
                          char ret[LIBRARY_VERSION_MAX]);

#endif
