/* library.h - a shared library that is opened when it is first needed. */
#ifndef NET_LIBRARY_H
#define NET_LIBRARY_H

#include <stddef.h>

#include "core/base/error.h"

struct library {
    const char *file, *package; /* libcurl.so.4, libcurl4 */
    const char *need;           /* who needs it: "URLs need libcurl" */
    void *handle;               /* NULL: it is not open */
};

/* A function of it, and the pointer by which it is called. */
struct library_function {
    const char *name;
    void **at;
};

/* Opens it, if it is not open yet, and finds its functions. ERR_IO: it is not installed, or is too
 * old. One thread at a time. */
err library_open(struct library *, const struct library_function *, size_t count);

#endif
