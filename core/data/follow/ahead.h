/* ahead.h - opens the next followed file in a thread while the current one is used.
 *
 * The thread has its own struct arrivals; what it takes, others see in the list's file.
 */
#ifndef CORE_DATA_FOLLOW_AHEAD_H
#define CORE_DATA_FOLLOW_AHEAD_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/data/follow/arrivals.h"

/* What every file must match; does not change. */
struct opening {
    const struct dataset *described; /* columns of the first file */
    const struct stream_options *options;
};

/* A file whose rows are in memory, or are read as a stream */
struct opened {
    int number; /* index in the arrivals; -1: none */
    struct arrived_rows rows;
};

/* Closes the previous file first. ERR_INPUT: the file does not match the first one, or has changed
 * since it was taken. */
err opened_read(struct opened *, const struct arrivals *, int number, const struct opening *);
void opened_close(struct opened *);

struct opener {
    struct arrivals arrivals;
    struct opening opening;
    int wanted;
    uint64_t looked_ms;
    pthread_t thread;
    bool is_running;     /* it was started and not yet joined */
    atomic_bool is_done; /* the thread has set what follows */
    struct opened opened;
    err result; /* of opening `wanted` */
    char text[ERROR_TEXT_MAX];
};

err ahead_open(struct opener *, const struct source_spec *, const struct format_context *);
/* Called once, as arrivals_begin. */
err ahead_begin(struct opener *, const struct arrivals_share *, struct opening);
void ahead_close(struct opener *);

/* Announces the file to be used next; starts to look for it if the last look was some time ago. */
void ahead_want(struct opener *, int number);
/* Waits for the thread. false: the file was not opened ahead; else *ret is the result of
 * opened_read. */
bool ahead_take(struct opener *, int number, struct opened *to, err *ret);

#endif
