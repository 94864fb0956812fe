/* source.h - where batches come from: the interface of all batch sources.
 *
 * After opening, a source describes its rows and its columns as stored. begin() tells it what is
 * wanted; then it returns batches of the same columns, converted for the graph. It is called from
 * one thread, but may read ahead in threads of its own.
 *
 * The stream: position p of the stream is row p % rows of epoch p / rows; with shuffle, each epoch
 * has its own permutation, drawn from the seed. The stream is cut into batches of B rows, and R
 * consecutive ones are a round, where R is at least W, the number of workers: worker w reads the
 * batches w, w + W, w + 2 W ... of each round. So the workers' shares are disjoint and cover every
 * example exactly once per epoch, W workers with batch B/W together see what one worker with batch
 * B sees, and any position can be reached without reading the rows before it. The stream is
 * endless, unless is_once is set: then it ends after the first epoch. If batches are handed out
 * (plan), there are no shares: each reader sees the stream of a single worker.
 */
#ifndef CORE_DATA_SOURCE_H
#define CORE_DATA_SOURCE_H

#include "core/data/data.h"
#include "core/data/reading_plan.h"

enum { PREFETCH_MAX = 64, BATCH_ROWS_MAX = 1 << 24 };

struct stream_options {
    struct transform transform;
    /* [column_count] of the source: which columns are used; labels always are. Others have `at`
     * NULL in a batch, and cost nothing. NULL: all are used. Not needed after begin. */
    const bool *reads;
    int64_t batch; /* rows, 1 to BATCH_ROWS_MAX */
    bool is_once;  /* for evaluation: one epoch, the last batch may be smaller, and nothing is
                      read before the first request */
    bool shuffle;
    uint64_t key; /* seed of the permutations */
    int worker, workers;
    int per_round;  /* batches of a round, at least `workers`; 0: as many as workers */
    uint64_t first; /* stream position of the first row; for a file of a followed source */
    int prefetch;   /* batches kept ready, 1 to PREFETCH_MAX */
    bool is_stored; /* columns and labels are not converted, for sending them on */
    /* With workers 1: batches are read only once plan() has said which come. */
    bool is_handed_out;
};

static inline uint64_t stream_per_round(const struct stream_options *o)
{
    return (uint64_t)(o->per_round > o->workers ? o->per_round : o->workers);
}
/* How many batches of a round belong to this worker; it pushes once for all of them. */
static inline uint64_t stream_per_push(const struct stream_options *o)
{
    const uint64_t workers = (uint64_t)o->workers, rest = stream_per_round(o) % workers;
    return stream_per_round(o) / workers + ((uint64_t)o->worker < rest);
}
/* Stream position of the first row of this worker's batch number `index`. No overflow if
 * stream_has_batch(). */
static inline uint64_t stream_position(const struct stream_options *o, uint64_t index)
{
    const uint64_t per_push = stream_per_push(o), turn = index % per_push;
    const uint64_t in_round = turn * (uint64_t)o->workers + (uint64_t)o->worker;
    return (index / per_push * stream_per_round(o) + in_round) * (uint64_t)o->batch;
}
/* For indices from a checkpoint. false: its position would overflow. */
bool stream_has_batch(const struct stream_options *, uint64_t index);

struct batch_source {
    const struct source_calls *calls;
    const char *name, *use; /* for messages, as in a dataset */
    int64_t rows;           /* of one epoch; 0: a single endless epoch (follow/followed.h) */
    const struct column *columns;
    int column_count;
    struct strings feature_names; /* as a dataset has them */
    int64_t lanes;                /* as a dataset has them */
    uint64_t meanings;
    const struct left_out *left_out; /* broken rows of its files; NULL: unknown */
};

/* Progress of reading, which is ahead of use: within the epoch, or within the files that have
 * arrived */
struct source_place {
    int64_t row, rows;
    int file, files; /* of followed files; file: from 1 */
};

struct source_calls {
    /* Called once; the next batch is number 0. ERR_INPUT: options out of range, or a label that the
     * loss does not take. */
    err (*begin)(struct batch_source *, const struct stream_options *);
    /* Waits for the next batch; ERR_TIMEOUT after ten minutes. Its columns are valid until the next
     * call of next or seek. ret->rows 0: the end, also on later calls. */
    err (*next)(struct batch_source *, struct batch *ret);
    /* How many batches are ready; positive also if next would fail at once; -1: they are made in
     * next itself, so there is nothing to wait for. */
    int (*ready)(struct batch_source *);
    /* Makes this worker's batch number `index` the next. ERR_INPUT: its position would overflow;
     * nothing has changed. */
    err (*seek)(struct batch_source *, uint64_t index);
    void (*close)(struct batch_source *); /* also without begin */

    /* Waits up to ms for `count` batches, or a failure; OK: next will not wait. ERR_PEER: not ready
     * yet; ERR_STOPPED: none will come. NULL: use next, which waits. */
    err (*await)(struct batch_source *, int count, int ms);
    /* For followed files: whether the last row has arrived. If so, *ret_rows: rows of all files;
     * *ret_used: those in pushes that all workers can fill. */
    bool (*has_ended)(struct batch_source *, int64_t *ret_rows, int64_t *ret_used);

    /* Sets which batches of the stream have the numbers from `first` on: `count` ranges, each a
     * pair of begin and end; later ones are unknown. *ret_is_void: a batch already taken has been
     * reassigned, and the caller must seek. ERR_INPUT: not supported by this source. NULL:
     * likewise. */
    err (*plan)(struct batch_source *, uint64_t first, const uint64_t *ranges, int count,
                bool *ret_is_void);

    /* NULL: unknown. */
    void (*place)(struct batch_source *, struct source_place *ret);
};

/* Opens a source of the spec: files or a generator in memory; or a stream of files
 * (stream/stream.h) or followed files, which borrow spec and what context refers to until closed. A
 * stream divides an epoch differently: each worker has a contiguous part of it, with as many rows
 * as it has positions (stream/order.h). */
err batch_source_open(const struct source_spec *, const struct format_context *,
                      struct batch_source **ret);
/* Where rows are if not in memory: one of these; both NULL: in the dataset. */
struct rows_from {
    struct row_stream *stream;
    struct followed *followed;
};
/* Takes ownership of all, also on failure. If rows are not in memory, the dataset only describes
 * them. */
err batch_source_of(struct dataset *, struct rows_from, struct batch_source **ret);
void batch_source_close(struct batch_source *); /* may be NULL */

/* A second source over the same rows in memory, which it borrows; the first must come from
 * batch_source_of(). *ret NULL: its rows are not in memory; open another one. ERR_MEMORY. */
err batch_source_share(const struct batch_source *, struct batch_source **ret);

/* Digest of its rows and their order; 0: unknown. Reads all rows that are in memory. */
uint64_t batch_source_digest(const struct batch_source *);

/* Whether workers' shares are as described at the top, for any number of workers and from any row
 * on; false: a stream or followed files. It must come from batch_source_of(). */
bool batch_source_is_in_memory(const struct batch_source *);

/* How many batches are best handed out together, starting at a multiple of this number, because
 * they share a buffer. 0: it does not matter. After begin. */
int64_t batch_source_stretch(const struct batch_source *, int workers);

/* NULL: no such column. */
const struct column *batch_source_column(const struct batch_source *, const char *name);

#endif
