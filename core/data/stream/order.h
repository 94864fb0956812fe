/* order.h - which rows a worker reads in which order: a function of the seed, the epoch and the
 * files.
 *
 * Positions are those of the stream that all workers share (core/data/source.h). Each epoch has its
 * own order of units (rows stored together). A worker has a contiguous stretch of it, with as many
 * rows as it has positions in the epoch, after the stretches of lower workers. So workers' rows are
 * disjoint, together they read every row once, and each reads little more than its share. A stretch
 * is cut into buffers; with shuffle, rows are permuted within a buffer. If batches are handed out,
 * each worker's stretch is the whole epoch, and it reads the buffers of the batches it was given;
 * these buffers begin at a batch boundary, though epochs may not.
 */
#ifndef CORE_DATA_STREAM_ORDER_H
#define CORE_DATA_STREAM_ORDER_H

#include "core/base/error.h"
#include "core/data/source.h"

/* Rows that are read together: a block, or a whole file that can only be read sequentially. */
struct unit {
    int file;
    int64_t first, rows; /* of the file's rows */
};

/* Consecutive rows of a file that are part of a buffer */
struct passage {
    int file;
    int64_t first, rows; /* of the file's rows */
    int64_t to;          /* index in the buffer of the first */
};

struct buffer_number {
    uint64_t epoch;
    int64_t buffer; /* index in the worker's stretch of the epoch */
};

struct order {
    const struct unit *units; /* borrowed */
    int64_t count, rows;      /* count: of units; rows: of all units */
    uint64_t first;           /* position of the first row */
    int64_t batch, buffer_rows;
    int worker, workers, per_round; /* as in core/data/source.h */
    bool is_even; /* for one worker: buffers begin at multiples of buffer_rows in the stream, not
                     in the epoch */
    bool shuffle, is_once;
    uint64_t key;

    /* of the epoch used last */
    int64_t *turns;  /* [count] indices of units, in order */
    int64_t *before; /* [count + 1] how many rows the units before have */
    uint64_t epoch;
};

/* The caller has set the fields above `turns`. ERR_MEMORY. */
err order_open(struct order *);
void order_close(struct order *); /* may be zeroed */

/* The buffer that has this position of this worker, and the index of its row in the buffer. */
struct buffer_number order_buffer(const struct order *, uint64_t position, int64_t *ret_row);
/* How many rows a buffer has. order_rows: ret[count] are the indices in the buffer of the rows to
 * use as number first, first + 1 and so on. */
int64_t order_buffer_rows(const struct order *, struct buffer_number);
void order_rows(const struct order *, struct buffer_number, int64_t first, int64_t count,
                int64_t *ret);
/* Position after its last row; for one worker. */
uint64_t order_buffer_end(const struct order *, struct buffer_number);
/* The next buffer that has rows. False: the stream ends. */
bool order_next(const struct order *, struct buffer_number, struct buffer_number *ret);

/* Which passages a buffer consists of; frees the old *passages. For free(). ERR_MEMORY. */
err order_passages(struct order *, struct buffer_number, struct passage **passages,
                   int64_t *ret_count);

#endif
