/* arrivals.h - the files that were taken of a folder into which others write, in their order.
 *
 * The order is a list beside the checkpoints, a line for each file with its rows. Whoever needs one
 * more row locks the list, and adds the first file, by its name, of those that are whole and not in
 * it yet: whole is what has bytes and has not changed for settle_secs. So all workers see one
 * order, which outlives them. A line is never changed.
 */
#ifndef CORE_DATA_FOLLOW_ARRIVALS_H
#define CORE_DATA_FOLLOW_ARRIVALS_H

#include "core/base/files/file_system.h"
#include "core/base/log.h"
#include "core/data/source.h"

enum { ARRIVALS_MAX = 1 << 20 };

struct arrived {
    const char *name; /* in its folder */
    uint64_t bytes;
    int64_t rows, before; /* rows: perhaps none; before: of all files in front of it */
};

/* What the positions of the list's rows depend on. */
struct arrivals_share {
    int64_t batch;
    int workers, per_push;
};

struct arrivals {
    const struct source_spec *source; /* borrowed, as all that context names */
    struct format_context context;
    struct arena arena;
    const char *list, *pattern; /* pattern: as given */
    const char *folder;         /* of the pattern, with its "/", or "" */
    struct arrivals_share share;
    bool has_header;
    struct arrived *at; /* [count] */
    int *by_name;       /* [count] of at */
    int count, capacity;
    int64_t rows;   /* of all */
    int64_t bytes;  /* of the list that have been read */
    bool has_ended; /* the marker is there, and all files are taken */

    /* the first that is not taken yet, as long as it may change */
    char watched[PATH_BYTES_MAX];
    struct file_state state;
    uint64_t since_ms;

    struct log_limit fails; /* of the list */

    const char **passed; /* [passed_count, or a power of two above] names without rows, which are no
                            example of anything */
    int passed_count;
};

/* ERR_INPUT: what is followed is not one pattern of a folder. To be closed also after a failure. */
err arrivals_open(struct arrivals *, const struct source_spec *, const struct format_context *);
void arrivals_close(struct arrivals *);

/* Some file whose columns tell of all: NULL: there is none yet. ERR_INPUT: there will be none. */
err arrivals_example(struct arrivals *, const char **ret_name);
/* An example turned out to have no rows: the next one is another. */
void arrivals_pass(struct arrivals *, const char *name);
/* Once, before the first look. ERR_INPUT: the list is of another share. */
err arrivals_begin(struct arrivals *, const struct arrivals_share *);
/* Files that have come since: does not wait for any. A list that cannot be read or written now is a
 * warning, and nothing has come. ERR_INPUT: a file has broken rows. */
err arrivals_look(struct arrivals *);

/* Which file has the row, of `rows` */
int arrivals_find(const struct arrivals *, int64_t row);
/* ERR_INPUT: it has another size than when it was taken, or is gone. */
err arrivals_check(const struct arrivals *, const struct arrived *);
/* All of its rows; of none nothing is described. ERR_INPUT: it is not there any more, or broken. */
struct arrived_rows {
    struct dataset all;
    struct row_stream *stream; /* of a file that is larger than the source allows in memory: `all`
                              is only described; else NULL */
};
err arrivals_rows(const struct arrivals *, const char *name, struct arrived_rows *ret);
void arrived_rows_close(struct arrived_rows *); /* a zeroed one is fine */

#endif
