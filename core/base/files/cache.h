/* cache.h - a cache on local disk for files behind URLs.
 *
 * A file is cached in pieces, each a file in one folder, which several tasks may share; a piece is
 * renamed to its name once it is complete. Its name and its header identify the URL and the state
 * of the file there (size, time of change, ETag), which is requested whenever a file is opened; a
 * checksum detects damage. Pieces that do not match are read again from the URL.
 */
#ifndef CORE_BASE_FILES_CACHE_H
#define CORE_BASE_FILES_CACHE_H

#include "core/base/files/file_system.h"

enum {
    CACHE_PIECE_BYTES = 1 << 20,
    CACHE_FILES_MAX = 1 << 22, /* files considered when pieces are removed */
    CACHE_LOOKS = 16, /* a task checks the size of the folder each time it has written max_bytes /
                         CACHE_LOOKS */
};

/* At start, before there are threads. Creates the folder (not its parent); it holds about max_bytes
 * at most, the least recently used pieces are removed. ERR_INPUT: it cannot be created or written
 * to. */
err cache_begin(const char *folder, uint64_t max_bytes);
/* Opens the file through the cache, if there is one and the file's state can be identified. Takes
 * ownership of `from`, and closes it also on failure. */
err cache_open(const char *path, struct file *from, struct file **ret);

#endif
