/* mapped.h - a file of this host that is read through memory: a row here and there costs one cheap
 * call of the system. What cannot be read any more, since the file was cut or its disk fails, is an
 * error as it is from read(), and no signal ends the program. */
#ifndef CORE_BASE_FILES_MAPPED_H
#define CORE_BASE_FILES_MAPPED_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

struct mapped_file {
    const uint8_t *at; /* NULL: it is not mapped */
    size_t bytes;      /* as it was opened */
    int descriptor;    /* for its size as it is now */
};

/* What cannot be mapped is left unmapped: it can be read by calls. */
struct mapped_file mapped_open(const char *path);
void mapped_close(struct mapped_file *);
/* Of what is inside of it. ERR_IO: it cannot be read. Any thread may. */
err mapped_read(const struct mapped_file *, uint64_t offset, void *to, size_t bytes);

#endif
