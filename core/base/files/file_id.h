/* file_id.h - the identity of a local file: one file may have several names, and a name may be
 * given to another file. */
#ifndef CORE_BASE_FILES_FILE_ID_H
#define CORE_BASE_FILES_FILE_ID_H

#include <stdbool.h>
#include <sys/types.h>

struct file_id {
    dev_t device;
    ino_t inode;
};

bool file_id_find(const char *path, struct file_id *ret); /* false: stat fails */
bool file_id_is_at(const char *path, const struct file_id *);

#endif
