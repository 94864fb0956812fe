/* own.h - files under names that the program chooses itself, in folders where others may write,
 * too. No link of such a name is followed and nothing waits for a pipe: what is written or removed
 * lies in that folder. Paths of this host. errno says why something could not be done.
 */
#ifndef CORE_BASE_FILES_OWN_H
#define CORE_BASE_FILES_OWN_H

#include <stdbool.h>
#include <stdio.h>

/* Opened as it is; flags as of open(2), without O_CREAT. -1; errno is ELOOP of a link, EINVAL of
 * what is no regular file. */
int own_open(const char *path, int flags);
/* The same, to be read by the C library; NULL. */
FILE *own_read(const char *path);
/* To be read and written; made where it is absent, and instead of a link or a pipe. -1 */
int own_open_or_make(const char *path);
/* A new file, to be written; whatever had the name before loses it. -1 */
int own_make(const char *path);

/* All of these bytes, to any file that blocks. */
bool own_write(int file, const void *, size_t bytes);

/* A folder; made where it is absent, and instead of a link. false: errno says why not. */
bool own_folder(const char *path);
/* To be read, of a folder that is none by a link; -1: errno is ENOTDIR or ELOOP of a link. */
int own_folder_open(const char *path);

#endif
