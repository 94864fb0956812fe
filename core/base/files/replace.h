/* replace.h - small files that readers find whole: what had the name before, or all of the new
 * file.
 */
#ifndef CORE_BASE_FILES_REPLACE_H
#define CORE_BASE_FILES_REPLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "core/base/error.h"

/* By PATH.tmp, always the same name, so that what a killed process left does not stay: of one
 * writer at a time. It is on the disk afterwards. ERR_IO with the path. */
err file_replace(const char *path, const void *, size_t bytes);

/* The same for a file of a cache: several processes may write it at once, and it may be lost. A
 * path of this host. false: errno says why it was not written. */
bool file_replace_cached(const char *path, const struct iovec *pieces, int count);

/* So that a rename in it lasts: path is of a file there. Behind a URL nothing is to be done. */
err file_sync_folder(const char *path);

#endif
