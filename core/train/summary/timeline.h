/* timeline.h - the spans of all tasks on one clock, and their file in Chrome's trace format
 * (chrome://tracing, Perfetto).
 *
 * Each task is a process row, workers before ps. The row of a worker has a thread for its computing
 * and one for its exchange with each ps; the row of a ps one for its updates and one for what comes
 * from each worker. Times are the chief's; those of another task are as exact as the error that is
 * given with them.
 */
#ifndef CORE_TRAIN_SUMMARY_TIMELINE_H
#define CORE_TRAIN_SUMMARY_TIMELINE_H

#include <stdbool.h>

#include "core/base/trace.h"
#include "core/graph/graph.h"

enum { TIMELINE_STEPS_MAX = 100 }; /* of one trace */

/* By how many global steps the other tasks must be told in advance of a timeline: in asynchronous
 * training each may take one step meanwhile. */
uint64_t timeline_lead(bool is_sync, int workers);

struct timeline_part { /* of one task */
    bool is_ps;
    int task;
    const struct span *spans;
    int span_count;
    uint64_t dropped;    /* spans that did not fit */
    int64_t shift_ns;    /* added to its times, this makes them the chief's */
    uint64_t error_ns;   /* error of that, either way */
    const char *missing; /* why its spans are missing; NULL: they are there */
};

struct timeline {
    const struct graph *graph; /* the nodes that spans name */
    uint64_t first_step;       /* that was asked for */
    int steps;
    const struct timeline_part *parts;
    int part_count;
};

/* How a worker's steps spent their time: seconds, summed over all of them. */
struct timeline_shares {
    int count;    /* of steps */
    double steps; /* from the start of each until the next could begin */
    double compute, data, hooks;
    double push, wait; /* until the last gradient had left; from then until the last answer */
    double hidden; /* of the exchange: from the first part that left until the first push, and what
                      was computed of the next step meanwhile, which is not in push and wait */
};
struct timeline_shares timeline_shares(const struct timeline_part *);

/* In Chrome's format; malloc'ed, NULL after an error. ERR_MEMORY. */
err timeline_text(const struct timeline *, char **ret, size_t *ret_bytes);
/* Under a temporary name first, so that nobody sees half a file. ERR_IO. */
err timeline_write(const struct timeline *, const char *path);

#endif
