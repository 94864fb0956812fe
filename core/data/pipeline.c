/* pipeline.c - the stream of batches of one worker: see data.h.
 *
 * Two ways. Where the stored examples are already what is wanted and come in stored order, a batch
 * is a pointer into the dataset, and no thread is started. Else a reader thread fills a ring of
 * slots: one is in the consumer's hands, `prefetch` are ready or being filled. The reader sleeps
 * when the ring is full and is woken when half of it is empty, so that a fast consumer pays for a
 * wake-up every few batches only.
 */
#include "core/data/convert.h"
#include "core/data/storage.h"

#include "core/base/random.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    PIPELINE_WAIT_S_MAX = 600, /* for one batch: far above any disk, below "it hangs" */
    ROWS_AHEAD = 4,            /* rows whose memory is asked for before they are converted */
    AHEAD_BYTES_MAX = 4096,    /* of one row: the hardware follows on its own after that */
    CACHE_LINE = 64,
};
static const uint64_t STREAM_POSITION_MAX = UINT64_C(1) << 62;

struct slot {
    struct column columns[DATASET_COLUMNS]; /* as the graph reads them */
    uint64_t index;
};

struct pipeline {
    const struct dataset *data;
    struct pipeline_options options;
    struct conversion conversions[DATASET_COLUMNS];
    struct slot *slots;
    int slot_count;
    struct block memory; /* of all slots */
    int64_t *rows;       /* [batch]: which rows the batch being made consists of */

    /* Batches are the dataset's memory; slots[0] is for those that wrap. */
    bool is_direct;
    struct column direct[DATASET_COLUMNS]; /* of all rows, in the wanted types */
    struct block own_labels;               /* where they had to be converted */
    struct column part[DATASET_COLUMNS];   /* of the batch in the consumer's hands */
    uint64_t next;                         /* index of the next batch */

    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t made_more, freed_more;
    uint64_t made, taken, freed; /* batches since open: freed <= taken <= made <= freed + slots */
    bool reader_waits, is_stopping;
};

/* Of the stream that all workers share, as data.h defines it; no overflow: see check_options. */
static uint64_t first_position(const struct pipeline *p, uint64_t index)
{
    const struct pipeline_options *o = &p->options;
    return (index * (uint64_t)o->workers + (uint64_t)o->worker) * (uint64_t)o->batch;
}

/* The rows of a batch; it may reach over the end of one or more epochs. */
static void find_rows(struct pipeline *p, uint64_t index)
{
    uint64_t size = (uint64_t)p->data->rows, position = first_position(p, index);
    uint64_t epoch = position / size, row = position % size;
    uint64_t key = random_u64(p->options.key, epoch);
    for (int64_t i = 0; i < p->options.batch; i++) {
        p->rows[i] = (int64_t)(p->options.shuffle ? random_permute(key, size, row) : row);
        if (++row < size) continue;
        row = 0;
        key = random_u64(p->options.key, ++epoch);
    }
}

static void *row_of(const struct column *c, uint64_t row)
{
    return (char *)c->at + column_row_bytes(c) * row;
}

/* Shuffled rows lie anywhere: without this each one costs a wait for main memory. */
static void ask_ahead(const struct column *stored, int64_t row)
{
    const char *at = row_of(stored, (uint64_t)row);
    const size_t row_bytes = column_row_bytes(stored);
    size_t bytes = row_bytes < AHEAD_BYTES_MAX ? row_bytes : AHEAD_BYTES_MAX;
    for (size_t i = 0; i < bytes; i += CACHE_LINE) __builtin_prefetch(at + i);
}

/* One batch into a slot. Only the thread calls this, or, without one, the consumer. */
static void fill(struct pipeline *p, struct slot *slot, uint64_t index)
{
    const struct column *stored = p->data->columns;
    int64_t batch = p->options.batch;
    find_rows(p, index);
    for (int64_t i = 0; i < batch; i++) {
        if (i + ROWS_AHEAD < batch) ask_ahead(&stored[FEATURES], p->rows[i + ROWS_AHEAD]);
        for (int c = 0; c < DATASET_COLUMNS; c++)
            convert(&p->conversions[c], &stored[c], p->rows[i], 1,
                    row_of(&slot->columns[c], (uint64_t)i));
    }
    slot->index = index;
}

static struct batch batch_of(const struct pipeline *p, const struct column *columns, uint64_t index)
{
    return (struct batch){
        .rows = p->options.batch,
        .columns = columns,
        .column_count = DATASET_COLUMNS,
        .index = index,
        .epoch = first_position(p, index) / (uint64_t)p->data->rows,
    };
}

/* ---- the reader thread ---- */

