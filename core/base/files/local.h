/* local.h - the file system of this host. */
#ifndef CORE_BASE_FILES_LOCAL_H
#define CORE_BASE_FILES_LOCAL_H

#include "core/base/files/file_system.h"

extern const struct file_system file_system_local;

bool local_is_there(const char *path);

#endif
