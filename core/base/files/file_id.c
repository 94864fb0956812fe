/* file_id.c - see file_id.h. */
#include "core/base/files/file_id.h"

#include <sys/stat.h>

bool file_id_find(const char *path, struct file_id *ret)
{
    struct stat status;
    if (stat(path, &status)) return false;
    *ret = (struct file_id){status.st_dev, status.st_ino};
    return true;
}

bool file_id_is_at(const char *path, const struct file_id *id)
{
    struct file_id found;
    return file_id_find(path, &found) && found.device == id->device && found.inode == id->inode;
}
