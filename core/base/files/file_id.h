/* file_id.h - which file of this host has a name: one file may have several names, and another one
 * may get a name.
 */
#ifndef CORE_BASE_FILES_FILE_ID_H
#define CORE_BASE_FILES_FILE_ID_H

#include <stdbool.h>
#include <sys/types.h>

struct file_id {
    dev_t device;
    ino_t inode;
};

bool file_id_find(const char *path, struct file_id *ret); /* false: nobody can say */
bool file_id_is_at(const char *path, const struct file_id *);

#endif
