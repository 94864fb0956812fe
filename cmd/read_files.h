/* read_files.h - what a command reads is no place for what it writes: a file of data, the spec, a
 * checkpoint would be lost, by whatever name it goes.
 */
#ifndef CMD_READ_FILES_H
#define CMD_READ_FILES_H

#include "core/train/spec/spec.h"

struct written_file {
    const char *flag; /* "out", for messages */
    const char *path;
};

/* `other` may be NULL or absent. ERR_INPUT: "--out=a.csv: is the spec and would be lost:
 * name another file" */
err output_check(const struct written_file *, const char *what, const char *other);
/* What is behind a URL, or not here (any more), is no file of this host, and no server is asked. */
err output_check_data(const struct written_file *, const struct spec *);
/* What a run keeps in a folder of checkpoints, also where it is not there yet. A prefix or an index
 * means the folder that it is in; NULL is fine. */
err output_check_folder(const struct written_file *, const char *checkpoint);

#endif
