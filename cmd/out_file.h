/* out_file.h - a file that has its bytes before it has its name, here or behind a URL. */
#ifndef CMD_OUT_FILE_H
#define CMD_OUT_FILE_H

#include <stdio.h>

#include "core/base/error.h"

struct file_writer;
struct out_file {
    FILE *file;                 /* NULL: none is open */
    struct file_writer *writer; /* behind a URL */
    char *path;
    char *target;    /* that is replaced: the path, or where its link leads */
    char *temporary; /* beside it; NULL: nothing of that name is left to remove */
};

/* One of a temporary name beside path; a URL has its name when it is whole. What cannot be replaced
 * is written as it is: a device or a pipe, a file that is mounted by itself or in whose folder
 * nothing can be made, a descriptor of what has no name. ERR_IO, ERR_INPUT: of a URL nothing can be
 * written to; the text begins with the path. Closed in any case. */
err out_file_open(struct out_file *, const char *path);
/* Also for what was not written before; ERR_IO, or of a URL ERR_INPUT. */
err out_file_publish(struct out_file *);
/* Also of one that is zeroed. Without its name it goes: what had the name before stays; of what
 * could not be replaced nothing does. */
void out_file_close(struct out_file *);
/* What was written under that name before, where what is published now has no such file. Behind a
 * URL it stays: who may write there may not be allowed to look or to remove. ERR_IO */
err out_file_remove(const char *path);

#endif
