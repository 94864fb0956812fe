/* mapped.h - a local file that is read through memory: a row here and there costs one cheap system
 * call. If the file was truncated or its disk fails, reading returns an error, as read() does,
 * instead of SIGBUS. */
#ifndef CORE_BASE_FILES_MAPPED_H
#define CORE_BASE_FILES_MAPPED_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

struct mapped_file {
    const uint8_t *at; /* NULL: not mapped */
    size_t bytes;      /* size when it was opened */
    int descriptor;    /* for fstat: its size now */
};

/* Returns an unmapped one if mapping fails: the file can still be read by read(). */
struct mapped_file mapped_open(const char *path);
void mapped_close(struct mapped_file *);
/* offset and bytes must be within the file. ERR_IO: it cannot be read. From any thread. */
err mapped_read(const struct mapped_file *, uint64_t offset, void *to, size_t bytes);

#endif