/* Waits for an empty slot; false when the pipeline is being closed. */
static bool wait_for_slot(struct pipeline *p, uint64_t *ret_number)
{
    pthread_mutex_lock(&p->lock);
    while (!p->is_stopping && p->made - p->freed == (uint64_t)p->slot_count) {
        p->reader_waits = true;
        pthread_cond_wait(&p->freed_more, &p->lock);
    }
    p->reader_waits = false;
    *ret_number = p->made;
    bool goes_on = !p->is_stopping;
    pthread_mutex_unlock(&p->lock);
    return goes_on;
}

/* The slot is filled without the lock: no one else looks at it until made says so. */
static void *read_batches(void *context)
{
    struct pipeline *p = context;
    uint64_t number;
    while (wait_for_slot(p, &number)) {
        fill(p, &p->slots[number % (uint64_t)p->slot_count], p->options.first + number);
        pthread_mutex_lock(&p->lock);
        p->made++;
        pthread_cond_signal(&p->made_more);
        pthread_mutex_unlock(&p->lock);
    }
    return NULL;
}

static err start_thread(struct pipeline *p)
{
    /* signals are for the thread that waits for them */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int status = pthread_create(&p->thread, NULL, read_batches, p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (status)
        return fail(ERR_IO, "%s: no thread to read with: %s", p->data->name, strerror(status));
    p->has_thread = true;
    return OK;
}

/* Holds the lock; a clock that a person cannot set back. */
static bool wait_for_batch(struct pipeline *p)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PIPELINE_WAIT_S_MAX;
    int status = 0;
    while (p->made == p->taken && !status)
        status = pthread_cond_clockwait(&p->made_more, &p->lock, CLOCK_MONOTONIC, &until);
    return p->made != p->taken;
}

/* Asking for the next batch gives the one before back to the reader. */
static err next_from_thread(struct pipeline *p, struct batch *ret)
{
    pthread_mutex_lock(&p->lock);
    p->freed = p->taken;
    uint64_t ready = p->made - p->taken;
    if (p->reader_waits && ready <= (uint64_t)p->slot_count / 2)
        pthread_cond_signal(&p->freed_more);
    bool has_batch = ready > 0 || wait_for_batch(p);
    uint64_t number = p->taken;
    if (has_batch) p->taken++;
    pthread_mutex_unlock(&p->lock);
    if (!has_batch)
        return fail(ERR_TIMEOUT, "%s: no batch for %d s", p->data->name, (int)PIPELINE_WAIT_S_MAX);
    const struct slot *slot = &p->slots[number % (uint64_t)p->slot_count];
    *ret = batch_of(p, slot->columns, slot->index);
    return OK;
}

/* ---- without a thread ---- */

/* Costs a few divisions, no copy; only a batch over the end of the data is put together. */
static void next_direct(struct pipeline *p, struct batch *ret)
{
    const uint64_t index = p->next++, rows = (uint64_t)p->data->rows;
    const uint64_t row = first_position(p, index) % rows;
    if (row + (uint64_t)p->options.batch > rows) {
        fill(p, &p->slots[0], index);
        *ret = batch_of(p, p->slots[0].columns, index);
        return;
    }
    for (int i = 0; i < DATASET_COLUMNS; i++) p->part[i].at = row_of(&p->direct[i], row);
    *ret = batch_of(p, p->part, index);
}

/* Labels in another type than stored are converted once for the whole run. */
static err prepare_direct(struct pipeline *p)
{
    const struct column *stored = &p->data->columns[LABELS];
    const struct conversion *c = &p->conversions[LABELS];
    struct column *labels = &p->direct[LABELS];
    memcpy(p->direct, p->data->columns, sizeof p->direct);
    if (!conversion_is_identity(c, stored)) {
        uint64_t bytes;
        TRY(storage_bytes(p->data->name, p->data->rows, &stored->shape, c->dtype, &bytes));
        TRY(block_new(bytes, &p->own_labels));
        convert(c, stored, 0, p->data->rows, p->own_labels.at);
        labels->dtype = c->dtype;
        labels->at = p->own_labels.at;
    }
    memcpy(p->part, p->direct, sizeof p->part);
    return OK;
}

/* ---- open and close ---- */

