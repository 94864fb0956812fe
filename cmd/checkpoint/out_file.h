/* out_file.h - a file that has its bytes before it has its name, here or behind a URL. */
#ifndef CMD_CHECKPOINT_OUT_FILE_H
#define CMD_CHECKPOINT_OUT_FILE_H

#include <stdio.h>

#include "core/base/error.h"

struct file_writer;
struct out_file {
    FILE *file;                 /* NULL: none is open */
    struct file_writer *writer; /* behind a URL */
    char *path, *temporary;     /* temporary NULL: nothing of that name is left to remove */
};

/* One of a temporary name beside path; a URL has its name when it is whole. ERR_IO; ERR_INPUT: of a
 * URL nothing can be written to. Closed in any case. */
err out_file_open(struct out_file *, const char *path);
err out_file_publish(struct out_file *); /* ERR_IO, also for what was not written before */
void out_file_close(struct out_file *);  /* also of one that is zeroed; without its name it goes */

#endif
