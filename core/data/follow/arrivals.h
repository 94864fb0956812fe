/* arrivals.h - the order in which files of a folder are used while others still write into it.
 *
 * The order is a list beside the checkpoints, with a line for each file taken and its number of
 * rows. A worker that needs more rows locks the list and appends the first file, by name, that is
 * not in it, once it is complete: not empty, and unchanged for settle_secs. So all workers use one
 * order, which survives restarts. Lines are never changed.
 */
#ifndef CORE_DATA_FOLLOW_ARRIVALS_H
#define CORE_DATA_FOLLOW_ARRIVALS_H

#include "core/base/files/file_system.h"
#include "core/base/log.h"
#include "core/data/source.h"

enum { ARRIVALS_MAX = 1 << 20 };

struct arrived {
    const char *name; /* without the folder */
    uint64_t bytes;
    int64_t rows, before; /* rows: may be 0; before: rows of all files before it */
};

/* What maps rows of the list to workers; must not change. */
struct arrivals_share {
    int64_t batch;
    int workers, per_push;
};

struct arrivals {
    const struct source_spec *source; /* borrowed, as is all that context refers to */
    struct format_context context;
    struct arena arena;
    const char *list, *pattern; /* list: path; pattern: from the spec */
    const char *folder;         /* directory of the pattern, with "/", or "" */
    struct arrivals_share share;
    bool has_header;
    struct arrived *at; /* [count] */
    int *by_name;       /* [count] indices into at, sorted by name */
    int count, capacity;
    int64_t rows;   /* of all files */
    int64_t bytes;  /* how much of the list has been read */
    bool has_ended; /* the end marker exists, and all files are taken */

    /* the first file not yet taken, while it may still change */
    char watched[PATH_BYTES_MAX];
    struct file_state state;
    uint64_t since_ms;

    struct log_limit fails; /* failures to read or write the list */

    const char **passed; /* [passed_count, or a power of two above] files without rows, which
                            cannot be the example */
    int passed_count;
};

/* ERR_INPUT: the source's files are not one pattern in one folder, or there is no local folder for
 * the list. To be closed also after a failure. */
err arrivals_open(struct arrivals *, const struct source_spec *, const struct format_context *);
void arrivals_close(struct arrivals *);

/* A file from which the columns of all can be determined; NULL: none yet. ERR_INPUT: there will be
 * none. */
err arrivals_example(struct arrivals *, const char **ret_name);
/* Excludes an example that turned out to have no rows. */
void arrivals_pass(struct arrivals *, const char *name);
/* Called once, before the first look. ERR_INPUT: the list was made with another share. */
err arrivals_begin(struct arrivals *, const struct arrivals_share *);
/* Reads what others appended to the list; if nothing, takes the next file if it is complete. Does
 * not wait. If the list cannot be read or written now, logs a warning and returns OK. ERR_INPUT: a
 * file has broken rows. */
err arrivals_look(struct arrivals *);

/* Index of the file that has the row, 0 to rows - 1 */
int arrivals_find(const struct arrivals *, int64_t row);
/* ERR_INPUT: its size has changed since it was taken, or it is gone. */
err arrivals_check(const struct arrivals *, const struct arrived *);
/* All rows of a file; without rows, `all` has no columns either. ERR_INPUT: the file is gone or
 * broken. */
struct arrived_rows {
    struct dataset all;
    struct row_stream *stream; /* for a file that exceeds memory_mb: `all` then only describes
                                  it; else NULL */
};
err arrivals_rows(const struct arrivals *, const char *name, struct arrived_rows *ret);
void arrived_rows_close(struct arrived_rows *); /* may be zeroed */

#endif
