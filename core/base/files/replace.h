/* replace.h - writes small files atomically: readers find the old file or all of the new one. */
#ifndef CORE_BASE_FILES_REPLACE_H
#define CORE_BASE_FILES_REPLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "core/base/error.h"

/* Through PATH.tmp, always the same name, so that the next write removes what a killed process
 * left: for one writer at a time. Synced to disk. ERR_IO; the text has the path. */
err file_replace(const char *path, const void *, size_t bytes);

/* The same for a file of a cache: several processes may write it at once; not synced to disk. A
 * local path. false: not written, errno is set. */
bool file_replace_cached(const char *path, const struct iovec *pieces, int count);

/* Syncs the folder of the file `path`, so that a rename in it is durable. Behind a URL it does
 * nothing. */
err file_sync_folder(const char *path);

#endif
