/* file_system.h - where files are: on this host, or behind a URL.
 *
 * A path that begins with a scheme ("s3://bucket/key") belongs to the file system that was
 * registered for it at start; every other one is a path of this host. What a file system cannot do
 * is NULL in its table, and whoever asks for it is told so.
 *
 * A file is read at any offset by one thread at a time; different files by different threads. What
 * is behind a URL is one state of a file for as long as it is open: once it is replaced there,
 * reading fails.
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
    FILE_AHEAD_BYTES = 8 << 20, /* what is read ahead of a file behind a URL, at most */
};

/* Which state of a file it is. */
struct file_state {
    uint64_t bytes;                /* as stored */
    int64_t changed_s, changed_ns; /* when it was written to */
    int64_t touched_s, touched_ns; /* or its time of change was set, or its rights or names were */
    uint64_t identity;             /* the inode; of a URL a hash of its ETag, 0: it has none */
};

struct file {
    const struct file_system *system;
    const char *name; /* for messages: a URL without what is secret in it */
    struct file_state state;
};

/* A file that is being written. */
struct file_writer {
    const struct file_system *system;
    uint64_t bytes;  /* written so far */
    bool has_failed; /* something was not */
};

typedef err file_found(void *context, const char *path);

struct file_system {
    const char *const *schemes; /* "http", ...; NULL at the end */
    /* ERR_INPUT: not there (then errno is ENOENT or ENOTDIR), not readable, no regular file. Sets
     * all of file->state. */
    err (*open)(const struct file_system *, const char *path, struct file **ret);
    /* At most max bytes from `offset`, 0 only at the end of the file; what is read ahead for the
     * calls to come ends at `until` (0: with the file). ERR_INPUT: it has changed. */
    err (*read)(struct file *, uint64_t offset, uint64_t until, void *to, size_t max,
                size_t *ret_bytes);
    err (*state)(struct file *, struct file_state *ret); /* now, as far as it is known */
    void (*close)(struct file *);
    /* As files_match says. NULL: files cannot be listed. */
    err (*match)(const struct file_system *, const char *pattern, size_t plain, file_found *,
                 void *context);

    /* What follows is NULL where nothing can be written, and of this host's file system, whose
     * files are written with more care by those who write them. */

    err (*create)(const struct file_system *, const char *path, struct file_writer **ret);
    err (*write)(struct file_writer *, const void *, size_t bytes);
    err (*finish)(struct file_writer *);
    void (*drop)(struct file_writer *);
    err (*remove)(const char *path);
    err (*remove_folder)(const char *path); /* NULL: folders are there by what is in them */
    err (*move)(const char *from, const char *to);
    err (*visit)(const struct file_system *, const char *folder, file_found *, void *context);
};

/* At start, before there are threads; borrowed. At most FILE_SYSTEMS_MAX. */
void file_system_register(const struct file_system *);

/* What is relative to a directory (NULL, "" and ".": to where the process is) begins neither with
 * "/" nor with a scheme, and is not "-", which is standard input (pipe.h). */
bool path_is_relative(const char *path);
/* The path as it is, or behind the directory; a new string. NULL: no memory. */
char *path_join(const char *directory, const char *path);
/* The same of where the process is, as another process that is elsewhere finds it; where that is
 * not known, the path as it is. */
char *path_from_here(const char *path);

/* ERR_INPUT: nobody knows the scheme. */
err file_open(const char *path, struct file **ret);
/* The same, of data: from the cache where one was begun (cache.h); or a pipe of this host, or "-",
 * which are read to their end first (pipe.h). */
err file_open_or_pipe(const char *path, struct file **ret);
err file_read_at(struct file *, uint64_t offset, uint64_t until, void *to, size_t max,
                 size_t *ret_bytes);
err file_state(struct file *, struct file_state *ret);
void file_close(struct file *); /* NULL is fine */

/* To be read as a text, and closed by fclose. What is behind a URL is read now, at most `max` bytes
 * of it. ERR_INPUT. */
err file_open_text(const char *path, size_t max, FILE **ret);
/* A byte order mark, which some editors put in front, is passed over. Nothing has been read. */
void file_skip_mark(FILE *);

/* Whether anything is there; false also where nobody can say. */
bool file_is_there(const char *path);
/* Of a regular file, without keeping it open. As file_open fails. */
err file_look(const char *path, struct file_state *ret);
/* The same; that it is not there is no failure. */
err file_find(const char *path, bool *ret_is_there, struct file_state *ret);

/* ---- writing behind URLs. ERR_INPUT: nothing can be written there ---- */

/* Has its name, whole, from when finish says OK; until then what had it before stays. Free of
 * memory and of what was sent only after drop, also where all went well. */
err file_create(const char *path, struct file_writer **ret);
err file_append(struct file_writer *, const void *, size_t bytes);
err file_finish(struct file_writer *);
void file_drop(struct file_writer *);        /* NULL is fine */
bool files_can_be_written(const char *path); /* here, or behind such URLs */
/* All of a small file at once */
err file_put(const char *path, const void *, size_t bytes);

err file_remove(const char *path); /* one that is absent is no error */
/* An empty one; where folders are there only by what is in them, nothing is to be done. */
err file_remove_folder(const char *path);
/* Within one file system; of a file of that name nothing is left. Where that takes a copy the file
 * has both names for a while. */
err file_move(const char *from, const char *to);
/* The names in a folder, in no order, of files and folders. None: OK, as folders without files are
 * not there. */
err files_visit(const char *folder, file_found *, void *context);

/* Whether names with *, ? and [ may be patterns there. */
bool files_can_be_listed(const char *path);
/* Every file that fits the pattern (*, ?, [a-z]; none of them fits a "/"), in the order of their
 * bytes. The first `plain` bytes of it mean themselves. None: OK. */
err files_match(const char *pattern, size_t plain, file_found *, void *context);

/* For file systems: the pattern with what is special in its first `plain` bytes made plain, a new
 * string (NULL: no memory), and whether that fits a whole path. */
char *pattern_escape(const char *pattern, size_t plain);
bool pattern_fits(const char *escaped, const char *path);

#endif
