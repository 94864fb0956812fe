/* replace.c - see replace.h. */
#include "cmd/replace.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/train/checkpoint/checkpoints.h"

enum { SUFFIX_MAX = 8 /* ".tmp" */ };

err replace_file(const char *path, const char *text)
{
    char temporary[CHECKPOINT_PATH_MAX + SUFFIX_MAX];
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    FILE *file = fopen(temporary, "we");
    if (!file) return fail(ERR_IO, "%s: %s", temporary, strerror(errno));
    bool is_written = fputs(text, file) >= 0 && fflush(file) == 0 && fsync(fileno(file)) == 0;
    bool is_closed = fclose(file) == 0;
    if (!is_written || !is_closed || rename(temporary, path))
        return fail(ERR_IO, "%s: %s", path, strerror(errno));
    return OK;
}
