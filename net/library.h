/* library.h - a shared library that is loaded when it is first needed (dlopen). */
#ifndef NET_LIBRARY_H
#define NET_LIBRARY_H

#include <stddef.h>

#include "core/base/error.h"

struct library {
    const char *file, *package; /* "libcurl.so.4", "libcurl4" */
    const char *need;           /* for errors: "URLs need libcurl" */
    void *handle;               /* NULL: not loaded */
};

/* A function's name, and the pointer that library_open() sets. */
struct library_function {
    const char *name;
    void **at;
};

/* Loads it unless it is loaded, and looks its functions up. ERR_IO: not installed, or too old. Not
 * thread-safe. */
err library_open(struct library *, const struct library_function *, size_t count);

#endif
