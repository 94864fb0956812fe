/* ahead.h - the next file of those that are followed, taken and opened while the one before is
 * used.
 *
 * A thread does it, with a list of arrivals of its own: what it takes the others read in the list's
 * file.
 */
#ifndef CORE_DATA_FOLLOW_AHEAD_H
#define CORE_DATA_FOLLOW_AHEAD_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/data/follow/arrivals.h"

/* What is wanted of every file; stays as it is. */
struct opening {
    const struct dataset *described; /* as the first one is */
    const struct stream_options *options;
};

/* A file whose rows are in memory, or are read as a stream */
struct opened {
    int number; /* of the arrivals; -1: none */
    struct arrived_rows rows;
};

/* Closes what it was. ERR_INPUT: the file is not as the first one, or not as it was taken. */
err opened_read(struct opened *, const struct arrivals *, int number, const struct opening *);
void opened_close(struct opened *);

struct opener {
    struct arrivals arrivals;
    struct opening opening;
    int wanted;
    uint64_t looked_ms;
    pthread_t thread;
    bool is_running;     /* it was started, and is to be joined */
    atomic_bool is_done; /* what follows is there */
    struct opened opened;
    err result; /* of `wanted` */
    char text[ERROR_TEXT_MAX];
};

err ahead_open(struct opener *, const struct source_spec *, const struct format_context *);
/* Once. As arrivals_begin. */
err ahead_begin(struct opener *, const struct arrivals_share *, struct opening);
void ahead_close(struct opener *);

/* This one will be wanted next: now and then looks for it, as long as it is not there. */
void ahead_want(struct opener *, int number);
/* false: it was not opened ahead. Else as opened_read. */
bool ahead_take(struct opener *, int number, struct opened *to, err *ret);

#endif
