/* feed.h - in-graph replication: the protocol between the chief, which reads, and a worker that it
 * feeds.
 *
 * A worker dials the chief's address and greets it as it does a ps. The chief sends DATA: the
 * number of rows, the columns as they are stored, and what was measured of them (spec_measure). The
 * worker then requests batches of its share by FEED, never more than it has room for, and they come
 * in parts, in order. The rows of a batch follow from its number (core/data/source.h), or from that
 * and the plan from ps/0 (core/cluster/role/batch_queue.h), which FEED has. So neither side keeps
 * state for the other: after a restart of either the worker requests the batch that it needs next.
 *
 * A batch is sent as it is stored: the columns that are used, labels first, each aligned to a cache
 * line; the worker converts it.
 */
#ifndef CORE_CLUSTER_RUNNER_FEED_FEED_H
#define CORE_CLUSTER_RUNNER_FEED_FEED_H

#include "core/cluster/runner/greeting.h"
#include "core/data/source.h"
#include "core/train/spec/spec.h"

enum {
    FEED_PART_BYTES = 256 << 10,       /* of a batch, in one message */
    FEED_QUEUE_BYTES = 1 << 20,        /* queued for one worker */
    FEED_AHEAD_MAX = PREFETCH_MAX + 1, /* batches of one request */
};

/* The offsets of columns in a batch that is sent */
struct feed_layout {
    int columns[COLUMNS_MAX]; /* [count] indices */
    int count;
    size_t at[COLUMNS_MAX]; /* [count] */
    size_t bytes;
};
/* ERR_INPUT: too large for memory. */
err feed_layout_make(const struct column *, int count, const bool *reads, int64_t batch,
                     struct feed_layout *ret);

/* The content of DATA */
struct feed_description {
    int64_t rows;
    struct column *columns; /* [column_count], at NULL */
    int column_count;
};
/* Freed with free(). ERR_MEMORY. */
err feed_describe(const struct batch_source *, const struct spec *, char **ret);
/* Measured values are set in the spec. Names are allocated in the arena. ERR_PROTOCOL: not valid.
 */
err feed_read_description(const void *text, size_t bytes, struct spec *, struct arena *,
                          struct feed_description *ret);

/* Wakes a loop that waits in another thread */
struct waker {
    struct loop *loop;
    int fd; /* an eventfd */
};
err waker_open(struct waker *, struct loop *);
void waker_ring(const struct waker *); /* from any thread */
void waker_close(struct waker *);

/* The greeter for connections between a worker and the chief. */
struct greeter feed_greeter(const struct task_options *);

#endif
