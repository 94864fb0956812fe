/* local.h - the file system of this host. */
#ifndef CORE_BASE_FILES_LOCAL_H
#define CORE_BASE_FILES_LOCAL_H

#include "core/base/files/file_system.h"

extern const struct file_system file_system_local;

/* Also what can be read only once (pipe.h). */
err local_open_or_pipe(const char *path, struct file **ret);

/* As streams of the C library, of whatever a person names. A pipe is read to its end first
 * (pipe.h); to write to one, somebody must be reading it. ERR_INPUT: the reason alone where it is
 * written to, with the path where it is read; errno. */
err local_open_text(const char *path, FILE **ret);
err local_open_output(const char *path, FILE **ret);

bool local_is_there(const char *path);

#endif
