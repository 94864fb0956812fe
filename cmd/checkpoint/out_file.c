/* out_file.c - see out_file.h. */
#include "cmd/checkpoint/out_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

err out_file_open(struct out_file *o, const char *path)
{
    *o = (struct out_file){.path = strdup(path)};
    if (asprintf(&o->temporary, "%s.partial-%d", path, (int)getpid()) < 0) o->temporary = NULL;
    if (!o->path || !o->temporary) return fail(ERR_MEMORY, "no memory for %s", path);
    o->file = fopen(o->temporary, "wxe");
    return o->file ? OK : fail(ERR_IO, "%s: %s", path, strerror(errno));
}

err out_file_publish(struct out_file *o)
{
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
    free(o->path);
    free(o->temporary);
    *o = (struct out_file){0};
}