static uint64_t whole_lines(uint64_t bytes)
{
    return (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

/* Each column begins on a cache line of its own. */
static void place_slot(struct pipeline *p, char *at, struct slot *slot)
{
    for (int i = 0; i < DATASET_COLUMNS; i++) {
        struct column *c = &slot->columns[i];
        *c = p->data->columns[i];
        c->dtype = p->conversions[i].dtype;
        c->at = at;
        at += whole_lines(column_row_bytes(c) * (uint64_t)p->options.batch);
    }
}

/* All slots in one block */
static err allocate(struct pipeline *p)
{
    const struct dataset *d = p->data;
    uint64_t slot_bytes = 0, all;
    for (int i = 0; i < DATASET_COLUMNS; i++) {
        uint64_t bytes;
        TRY(storage_bytes(d->name, p->options.batch, &d->columns[i].shape, p->conversions[i].dtype,
                          &bytes));
        slot_bytes += whole_lines(bytes);
    }
    if (__builtin_mul_overflow(slot_bytes, (uint64_t)p->slot_count, &all))
        return fail(ERR_MEMORY, "%s: %d batches of %lld rows are more than memory can hold",
                    d->name, p->slot_count, (long long)p->options.batch);
    p->slots = calloc((size_t)p->slot_count, sizeof *p->slots);
    p->rows = calloc((size_t)p->options.batch, sizeof *p->rows);
    if (!p->slots || !p->rows) return fail(ERR_MEMORY, "%s: no memory for batches", d->name);
    TRY(block_new(all, &p->memory));
    for (int i = 0; i < p->slot_count; i++)
        place_slot(p, (char *)p->memory.at + slot_bytes * (uint64_t)i, &p->slots[i]);
    return OK;
}

/* batch and prefetch come from the spec, first from a checkpoint; worker and workers are ours. */
static err check_options(const struct dataset *d, const struct pipeline_options *o)
{
    assert(o->workers >= 1 && o->worker >= 0 && o->worker < o->workers);
    if (o->batch < 1 || o->batch > BATCH_ROWS_MAX)
        return fail(ERR_INPUT, "%s: batch of %lld rows: expected 1 to %d", d->name,
                    (long long)o->batch, (int)BATCH_ROWS_MAX);
    if (o->prefetch < 1 || o->prefetch > PREFETCH_MAX)
        return fail(ERR_INPUT, "%s: prefetch of %d batches: expected 1 to %d", d->name, o->prefetch,
                    (int)PREFETCH_MAX);
    uint64_t position;
    if (__builtin_mul_overflow(o->first, (uint64_t)o->workers, &position) ||
        __builtin_mul_overflow(position, (uint64_t)o->batch, &position) ||
        position > STREAM_POSITION_MAX)
        return fail(ERR_INPUT, "%s: batch %llu is beyond the stream", d->name,
                    (unsigned long long)o->first);
    return transform_check(&o->transform, d, &d->columns[LABELS].shape);
}

static err start(struct pipeline *p)
{
    conversions_of(&p->options.transform, p->conversions);
    p->is_direct = !p->options.shuffle &&
                   conversion_is_identity(&p->conversions[FEATURES], &p->data->columns[FEATURES]);
    p->slot_count = p->is_direct ? 1 : p->options.prefetch + 1;
    p->next = p->options.first;
    TRY(allocate(p));
    return p->is_direct ? prepare_direct(p) : start_thread(p);
}

err pipeline_open(const struct dataset *d, const struct pipeline_options *options,
                  struct pipeline **ret)
{
    TRY(check_options(d, options));
    struct pipeline *p = malloc(sizeof *p);
    if (!p) return fail(ERR_MEMORY, "%s: no memory for batches", d->name);
    *p = (struct pipeline){
        .data = d,
        .options = *options,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .made_more = PTHREAD_COND_INITIALIZER,
        .freed_more = PTHREAD_COND_INITIALIZER,
    };
    err e = start(p);
    if (e)
        pipeline_close(p);
    else
        *ret = p;
    return e;
}

err pipeline_next(struct pipeline *p, struct batch *ret)
{
    if (!p->is_direct) return next_from_thread(p, ret);
    next_direct(p, ret);
    return OK;
}

int pipeline_ready(struct pipeline *p)
{
    if (p->is_direct) return -1;
    pthread_mutex_lock(&p->lock);
    const int ready = (int)(p->made - p->taken);
    pthread_mutex_unlock(&p->lock);
    return ready;
}

/* At most the batch that is being made is waited for. */
static void stop_thread(struct pipeline *p)
{
    pthread_mutex_lock(&p->lock);
    p->is_stopping = true;
    pthread_cond_signal(&p->freed_more);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
}

void pipeline_close(struct pipeline *p)
{
    if (!p) return;
    if (p->has_thread) stop_thread(p);
    pthread_cond_destroy(&p->made_more);
    pthread_cond_destroy(&p->freed_more);
    pthread_mutex_destroy(&p->lock);
    block_drop(&p->memory);
    block_drop(&p->own_labels);
    free(p->slots);
    free(p->rows);
    free(p);
}
