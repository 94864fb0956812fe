/* out_file.h - writes a file under a temporary name and then renames it, locally or behind a URL.
 */
#ifndef CMD_OUT_FILE_H
#define CMD_OUT_FILE_H

#include <stdio.h>

#include "core/base/error.h"

struct file_writer;
struct out_file {
    FILE *file;                 /* NULL: none is open */
    struct file_writer *writer; /* behind a URL */
    char *path;
    char *target;    /* the file to replace: the path, with symbolic links resolved */
    char *temporary; /* the temporary file beside it; NULL: none to remove */
};

/* Creates a temporary file beside path; behind a URL the file appears when it is complete. Written
 * in place, because they cannot be replaced: devices, pipes, files that are mount points or in
 * folders where no file can be created, descriptors of unnamed files. ERR_IO; ERR_INPUT: a URL that
 * cannot be written to; the text begins with the path. Needs out_file_close() in any case. */
err out_file_open(struct out_file *, const char *path);
/* Renames it to path. Also reports earlier write errors: ERR_IO, for a URL also ERR_INPUT. */
err out_file_publish(struct out_file *);
/* A zeroed one is fine. If it was not published it is removed, and the old file stays; one written
 * in place has lost its old content. */
void out_file_close(struct out_file *);
/* Removes a file of an earlier output that the new output does not have. Does nothing behind a URL,
 * where writing may be allowed but not listing or removing. ERR_IO */
err out_file_remove(const char *path);

#endif
