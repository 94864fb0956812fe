/* local.h - the file system of this host. */
#ifndef CORE_BASE_FILES_LOCAL_H
#define CORE_BASE_FILES_LOCAL_H

#include "core/base/files/file_system.h"

extern const struct file_system file_system_local;

/* Also what can be read only once (pipe.h). */
err local_open_or_pipe(const char *path, struct file **ret);

bool local_is_there(const char *path);

#endif
