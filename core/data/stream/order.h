/* order.h - which rows a worker reads, and when: a function of the seed, the epoch and the files.
 *
 * Positions are those of the stream that all workers share (core/data/source.h). In an epoch, units
 * of rows that lie together stand in an order of their own; a worker has a stretch of it, as long
 * as its positions of the epoch are many, behind those of the workers before it. So its rows are
 * its own, all workers together read every row once, and each reads little more than its share. A
 * stretch is cut into buffers, in each of which rows are in any order where they are shuffled.
 * Where batches are handed out everybody has all of it, and reads the buffers of what it was given:
 * buffers that begin with a batch, which epochs need not.
 */
#ifndef CORE_DATA_STREAM_ORDER_H
#define CORE_DATA_STREAM_ORDER_H

#include "core/base/error.h"
#include "core/data/source.h"

/* Rows that stay together: a block, or a file that can only be read on. */
struct unit {
    int file;
    int64_t first, rows; /* of the file's rows */
};

/* Part of a buffer */
struct passage {
    int file;
    int64_t first, rows; /* of the file's rows */
    int64_t to;          /* where they go in the buffer */
};

struct buffer_number {
    uint64_t epoch;
    int64_t buffer; /* of the worker's stretch of the epoch */
};

struct order {
    const struct unit *units; /* borrowed */
    int64_t count, rows;      /* units, and the rows of all of them */
    uint64_t first;           /* position of the first row */
    int64_t batch, buffer_rows;
    int worker, workers, per_round; /* as of core/data/source.h */
    bool is_even; /* buffers begin at multiples of buffer_rows of the whole stream, of one worker */
    bool shuffle, is_once;
    uint64_t key;

    /* of the epoch that was looked at last */
    int64_t *turns;  /* [count] of units */
    int64_t *before; /* [count + 1] rows of the units before */
    uint64_t epoch;
};

/* The fields above `turns` are set. ERR_MEMORY. */
err order_open(struct order *);
void order_close(struct order *); /* a zeroed one is fine */

/* In which buffer a position of this worker's is, and which row of it it has. */
struct buffer_number order_buffer(const struct order *, uint64_t position, int64_t *ret_row);
/* How many rows a buffer has, and which of them come first .. first + count - 1. */
int64_t order_buffer_rows(const struct order *, struct buffer_number);
void order_rows(const struct order *, struct buffer_number, int64_t first, int64_t count,
                int64_t *ret);
/* Position behind its last row; of one worker. */
uint64_t order_buffer_end(const struct order *, struct buffer_number);
/* The next one with any rows. False: there is none, as the stream ends. */
bool order_next(const struct order *, struct buffer_number, struct buffer_number *ret);

/* What a buffer is made of; frees what *passages was. ERR_MEMORY. */
err order_passages(struct order *, struct buffer_number, struct passage **passages,
                   int64_t *ret_count);

#endif
