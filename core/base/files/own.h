/* own.h - files under names that the program chooses, in folders where others may write, too.
 * Symbolic links of such a name are not followed and pipes do not block: only files in that folder
 * are written or removed. Local paths. All set errno on failure. */
#ifndef CORE_BASE_FILES_OWN_H
#define CORE_BASE_FILES_OWN_H

#include <stdbool.h>
#include <stdio.h>

/* Opens an existing file; flags as of open(2), without O_CREAT. -1: failed; errno is ELOOP for a
 * symbolic link, EINVAL for other files that are not regular. */
int own_open(const char *path, int flags);
/* The same, as a FILE for reading; NULL: failed. */
FILE *own_read(const char *path);
/* For reading and writing; created if absent, and in place of a link or a pipe. -1: failed */
int own_open_or_make(const char *path);
/* A new file, for writing; replaces whatever had the name. -1: failed */
int own_make(const char *path);

/* Writes all bytes, to a file in blocking mode. */
bool own_write(int file, const void *, size_t bytes);

/* Creates a folder if absent, and in place of a link. false: failed. */
bool own_folder(const char *path);
/* Opens a folder for reading; -1: failed, errno is ENOTDIR or ELOOP for a symbolic link. */
int own_folder_open(const char *path);

#endif
