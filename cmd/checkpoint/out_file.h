/* out_file.h - a file of this host that has its bytes before it has its name. */
#ifndef CMD_CHECKPOINT_OUT_FILE_H
#define CMD_CHECKPOINT_OUT_FILE_H

#include <stdio.h>

#include "core/base/error.h"

struct out_file {
    FILE *file;             /* NULL: none is open */
    char *path, *temporary; /* temporary NULL: nothing of that name is left to remove */
};

/* One of a temporary name beside path. ERR_IO. Closed in any case. */
err out_file_open(struct out_file *, const char *path);
err out_file_publish(struct out_file *); /* ERR_IO, also for what was not written before */
void out_file_close(struct out_file *);  /* also of one that is zeroed; without its name it goes */

#endif
