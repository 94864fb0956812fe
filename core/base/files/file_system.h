/* file_system.h - files on this host or behind a URL, through one interface.
 *
 * A path that begins with a scheme ("s3://bucket/key") belongs to the file system that was
 * registered for it at start; every other one is a path on this host. Operations that a file system
 * lacks are NULL in its table; calling them is an error.
 *
 * A file is read at any offset by one thread at a time; different files by different threads. While
 * a file behind a URL is open, reading fails once it has been replaced there.
 */
#ifndef CORE_BASE_FILES_FILE_SYSTEM_H
#define CORE_BASE_FILES_FILE_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/base/error.h"
#include "core/base/files/url.h"

enum {
    FILE_SYSTEMS_MAX = 8,
    FILE_AHEAD_BYTES = 8 << 20, /* read-ahead of a file behind a URL, at most */
};

/* Identifies a state of a file. */
struct file_state {
    uint64_t bytes;                /* as stored */
    int64_t changed_s, changed_ns; /* time of last write (mtime) */
    int64_t touched_s, touched_ns; /* time of last change of data, rights or names (ctime) */
    uint64_t identity;             /* the inode; for a URL a hash of its ETag, 0: it has none */
};

struct file {
    const struct file_system *system;
    const char *name; /* for messages: a URL without its secrets */
    struct file_state state;
};

/* A file that is being written. */
struct file_writer {
    const struct file_system *system;
    uint64_t bytes;  /* written so far */
    bool has_failed; /* a write has failed */
};

typedef err file_found(void *context, const char *path);

struct file_system {
    const char *const *schemes; /* "http", ...; NULL at the end */
    /* ERR_INPUT: it does not exist (then errno is ENOENT or ENOTDIR), is not readable, or not a
     * regular file. Sets all of file->state. */
    err (*open)(const struct file_system *, const char *path, struct file **ret);
    /* Reads at most max bytes from `offset`, 0 only at the end of the file; read-ahead ends at
     * `until` (0: at the end of the file). ERR_INPUT: it has changed. */
    err (*read)(struct file *, uint64_t offset, uint64_t until, void *to, size_t max,
                size_t *ret_bytes);
    err (*state)(struct file *, struct file_state *ret); /* its state now, if known */
    void (*close)(struct file *);
    /* As files_match says. NULL: files cannot be listed. */
    err (*match)(const struct file_system *, const char *pattern, size_t plain, file_found *,
                 void *context);

    /* These are NULL if files cannot be written, and for the local file system, as local files are
     * written in other ways. */

    err (*create)(const struct file_system *, const char *path, struct file_writer **ret);
    err (*write)(struct file_writer *, const void *, size_t bytes);
    err (*finish)(struct file_writer *);
    void (*drop)(struct file_writer *);
    err (*remove)(const char *path);
    err (*remove_folder)(const char *path); /* NULL: folders exist only by the files in them */
    err (*move)(const char *from, const char *to);
    err (*visit)(const struct file_system *, const char *folder, file_found *, void *context);
};

/* At start, before there are threads; borrowed. At most FILE_SYSTEMS_MAX. */
void file_system_register(const struct file_system *);

/* A path is relative if it begins neither with "/" nor with a scheme, and is not "-", which is
 * standard input (pipe.h). Directories below: NULL, "" and "." are the current directory. */
bool path_is_relative(const char *path);
/* directory/path if the path is relative, else the path; a new string. NULL: no memory. */
char *path_join(const char *directory, const char *path);
/* The same with the absolute path of the current directory, for processes in other directories; if
 * that is not known, the path. */
char *path_from_here(const char *path);

/* ERR_INPUT: unknown scheme. */
err file_open(const char *path, struct file **ret);
/* The same for data files: through the cache, if there is one (cache.h); also a local pipe or "-",
 * which are read to their end first (pipe.h). */
err file_open_or_pipe(const char *path, struct file **ret);
err file_read_at(struct file *, uint64_t offset, uint64_t until, void *to, size_t max,
                 size_t *ret_bytes);
err file_state(struct file *, struct file_state *ret);
void file_close(struct file *); /* NULL is fine */

/* Opens a text for reading; close it with fclose. Behind a URL all of it is read now; ERR_INPUT
 * also if it has more than `max` bytes. */
err file_open_text(const char *path, size_t max, FILE **ret);
/* Skips a byte order mark, which some editors write first. To be called before anything is read. */
void file_skip_mark(FILE *);

/* Whether the path exists; false also if that cannot be found out. */
bool file_is_there(const char *path);
/* The state of a regular file, without keeping it open. Fails as file_open. */
err file_look(const char *path, struct file_state *ret);
/* The same; OK also if it does not exist. */
err file_find(const char *path, bool *ret_is_there, struct file_state *ret);

/* ---- writing behind URLs. ERR_INPUT: that file system is read-only ---- */

/* The file appears, complete, when file_finish returns OK; an older file of that name stays until
 * then. file_drop frees memory and discards parts that were sent; it is needed also after success.
 */
err file_create(const char *path, struct file_writer **ret);
err file_append(struct file_writer *, const void *, size_t bytes);
err file_finish(struct file_writer *);
void file_drop(struct file_writer *);        /* NULL is fine */
bool files_can_be_written(const char *path); /* here, or behind such URLs */
/* Writes a small file in one call */
err file_put(const char *path, const void *, size_t bytes);

err file_remove(const char *path); /* one that is absent is no error */
/* Removes an empty folder; does nothing where folders exist only by the files in them. */
err file_remove_folder(const char *path);
/* Renames within one file system, replacing a file of that name. If that takes a copy, the file has
 * both names for a while. */
err file_move(const char *from, const char *to);
/* Calls file_found for each file and folder in a folder, in no order. None: OK, as a folder without
 * files may not exist. */
err files_visit(const char *folder, file_found *, void *context);

/* Whether files can be listed there, so that *, ? and [ may be patterns. */
bool files_can_be_listed(const char *path);
/* Calls file_found for every file that matches the pattern (*, ?, [a-z]; none of them matches a
 * "/"), sorted by bytes. The first `plain` bytes of the pattern are literal. None: OK. */
err files_match(const char *pattern, size_t plain, file_found *, void *context);

/* For file systems: the pattern with special characters in its first `plain` bytes escaped, a new
 * string (NULL: no memory); and whether a whole path matches that. */
char *pattern_escape(const char *pattern, size_t plain);
bool pattern_fits(const char *escaped, const char *path);

#endif
