/* source.h - where batches come from: the contract that every source keeps.
 *
 * Opened, a source says what it has: its rows, and its columns as they are stored. Begun, it knows
 * what is wanted of it, and gives batches with the same columns as the graph reads them. One thread
 * calls it; what it reads ahead is its own affair.
 *
 * The stream: position p of the stream is row p % rows of epoch p / rows; with shuffle, each epoch
 * has a permutation of its own, drawn from the seed. The stream is cut into batches of B rows, and
 * R consecutive ones are a round, where R is at least W, the number of workers: worker w reads the
 * batches w, w + W, w + 2 W ... of each round. So the shares of the workers are disjoint, together
 * they are every example exactly once per epoch, W workers of batch B/W see together what one
 * worker of batch B sees, and any position is reached without reading what is before. It has no
 * end, unless is_once is said: then it ends with the first epoch. Where batches are handed out
 * (plan) there are no shares: whoever reads sees the stream of one worker alone.
 */
#ifndef CORE_DATA_SOURCE_H
#define CORE_DATA_SOURCE_H

#include "core/data/data.h"
#include "core/data/reading_plan.h"

enum { PREFETCH_MAX = 64, BATCH_ROWS_MAX = 1 << 24 };

struct stream_options {
    struct transform transform;
    /* [column_count] of the source: those that somebody looks at, labels or not. Others are in a
     * batch, but nowhere (at NULL), and cost nothing. NULL: all. Free again after begin. */
    const bool *reads;
    int64_t batch; /* rows, 1 to BATCH_ROWS_MAX */
    bool is_once;  /* to measure with: the last batch has what is left, and nothing is read before
                      somebody asks */
    bool shuffle;
    uint64_t key; /* of the permutations */
    int worker, workers;
    int per_round;  /* batches of all workers, and at least as many as these; 0: as many */
    uint64_t first; /* position of the first epoch's first row; for a file of these */
    int prefetch;   /* batches kept ready, 1 to PREFETCH_MAX */
    bool is_stored; /* to pass them on with: columns stay as they are stored, labels too */
    /* Of workers 1: nothing is read before somebody has said by plan which batches come. */
    bool is_handed_out;
};

static inline uint64_t stream_per_round(const struct stream_options *o)
{
    return (uint64_t)(o->per_round > o->workers ? o->per_round : o->workers);
}
/* Of a round, the batches of this worker: those of one push. */
static inline uint64_t stream_per_push(const struct stream_options *o)
{
    const uint64_t workers = (uint64_t)o->workers, rest = stream_per_round(o) % workers;
    return stream_per_round(o) / workers + ((uint64_t)o->worker < rest);
}
/* Of the first row of a batch of this share, in the stream. No overflow: see stream_has_batch. */
static inline uint64_t stream_position(const struct stream_options *o, uint64_t index)
{
    const uint64_t per_push = stream_per_push(o), turn = index % per_push;
    const uint64_t in_round = turn * (uint64_t)o->workers + (uint64_t)o->worker;
    return (index / per_push * stream_per_round(o) + in_round) * (uint64_t)o->batch;
}
/* An index may come from a checkpoint. false: beyond what can be counted. */
bool stream_has_batch(const struct stream_options *, uint64_t index);

struct batch_source {
    const struct source_calls *calls;
    const char *name, *use; /* for messages, as a dataset has them */
    int64_t rows;           /* of one epoch; 0: there is one that has no end (follow/followed.h) */
    const struct column *columns;
    int column_count;
    struct strings feature_names; /* as a dataset has them */
    int64_t lanes;                /* as a dataset has them */
    uint64_t meanings;
    const struct left_out *left_out; /* rows of its files that are in no batch; NULL: of none */
};

/* How far it has been read, ahead of what is used: of an epoch, or of the files that have come */
struct source_place {
    int64_t row, rows;
    int file, files; /* of files that are followed; file: from 1 */
};

struct source_calls {
    /* Once; the next batch is number 0. ERR_INPUT: options out of their limits, or a label that
     * the loss does not take. */
    err (*begin)(struct batch_source *, const struct stream_options *);
    /* Waits until it is there; ERR_TIMEOUT after ten minutes. Its columns stay until the next call
     * of next or seek. rows 0: the end, again and again. */
    err (*next)(struct batch_source *, struct batch *ret);
    /* Batches that lie ready, or a failure that next tells at once; -1: each is read where it is
     * stored, so there is nothing to wait for. */
    int (*ready)(struct batch_source *);
    /* The next batch is this worker's number `index`. ERR_INPUT, and nothing has changed: beyond
     * what can be counted. */
    err (*seek)(struct batch_source *, uint64_t index);
    void (*close)(struct batch_source *); /* begun or not */

    /* Waits at most so long for this many batches, or a failure that next tells: next does not wait
     * then. ERR_PEER: they are not there yet; ERR_STOPPED: none will come. NULL: next waits. */
    err (*await)(struct batch_source *, int count, int ms);
    /* Of one without end: has the last row come? Then how many there are, and how many of these
     * whole pushes of everybody have. */
    bool (*has_ended)(struct batch_source *, int64_t *ret_rows, int64_t *ret_used);

    /* Batches of the numbers from `first` on are these of the stream: count pairs, from where to
     * where; behind them none is known. ret_is_void: one that was taken is another now, and a seek
     * is to follow. ERR_INPUT: this source cannot. NULL: likewise. */
    err (*plan)(struct batch_source *, uint64_t first, const uint64_t *ranges, int count,
                bool *ret_is_void);

    /* NULL: nobody knows. */
    void (*place)(struct batch_source *, struct source_place *ret);
};

/* Of the spec: a file, or a generator, in memory; or a stream of files (stream/stream.h), which
 * borrows spec, and what context names, until it is closed. A stream shares an epoch in another
 * way: worker w has a stretch of it, as many rows as it has positions (stream/order.h). */
err batch_source_open(const struct source_spec *, const struct format_context *,
                      struct batch_source **ret);
/* Where rows are that are not in a dataset: one of these, or none. */
struct rows_from {
    struct row_stream *stream;
    struct followed *followed;
};
/* Takes all, also on failure. Where rows are elsewhere the dataset describes them. */
err batch_source_of(struct dataset *, struct rows_from, struct batch_source **ret);
void batch_source_close(struct batch_source *); /* NULL is fine */

/* One more reader of the rows of another source, which it borrows, of this file's making: they lie
 * in memory once. NULL: they are a stream's, which each reader opens for itself. ERR_MEMORY. */
err batch_source_share(const struct batch_source *, struct batch_source **ret);

/* Of its rows and their order; 0: it cannot say. Reads all that memory holds. */
uint64_t batch_source_digest(const struct batch_source *);

/* Whether its shares are those of the stream above, of any number of workers, from any row on. */
bool batch_source_is_in_memory(const struct batch_source *);

/* Batches that are handed out together cost less: the numbers from a multiple of this many on. 0:
 * it does not matter. Of one that has begun. */
int64_t batch_source_stretch(const struct batch_source *, int workers);

/* NULL: it has none of that name. */
const struct column *batch_source_column(const struct batch_source *, const char *name);

#endif
