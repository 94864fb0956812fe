/* library.h - NVIDIA libraries that are loaded if users have installed them: they are too large to
 * link, and come with CUDA's toolkit or Python packages. */
#ifndef KERNELS_CUDA_LIBRARY_LIBRARY_H
#define KERNELS_CUDA_LIBRARY_LIBRARY_H

#include <stdbool.h>

#include "core/base/error.h"

/* A library to look for */
struct library_kind {
    const char *name;         /* "cublas": libcublas.so.13 */
    const char *get_property; /* its function that returns the parts of its version */
    const char *const *parts; /* libraries that must be in its folder; ends with NULL */
    const int *majors;        /* supported versions, best first; ends with 0 */
    bool counts_as_cuda;      /* its major versions are CUDA's: newer ones than the driver's cannot
                                 work */
};

/* A library that was found. It is never unloaded: threads and other things that NVIDIA's libraries
 * leave behind would run unmapped code. */
struct cuda_library {
    void *handle; /* NULL: none */
    int version;  /* 130100 */
    char path[192];
};

/* Searches the loader's path and the folders of toolkits and Python packages. ERR_DEVICE: not
 * found, or only other versions. */
err cuda_library_find(const struct library_kind *, struct cuda_library *ret);

/* Loads another library, such as "nvrtc", from its folder or from one in the same tree, so that the
 * loader already has it if the first library opens it by name later. Finding none is no failure. */
void cuda_library_open_beside(const struct cuda_library *, const char *name);

/* Looks up a function; false: it has none of that name. */
bool cuda_library_function(const struct cuda_library *, const char *name, void *ret_pointer);

/* "cuBLAS 13.1.0"; size with the final zero */
enum { LIBRARY_VERSION_MAX = 48 };
void cuda_library_version(const struct cuda_library *, const char *name,
                          char ret[LIBRARY_VERSION_MAX]);

#endif
