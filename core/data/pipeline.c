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
    float *features;
    void *labels;
    uint64_t index;
};

struct pipeline {
    const struct dataset *data;
    struct pipeline_options options;
    int64_t row_floats, row_labels; /* of one example */
    struct slot *slots;
    int slot_count;
    struct block memory; /* of all slots */
    int64_t *rows;       /* [batch]: which rows the batch being made consists of */

    bool is_direct;          /* batches are the dataset's memory; slots[0] is for those that wrap */
    const void *labels;      /* direct: of all rows, in the wanted type */
    struct block own_labels; /* direct: where they had to be converted */
    uint64_t next;           /* direct: index of the next batch */

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

/* Shuffled rows lie anywhere: without this each one costs a wait for main memory. */
static void ask_ahead(const struct pipeline *p, int64_t row, size_t row_bytes)
{
    const char *at = (const char *)p->data->features + row_bytes * (size_t)row;
    size_t bytes = row_bytes < AHEAD_BYTES_MAX ? row_bytes : AHEAD_BYTES_MAX;
    for (size_t i = 0; i < bytes; i += CACHE_LINE) __builtin_prefetch(at + i);
}

/* One batch into a slot. Only the thread calls this, or, without one, the consumer. */
static void fill(struct pipeline *p, struct slot *slot, uint64_t index)
{
    const struct dataset *d = p->data;
    const struct transform *t = &p->options.transform;
    int64_t batch = p->options.batch;
    size_t row_bytes = convert_feature_bytes(d);
    find_rows(p, index);
    for (int64_t i = 0; i < batch; i++) {
        if (i + ROWS_AHEAD < batch) ask_ahead(p, p->rows[i + ROWS_AHEAD], row_bytes);
        convert_features(d, t, p->rows[i], 1, slot->features + i * p->row_floats);
        convert_labels(d, t, p->rows[i], 1, (char *)slot->labels + 4 * i * p->row_labels);
    }
    slot->index = index;
}

static struct batch batch_of(const struct pipeline *p, const struct slot *slot)
{
    return (struct batch){
        .rows = p->options.batch,
        .features = slot->features,
        .labels = slot->labels,
        .index = slot->index,
        .epoch = first_position(p, slot->index) / (uint64_t)p->data->rows,
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
    *ret = batch_of(p, &p->slots[number % (uint64_t)p->slot_count]);
    return OK;
}

/* ---- without a thread ---- */

/* Costs two divisions, no copy; only a batch over the end of the data is put together. */
static void next_direct(struct pipeline *p, struct batch *ret)
{
    uint64_t rows = (uint64_t)p->data->rows, position = first_position(p, p->next);
    uint64_t row = position % rows;
    if (row + (uint64_t)p->options.batch > rows) {
        fill(p, &p->slots[0], p->next++);
        *ret = batch_of(p, &p->slots[0]);
        return;
    }
    *ret = (struct batch){
        .rows = p->options.batch,
        .features = (const float *)p->data->features + row * (uint64_t)p->row_floats,
        .labels = (const char *)p->labels + 4 * row * (uint64_t)p->row_labels,
        .index = p->next++,
        .epoch = position / rows,
    };
}

/* Labels in another type than stored are converted once for the whole run. */
static err prepare_direct(struct pipeline *p)
{
    const struct dataset *d = p->data;
    p->labels = d->labels;
    if (d->label_dtype == p->options.transform.label_dtype) return OK;
    TRY(block_new(4 * (uint64_t)(d->rows * p->row_labels), &p->own_labels));
    convert_labels(d, &p->options.transform, 0, d->rows, p->own_labels.at);
    p->labels = p->own_labels.at;
    return OK;
}

/* ---- open and close ---- */

static uint64_t whole_lines(uint64_t bytes)
{
    return (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

/* All slots in one block, features and labels on cache lines of their own. */
static err allocate(struct pipeline *p)
{
    const struct dataset *d = p->data;
    uint64_t features, labels, all;
    TRY(storage_bytes(d->name, p->options.batch, &d->feature_shape, sizeof(float), &features));
    TRY(storage_bytes(d->name, p->options.batch, &d->label_shape, 4, &labels));
    uint64_t slot_bytes = whole_lines(features) + whole_lines(labels);
    if (__builtin_mul_overflow(slot_bytes, (uint64_t)p->slot_count, &all))
        return fail(ERR_MEMORY, "%s: %d batches of %lld rows are more than memory can hold",
                    d->name, p->slot_count, (long long)p->options.batch);
    p->slots = calloc((size_t)p->slot_count, sizeof *p->slots);
    p->rows = calloc((size_t)p->options.batch, sizeof *p->rows);
    if (!p->slots || !p->rows) return fail(ERR_MEMORY, "%s: no memory for batches", d->name);
    TRY(block_new(all, &p->memory));
    for (int i = 0; i < p->slot_count; i++) {
        char *at = (char *)p->memory.at + slot_bytes * (uint64_t)i;
        p->slots[i].features = (float *)at;
        p->slots[i].labels = at + whole_lines(features);
    }
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
    return transform_check(&o->transform, d, &d->label_shape);
}

static err start(struct pipeline *p)
{
    p->is_direct = !p->options.shuffle && convert_is_identity(p->data, &p->options.transform);
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
        .row_floats = shape_count(&d->feature_shape),
        .row_labels = convert_label_count(d),
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
