/* out_file.c - see out_file.h. */
#include "cmd/checkpoint/out_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/files/file_system.h"

/* ---- behind a URL ---- */

static ssize_t append(void *writer, const char *from, size_t bytes)
{
    if (file_append(writer, from, bytes) == OK) return (ssize_t)bytes;
    errno = EIO;
    return 0;
}

static err open_there(struct out_file *o)
{
    const cookie_io_functions_t calls = {.write = append};
    if (!o->path) return fail(ERR_MEMORY, "no memory for a path");
    TRY(file_create(o->path, &o->writer));
    o->file = fopencookie(o->writer, "w", calls);
    return o->file ? OK : fail(ERR_MEMORY, "no memory for %s", o->path);
}

/* Why something was not written is the last error of this thread, if nothing else failed since. */
static err publish_there(struct out_file *o)
{
    const bool is_written = !fflush(o->file) && !ferror(o->file) && !o->writer->has_failed;
    return is_written ? file_finish(o->writer)
                      : fail(ERR_IO, "%s: not all could be written: %s", o->path, error_text());
}

/* ---- here ---- */

err out_file_open(struct out_file *o, const char *path)
{
    *o = (struct out_file){.path = strdup(path)};
    if (path_is_url(path)) return open_there(o);
    if (asprintf(&o->temporary, "%s.partial-%d", path, (int)getpid()) < 0) o->temporary = NULL;
    if (!o->path || !o->temporary) return fail(ERR_MEMORY, "no memory for %s", path);
    o->file = fopen(o->temporary, "wxe");
    return o->file ? OK : fail(ERR_IO, "%s: %s", path, strerror(errno));
}

err out_file_publish(struct out_file *o)
{
    if (o->writer) return publish_there(o);
    const bool is_written = !ferror(o->file) && fflush(o->file) == 0 && fsync(fileno(o->file)) == 0;
    if (!is_written) return fail(ERR_IO, "%s: %s", o->temporary, strerror(errno));
    if (rename(o->temporary, o->path)) return fail(ERR_IO, "%s: %s", o->path, strerror(errno));
    free(o->temporary);
    o->temporary = NULL;
    return OK;
}

void out_file_close(struct out_file *o)
{
    if (o->file) {
        fclose(o->file);
        if (o->temporary) unlink(o->temporary);
    }
    file_drop(o->writer);
    free(o->path);
    free(o->temporary);
    *o = (struct out_file){0};
}
