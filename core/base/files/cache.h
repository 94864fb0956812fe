/* cache.h - what was read of files behind URLs, kept on this host.
 *
 * A file is kept in pieces, each a file of its own in one folder, which several tasks may share: a
 * piece gets its name once it is whole. Its name and its head say of which URL it is, and of which
 * state of the file there (size, time of change, ETag), which is asked for whenever a file is
 * opened; a checksum says whether it is what was written. What is none of that is read again from
 * the URL.
 */
#ifndef CORE_BASE_FILES_CACHE_H
#define CORE_BASE_FILES_CACHE_H

#include "core/base/files/file_system.h"

enum {
    CACHE_PIECE_BYTES = 1 << 20,
    CACHE_FILES_MAX = 1 << 22, /* that are looked at when the folder is made smaller */
    CACHE_LOOKS = 16,          /* each time a task has written such a part of the limit */
};

/* At start, before there are threads. The folder, which is made where its parent is there, has
 * about max_bytes at most: what was not used for longest goes. ERR_INPUT: it cannot be made or
 * written. */
err cache_begin(const char *folder, uint64_t max_bytes);
/* The file, read by way of the cache where there is one and its state can be told from another; it
 * takes `from`, which it closes, also where it fails. */
err cache_open(const char *path, struct file *from, struct file **ret);

#endif
