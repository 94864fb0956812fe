/* read_files.h - checks that a command does not overwrite what it reads: data, spec or checkpoint,
 * also under another path to the same file.
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
/* The same for files of data; URLs and files that do not exist are not checked. */
err output_check_data(const struct written_file *, const struct spec *);
/* The same for the folder of checkpoints, also if it does not exist yet. A prefix or an index file
 * stands for its folder; NULL is fine. */
err output_check_folder(const struct written_file *, const char *checkpoint);

#endif
