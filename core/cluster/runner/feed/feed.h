/* feed.h - in-graph replication: what the chief, who reads, and a worker that is fed agree on.
 *
 * A worker dials the chief's address and greets it as it does a ps. The chief says DATA: rows and
 * columns as they are stored, and what they say of themselves (spec_measure). The worker then asks
 * by FEED for batches of its share, never for more than it has room for, and they come in parts, in
 * order. Which rows a batch has is a function of its number (core/data/source.h), or of that and of
 * what ps/0 has handed out to the worker (core/cluster/role/batch_queue.h), which FEED says. So
 * neither side keeps anything for the other: who comes anew, either of them, asks or is asked for
 * the batch that is wanted next.
 *
 * A batch travels as it is stored: the columns that somebody looks at, labels first, each from a
 * whole cache line on; the worker converts it.
 */
#ifndef CORE_CLUSTER_RUNNER_FEED_FEED_H
#define CORE_CLUSTER_RUNNER_FEED_FEED_H

#include "core/cluster/runner/greeting.h"
#include "core/data/source.h"
#include "core/train/spec/spec.h"

enum {
    FEED_PART_BYTES = 256 << 10,       /* of a batch, in one message */
    FEED_QUEUE_BYTES = 1 << 20,        /* said to one worker and not out yet */
    FEED_AHEAD_MAX = PREFETCH_MAX + 1, /* batches of one request */
};

/* Where columns lie in a batch that travels */
struct feed_layout {
    int columns[COLUMNS_MAX]; /* [count] which they are */
    int count;
    size_t at[COLUMNS_MAX]; /* [count] */
    size_t bytes;
};
/* ERR_INPUT: more than memory can be. */
err feed_layout_make(const struct column *, int count, const bool *reads, int64_t batch,
                     struct feed_layout *ret);

/* What DATA says */
struct feed_description {
    int64_t rows;
    struct column *columns; /* [column_count], at NULL */
    int column_count;
};
/* Freed with free(). ERR_MEMORY. */
err feed_describe(const struct batch_source *, const struct spec *, char **ret);
/* What is measured becomes part of the spec. Names live in the arena. ERR_PROTOCOL: it is no
 * description. */
err feed_read_description(const void *text, size_t bytes, struct spec *, struct arena *,
                          struct feed_description *ret);

/* Of a loop that another thread waits in */
struct waker {
    struct loop *loop;
    int fd; /* an eventfd */
};
err waker_open(struct waker *, struct loop *);
void waker_ring(const struct waker *); /* from any thread */
void waker_close(struct waker *);

/* A worker as greetings between workers know it. */
struct greeter feed_greeter(const struct task_options *);

#endif
