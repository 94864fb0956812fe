/* local.h - the file system of this host. */
#ifndef CORE_BASE_FILES_LOCAL_H
#define CORE_BASE_FILES_LOCAL_H

#include "core/base/files/file_system.h"

extern const struct file_system file_system_local;

/* Opens also pipes and "-" (pipe.h). */
err local_open_or_pipe(const char *path, struct file **ret);

/* Open a path that a user has given as a FILE. A pipe is read to its end first (pipe.h); to write
 * to one, a process must be reading it. ERR_INPUT: the text has the path for reading, only the
 * reason for writing; errno is set. */
err local_open_text(const char *path, FILE **ret);
err local_open_output(const char *path, FILE **ret);

bool local_is_there(const char *path);

#endif
