/* mapped.h - a file of this host that is read by memory: a row here and there without a call of the
 * system for each. What cannot be read any more, since the file was cut or its disk fails, is an
 * error as it is of calls, and no signal. */
#ifndef CORE_BASE_FILES_MAPPED_H
#define CORE_BASE_FILES_MAPPED_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

struct mapped_file {
    const uint8_t *at; /* NULL: it is not mapped */
    size_t bytes;      /* as it was opened */
};

/* What cannot be mapped is left unmapped: it can be read by calls. */
struct mapped_file mapped_open(const char *path);
void mapped_close(struct mapped_file *);
/* Of what is inside of it. ERR_IO: it cannot be read. Any thread may. */
err mapped_read(const struct mapped_file *, uint64_t offset, void *to, size_t bytes);

#endif
