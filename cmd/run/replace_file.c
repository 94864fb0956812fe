/* replace_file.c - see replace_file.h. */
#include "cmd/run/replace_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/files/own.h"
#include "core/train/checkpoint/bundle/file.h"

/* Always the same name, so that what a killed process left does not stay. */
static err open_temporary(const char *path, struct output *o)
{
    o->path = strdup(path);
    if (!o->path || asprintf(&o->temporary, "%s.tmp", path) < 0) {
        o->temporary = NULL;
        return fail(ERR_MEMORY, "no memory to write %s", path);
    }
    o->file = own_make(o->temporary);
    return o->file < 0 ? fail(ERR_IO, "%s: %s", o->temporary, strerror(errno)) : OK;
}

err replace_file(const char *path, const char *text)
{
    struct output o = {.file = -1};
    if (path_is_url(path)) return file_put(path, text, strlen(text));
    const err e = open_temporary(path, &o);
    if (!e) return output_finish(&o, text, strlen(text));
    output_drop(&o);
    return e;
}
