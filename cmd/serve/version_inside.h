/* version_inside.h - internals of version.h: opening and closing (version.c), batching of requests
 * (batching.c). */
#ifndef CMD_SERVE_VERSION_INSIDE_H
#define CMD_SERVE_VERSION_INSIDE_H

#include <pthread.h>

#include "cmd/serve/version.h"
#include "core/train/checkpoint/checkpoints.h"
#include "core/train/session/fresh.h"

struct waiting; /* a request */
struct version {
    struct version_options options;
    struct restored_flags flags; /* with its prefix instead of the folder */
    char prefix[CHECKPOINT_PATH_MAX];
    struct restored_model model;
    struct intake *intake;
    struct asked_rows asked;
    struct column *together; /* [asked.column_count] rows of a batch, from several requests */
    void *memory;            /* of those */
    pthread_t thread;
    struct fresh *fresh;        /* values of deltas in use; NULL: only the checkpoint's */
    const struct fresh *newest; /* `coming`, or `fresh`; for the thread that adds deltas */
    uint64_t lost_leases;       /* checks in a row that found no lease */
    int64_t alone_rows;         /* at most so many are computed by a request's thread; 0: none */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t came;  /* wakes the version's thread */
    struct waiting *first, *last;
    bool is_computing;    /* one thread at a time, which may use the model and the first requests */
    struct fresh *coming; /* values for the next request; NULL: none are newer */
    bool is_stopping;
    enum version_state state;
    err failure;
    char text[ERROR_TEXT_MAX];
};

/* Runs in the version's thread until it is stopping and no request waits. Few rows are computed by
 * the threads of their requests, in turn. */
void version_compute(struct version *);

#endif
