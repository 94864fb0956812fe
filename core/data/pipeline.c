/* pipeline.c - makes batches of a dataset or a stream of rows: see source.h.
 *
 * If stored examples need no conversion and come in stored order, a batch points into the dataset,
 * and no thread is started; nor is one if each row is read once (is_once, in memory). Else a reader
 * thread fills a ring of slots: the consumer holds one, `prefetch` are ready or being filled. The
 * reader sleeps when the ring is full and is woken when half of it is empty, so that a fast
 * consumer pays for a wake-up only every few batches.
 */
#include "core/data/batch_ring.h"
#include "core/data/convert.h"
#include "core/data/follow/followed.h"
#include "core/data/source.h"
#include "core/data/storage.h"
#include "core/data/stream/stream.h"
#include "core/base/threads/thread.h"

#include "core/base/clock.h"
#include "core/base/fingerprint.h"
#include "core/base/random.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FOLLOW_LOOK_MS = 200 }; /* between two looks for followed files */
static const uint64_t STREAM_POSITION_MAX = UINT64_C(1) << 62;

/* State without a thread. is_stored: batches point into the dataset's memory (`stored`). The ring's
 * only slot is for other batches, and for those that wrap around the end. */
struct here {
    bool is_stored;
    struct column *stored;   /* [column_count] */
    struct block own_labels; /* converted labels, if needed */
    struct column *part;     /* [column_count] of the batch that the consumer holds */
    uint64_t next, last;     /* next: index of the next batch; last: position of the one before */
};

/* The thread that makes batches ahead */
struct reader_thread {
    pthread_t thread;
    bool has_thread;
    struct batch_ring ring; /* its lock guards what follows; a failure ends the thread */
    pthread_cond_t freed_more;
    uint64_t positions[PREFETCH_MAX + 1]; /* of the batches in the ring's slots */
    bool is_moved;                        /* the batch being made is from before the last seek */
    bool waits;
    _Atomic bool is_stopping;
    bool is_awaited;    /* batches have been requested: before, nothing is read or taken of files */
    int64_t came, used; /* at the end: rows of all files, and those in whole pushes */
    struct source_place place;
};

struct pipeline {
    struct batch_source source; /* first: the public part */
    struct dataset data;        /* if rows are not in memory, only describes them */
    struct rows_from from;      /* both NULL: rows are in `data` */
    struct stream_options options;
    struct arena arena; /* the arrays of [column_count] */
    struct conversion *conversions;
    int *read; /* [read_count]: columns that batches have; the labels first */
    int read_count;
    int64_t *rows; /* [batch] indices of the rows of the batch being made */

    struct reading_plan plan; /* count 0: no plan; the worker reads its share, unless
                                 is_handed_out. Guarded by the lock, too */
    struct here here;
    struct reader_thread reader;
};

/* Stream position of a batch's first row. false: the plan does not yet cover the batch. */
static bool find_position(const struct pipeline *p, uint64_t index, uint64_t *ret)
{
    uint64_t batch;
    *ret = stream_position(&p->options, index);
    if (!p->plan.count) return !p->options.is_handed_out;
    if (!reading_plan_find(&p->plan, index, &batch)) return false;
    *ret = batch * (uint64_t)p->options.batch;
    return true;
}

/* How many rows the batch at this position has */
static int64_t count_rows(const struct pipeline *p, uint64_t position)
{
    const uint64_t rows = (uint64_t)p->data.rows, batch = (uint64_t)p->options.batch;
    if (!p->options.is_once) return (int64_t)batch;
    const uint64_t left = position < rows ? rows - position : 0;
    return (int64_t)(left < batch ? left : batch);
}

/* Sets p->rows for the batch at this position; it may span several epochs. */
static void find_rows(struct pipeline *p, uint64_t position)
{
    const uint64_t size = (uint64_t)p->data.rows;
    uint64_t epoch = position / size, row = position % size;
    uint64_t key = random_u64(p->options.key, epoch);
    const int64_t count = count_rows(p, position);
    for (int64_t i = 0; i < count; i++) {
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

/* Converts the rows p->rows[0 .. count - 1] of a dataset into a slot, from row `first` on. Missing
 * labels stay zeros, which every loss takes. */
static void take_rows(const struct pipeline *p, const struct dataset *from, int64_t count,
                      const struct column *slot, int64_t first)
{
    for (int r = 0; r < p->read_count; r++) {
        const int c = p->read[r];
        void *to = row_of(&slot[c], (uint64_t)first);
        if (from->columns[c].at)
            convert_rows(&p->conversions[c], &from->columns[c], p->rows, count, to);
    }
}

static bool is_elsewhere(const struct pipeline *p)
{
    return p->from.stream || p->from.followed;
}

static err find_elsewhere(struct pipeline *p, uint64_t position, int64_t max, int64_t *ret_count,
                          const struct dataset **ret_from)
{
    return p->from.stream
               ? stream_rows(p->from.stream, position, max, p->rows, ret_count, ret_from)
               : followed_rows(p->from.followed, position, max, p->rows, ret_count, ret_from);
}

static err fill_from_elsewhere(struct pipeline *p, struct column *slot, uint64_t position)
{
    const int64_t rows = count_rows(p, position);
    int64_t count;
    for (int64_t at = 0; at < rows; at += count) {
        const struct dataset *from;
        TRY(find_elsewhere(p, position + (uint64_t)at, rows - at, &count, &from));
        take_rows(p, from, count, slot, at);
    }
    return OK;
}

/* Makes one batch in a slot. Called by the thread or, without one, by the consumer. */
static err fill(struct pipeline *p, struct column *slot, uint64_t position)
{
    if (is_elsewhere(p)) return fill_from_elsewhere(p, slot, position);
    find_rows(p, position);
    take_rows(p, &p->data, count_rows(p, position), slot, 0);
    return OK;
}

static struct batch batch_of(const struct pipeline *p, const struct column *columns, uint64_t index,
                             uint64_t position)
{
    return (struct batch){
        .rows = count_rows(p, position),
        .columns = columns,
        .column_count = p->data.column_count,
        .index = index,
        .epoch = p->data.rows ? position / (uint64_t)p->data.rows : 0,
    };
}

static struct source_place place_of(const struct pipeline *p, uint64_t position)
{
    struct source_place place = {.rows = p->data.rows};
    if (p->from.followed)
        followed_place(p->from.followed, position, &place);
    else if (place.rows > 0)
        place.row = (int64_t)(position % (uint64_t)place.rows);
    return place;
}

/* ---- the reader thread ---- */

/* The next batch to make */
struct reader_work {
    struct column *slot;
    uint64_t position;
};

/* The caller holds the lock. Whether there is a free slot and a known batch for it. With is_once
 * nothing is read before the first request. */
static bool has_work(const struct pipeline *p)
{
    uint64_t position;
    const bool is_wanted = p->reader.is_awaited || !p->options.is_once;
    return is_wanted && batch_ring_has_room(&p->reader.ring) &&
           find_position(p, batch_ring_next(&p->reader.ring), &position);
}

/* Waits for work; false when the pipeline is being closed. */
static bool wait_for_slot(struct pipeline *p, struct reader_work *ret)
{
    pthread_mutex_lock(&p->reader.ring.lock);
    while (!p->reader.is_stopping && !has_work(p)) {
        p->reader.waits = true;
        pthread_cond_wait(&p->reader.freed_more, &p->reader.ring.lock);
    }
    const uint64_t index = batch_ring_next(&p->reader.ring);
    const int slot = batch_ring_place(&p->reader.ring, index);
    p->reader.waits = p->reader.is_moved = false;
    ret->slot = p->reader.ring.slots[slot];
    find_position(p, index, &ret->position);
    p->reader.positions[slot] = ret->position;
    bool goes_on = !p->reader.is_stopping;
    pthread_mutex_unlock(&p->reader.ring.lock);
    return goes_on;
}

/* For followed files: waits until the next look is due, or a seek. */
static void pause_reading(struct pipeline *p)
{
    const struct timespec until = clock_in_ms(FOLLOW_LOOK_MS);
    pthread_mutex_lock(&p->reader.ring.lock);
    p->reader.ring.is_at_end =
        followed_has_ended(p->from.followed, &p->reader.came, &p->reader.used) &&
        !p->reader.is_moved;
    if (p->reader.ring.is_at_end) pthread_cond_signal(&p->reader.ring.made_more);
    if (!p->reader.is_stopping && !p->reader.is_moved)
        pthread_cond_clockwait(&p->reader.freed_more, &p->reader.ring.lock, CLOCK_MONOTONIC,
                               &until);
    pthread_mutex_unlock(&p->reader.ring.lock);
}

/* Whether the batch's rows have arrived; always true if files are not followed. */
static err look(struct pipeline *p, uint64_t position, bool *ret_is_there)
{
    *ret_is_there = true;
    if (!p->from.followed) return OK;
    pthread_mutex_lock(&p->reader.ring.lock);
    *ret_is_there = p->reader.is_awaited;
    pthread_mutex_unlock(&p->reader.ring.lock);
    if (!*ret_is_there) return OK;
    return followed_look(p->from.followed, position, ret_is_there);
}

static void note_place(struct pipeline *p, uint64_t position)
{
    const struct source_place place = place_of(p, position);
    pthread_mutex_lock(&p->reader.ring.lock);
    p->reader.place = place;
    pthread_mutex_unlock(&p->reader.ring.lock);
}

static void *read_batches(void *context)
{
    struct pipeline *p = context;
    struct reader_work work;
    bool is_there;
    err e = OK;
    thread_reads_until(&p->reader.is_stopping);
    while (!e && wait_for_slot(p, &work)) {
        e = look(p, work.position, &is_there);
        if (!e) note_place(p, work.position);
        if (!e && !is_there) {
            pause_reading(p);
            continue;
        }
        if (!e) e = fill(p, work.slot, work.position);
        pthread_mutex_lock(&p->reader.ring.lock);
        if (e) batch_ring_fail(&p->reader.ring, e);
        if (!e && !p->reader.is_moved) batch_ring_add(&p->reader.ring);
        pthread_mutex_unlock(&p->reader.ring.lock);
    }
    return NULL;
}

static err start_thread(struct pipeline *p)
{
    const err e = thread_start(&p->reader.thread, read_batches, p);
    p->reader.has_thread = !e;
    return e ? fail_prefix(e, "%s", p->data.name) : OK;
}

/* The caller holds the lock and is about to wait for `count` batches: wakes the reader, which
 * otherwise sleeps until half of the ring is empty. Returns count, or fewer if not so many can be
 * ready. */
static uint64_t want(struct pipeline *p, int count)
{
    const uint64_t wanted = batch_ring_most(&p->reader.ring, count);
    p->reader.is_awaited = true;
    if (p->reader.waits && batch_ring_ready(&p->reader.ring) < wanted)
        pthread_cond_signal(&p->reader.freed_more);
    return wanted;
}

static err fail_unplanned(const struct pipeline *p)
{
    return fail(ERR_PEER, "%s: nobody has said which batch comes next", p->data.name);
}

/* Taking the next batch frees the slot of the one before. */
static err next_from_thread(struct pipeline *p, struct batch *ret)
{
    struct batch_ring *ring = &p->reader.ring;
    uint64_t position, index;
    pthread_mutex_lock(&ring->lock);
    const bool is_known = find_position(p, ring->first + ring->taken, &position);
    ring->freed = ring->taken;
    if (p->reader.waits && batch_ring_ready(ring) <= (uint64_t)ring->slot_count / 2)
        pthread_cond_signal(&p->reader.freed_more);
    want(p, 1);
    const err e = is_known ? batch_ring_take(ring, p->data.name, &index) : fail_unplanned(p);
    pthread_mutex_unlock(&ring->lock);
    if (!e) *ret = batch_of(p, ring->slots[batch_ring_place(ring, index)], index, position);
    return e;
}

/* Discards the batches that are ready or being made. */
static void seek_thread(struct pipeline *p, uint64_t index)
{
    pthread_mutex_lock(&p->reader.ring.lock);
    batch_ring_seek(&p->reader.ring, index);
    p->reader.is_moved = true;
    pthread_cond_signal(&p->reader.freed_more);
    pthread_mutex_unlock(&p->reader.ring.lock);
}

/* Waits at most for the batch that is being made. */
static void stop_thread(struct pipeline *p)
{
    pthread_mutex_lock(&p->reader.ring.lock);
    p->reader.is_stopping = true;
    pthread_cond_signal(&p->reader.freed_more);
    pthread_mutex_unlock(&p->reader.ring.lock);
    if (p->from.stream) stream_stop(p->from.stream);
    pthread_join(p->reader.thread, NULL);
}

/* ---- without a thread ---- */

/* If possible without a copy, for the cost of a few divisions. */
static err next_here(struct pipeline *p, struct batch *ret)
{
    const uint64_t index = p->here.next, rows = (uint64_t)p->data.rows;
    uint64_t position;
    if (!find_position(p, index, &position)) return fail_unplanned(p);
    const uint64_t count = (uint64_t)count_rows(p, position), row = position % rows;
    const bool is_whole = p->here.is_stored && row + count <= rows;
    struct column *columns = is_whole ? p->here.part : p->reader.ring.slots[0];
    for (int r = 0; r < p->read_count && is_whole; r++)
        columns[p->read[r]].at = row_of(&p->here.stored[p->read[r]], row);
    if (!is_whole) TRY(fill(p, p->reader.ring.slots[0], position));
    *ret = batch_of(p, columns, index, position);
    p->here.last = position;
    if (count > 0) p->here.next++;
    return OK;
}

/* Labels stored in another type are converted once for the whole run. */
static err prepare_stored(struct pipeline *p)
{
    const struct column *labels = &p->data.columns[LABELS];
    const struct conversion *c = &p->conversions[LABELS];
    uint64_t bytes;
    for (int i = 0; i < p->data.column_count; i++) {
        p->here.stored[i] = p->here.part[i] = p->conversions[i].made;
        p->here.stored[i].at = p->data.columns[i].at;
    }
    if (labels->at && conversion_is_identity(c, labels)) return OK;
    TRY(storage_bytes(p->data.name, p->data.rows, &c->made.shape, c->made.dtype, &bytes));
    TRY(block_new(bytes, &p->here.own_labels));
    if (labels->at) convert(c, labels, 0, p->data.rows, p->here.own_labels.at);
    p->here.stored[LABELS].at = p->here.own_labels.at;
    return OK;
}

/* ---- begin ---- */

static err allocate(struct pipeline *p, int slot_count)
{
    const struct made_columns made = {p->data.name, p->conversions, p->data.column_count,
                                      p->read,      p->read_count,  p->options.batch};
    p->rows = calloc((size_t)p->options.batch, sizeof *p->rows);
    if (!p->rows) return fail(ERR_MEMORY, "%s: no memory for batches", p->data.name);
    return batch_ring_open_slots(&p->reader.ring, &made, slot_count);
}

/* batch and prefetch come from the spec, so they are checked; worker and workers are the program's.
 */
static err check_options(const struct dataset *d, const struct stream_options *o)
{
    assert(o->workers >= 1 && o->worker >= 0 && o->worker < o->workers);
    if (o->batch < 1 || o->batch > BATCH_ROWS_MAX)
        return fail(ERR_INPUT, "%s: batch of %lld rows: expected 1 to %d", d->name,
                    (long long)o->batch, (int)BATCH_ROWS_MAX);
    if (o->prefetch < 1 || o->prefetch > PREFETCH_MAX)
        return fail(ERR_INPUT, "%s: prefetch of %d batches: expected 1 to %d", d->name, o->prefetch,
                    (int)PREFETCH_MAX);
    return transform_check(&o->transform, d);
}

/* Except labels, which prepare_stored handles. */
static bool is_stored_as_wanted(const struct pipeline *p)
{
    bool is_so = true;
    for (int r = LABELS + 1; r < p->read_count; r++)
        is_so = is_so &&
                conversion_is_identity(&p->conversions[p->read[r]], &p->data.columns[p->read[r]]);
    return is_so;
}

static void open_columns(struct pipeline *p)
{
    const size_t count = (size_t)p->data.column_count;
    p->conversions = arena_array(&p->arena, count, sizeof *p->conversions);
    p->read = arena_array(&p->arena, count, sizeof *p->read);
    p->here.stored = arena_array(&p->arena, count, sizeof *p->here.stored);
    p->here.part = arena_array(&p->arena, count, sizeof *p->here.part);
}

static void choose_columns(struct pipeline *p, const bool *reads)
{
    for (int i = 0; i < p->data.column_count; i++)
        if (i == LABELS || !reads || reads[i]) p->read[p->read_count++] = i;
}

static err begin(struct batch_source *source, const struct stream_options *options)
{
    struct pipeline *p = (struct pipeline *)source;
    TRY(check_options(&p->data, options));
    p->options = *options;
    p->options.reads = NULL; /* belongs to the caller */
    open_columns(p);
    choose_columns(p, options->reads);
    if (options->is_stored)
        conversions_as_stored(&p->data, p->conversions);
    else
        conversions_of(&options->transform, &p->data, p->conversions);
    if (p->from.stream) TRY(stream_begin(p->from.stream, options));
    if (p->from.followed) TRY(followed_begin(p->from.followed, options));
    p->here.is_stored = !is_elsewhere(p) && !options->shuffle && is_stored_as_wanted(p);
    const bool reads_ahead = !p->here.is_stored && (!options->is_once || is_elsewhere(p));
    TRY(allocate(p, reads_ahead ? options->prefetch + 1 : 1));
    if (p->here.is_stored) TRY(prepare_stored(p));
    return reads_ahead ? start_thread(p) : OK;
}

/* ---- the source ---- */

static err next(struct batch_source *source, struct batch *ret)
{
    struct pipeline *p = (struct pipeline *)source;
    return p->reader.has_thread ? next_from_thread(p, ret) : next_here(p, ret);
}

static int ready(struct batch_source *source)
{
    struct pipeline *p = (struct pipeline *)source;
    uint64_t position;
    if (!p->reader.has_thread) return find_position(p, p->here.next, &position) ? -1 : 0;
    pthread_mutex_lock(&p->reader.ring.lock);
    const struct batch_ring *ring = &p->reader.ring;
    const int count = ring->failure ? PREFETCH_MAX : (int)batch_ring_ready(ring);
    pthread_mutex_unlock(&p->reader.ring.lock);
    return count;
}

/* Followed files become available in whole pushes, so all batches of a push are ready together. */
static err await(struct batch_source *source, int count, int ms)
{
    struct pipeline *p = (struct pipeline *)source;
    uint64_t position;
    if (!p->reader.has_thread) return OK;
    pthread_mutex_lock(&p->reader.ring.lock);
    const bool is_planned =
        p->from.followed ||
        find_position(p, p->reader.ring.first + p->reader.ring.taken, &position);
    if (!p->reader.is_awaited) pthread_cond_signal(&p->reader.freed_more);
    p->reader.is_awaited = true; /* even if the plan does not cover the next batch */
    const bool is_there = !is_planned ||
                          batch_ring_wait(&p->reader.ring, want(p, count), (uint64_t)ms) ||
                          p->reader.ring.failure;
    const bool is_at_end = p->reader.ring.is_at_end;
    pthread_mutex_unlock(&p->reader.ring.lock);
    if (is_there) return OK;
    return is_at_end ? fail(ERR_STOPPED, "%s: all rows are read", p->data.name)
                     : fail(ERR_PEER, "%s: no batch yet", p->data.name);
}

static bool has_ended(struct batch_source *source, int64_t *ret_rows, int64_t *ret_used)
{
    struct pipeline *p = (struct pipeline *)source;
    pthread_mutex_lock(&p->reader.ring.lock);
    const bool has_ended = p->reader.ring.is_at_end;
    *ret_rows = p->reader.came;
    *ret_used = p->reader.used;
    pthread_mutex_unlock(&p->reader.ring.lock);
    return has_ended;
}

static void place(struct batch_source *source, struct source_place *ret)
{
    struct pipeline *p = (struct pipeline *)source;
    if (!p->reader.has_thread) {
        *ret = place_of(p, p->here.last);
        return;
    }
    pthread_mutex_lock(&p->reader.ring.lock);
    *ret = p->reader.place;
    pthread_mutex_unlock(&p->reader.ring.lock);
}

bool stream_has_batch(const struct stream_options *o, uint64_t index)
{
    uint64_t position;
    return !__builtin_add_overflow(index / stream_per_push(o), UINT64_C(1), &position) &&
           !__builtin_mul_overflow(position, stream_per_round(o), &position) &&
           !__builtin_mul_overflow(position, (uint64_t)o->batch, &position) &&
           position <= STREAM_POSITION_MAX;
}

static err seek(struct batch_source *source, uint64_t index)
{
    struct pipeline *p = (struct pipeline *)source;
    if (!stream_has_batch(&p->options, index))
        return fail(ERR_INPUT, "%s: batch %llu is beyond the stream", p->data.name,
                    (unsigned long long)index);
    if (p->reader.has_thread)
        seek_thread(p, index);
    else
        p->here.next = index;
    return OK;
}

/* ---- a plan ---- */

/* Whether a batch read from position `was` still is the planned one; one before the plan has been
 * used already. */
static bool is_as_planned(const struct pipeline *p, uint64_t index, uint64_t was)
{
    uint64_t position;
    return index < p->plan.first || (find_position(p, index, &position) && position == was);
}

static bool is_slot_as_planned(const struct pipeline *p, uint64_t index)
{
    return is_as_planned(p, index, p->reader.positions[batch_ring_place(&p->reader.ring, index)]);
}

/* Keeps ready batches up to the first that has been reassigned. */
static bool plan_thread(struct pipeline *p, const struct reading_plan *plan)
{
    struct batch_ring *ring = &p->reader.ring;
    pthread_mutex_lock(&ring->lock);
    p->plan = *plan;
    ring->is_at_end = false; /* the plan may bring batches before the end */
    uint64_t n = ring->freed;
    while (n < ring->made && is_slot_as_planned(p, ring->first + n)) n++;
    const bool reads = !p->reader.waits && batch_ring_has_room(ring);
    if (n < ring->made || (reads && !is_slot_as_planned(p, ring->first + n)))
        p->reader.is_moved = true; /* the batch being read has been reassigned, too */
    const bool is_void = batch_ring_cut(ring, n);
    pthread_cond_signal(&p->reader.freed_more);
    pthread_mutex_unlock(&p->reader.ring.lock);
    return is_void;
}

static err plan(struct batch_source *source, uint64_t first, const uint64_t *ranges, int count,
                bool *ret_is_void)
{
    struct pipeline *p = (struct pipeline *)source;
    struct reading_plan plan;
    if (is_elsewhere(p) && !p->options.is_handed_out)
        return fail(ERR_INPUT, "%s: rows that are shared cannot be handed out", p->data.name);
    const err e = reading_plan_make(first, ranges, count, p->options.batch, &plan);
    if (e) return fail_prefix(e, "%s", p->data.name);
    if (p->from.stream) stream_plan(p->from.stream, &plan);
    if (p->from.followed) followed_plan(p->from.followed, &plan);
    if (p->reader.has_thread) {
        *ret_is_void = plan_thread(p, &plan);
        return OK;
    }
    p->plan = plan;
    *ret_is_void = p->here.next > 0 && !is_as_planned(p, p->here.next - 1, p->here.last);
    return OK;
}

static void close_rows(const struct rows_from *from)
{
    stream_close(from->stream);
    followed_close(from->followed);
}

static void close_pipeline(struct batch_source *source)
{
    struct pipeline *p = (struct pipeline *)source;
    if (p->reader.has_thread) stop_thread(p);
    batch_ring_free(&p->reader.ring);
    pthread_cond_destroy(&p->reader.freed_more);
    block_drop(&p->here.own_labels);
    dataset_close(&p->data);
    close_rows(&p->from);
    free(p->rows);
    arena_free(&p->arena);
    free(p);
}

err batch_source_of(struct dataset *d, struct rows_from from, struct batch_source **ret)
{
    static const struct source_calls calls = {begin, next,      ready, seek, close_pipeline,
                                              await, has_ended, plan,  place};
    struct pipeline *p = malloc(sizeof *p);
    if (!p) {
        const err e = fail(ERR_MEMORY, "%s: no memory for batches", d->name);
        dataset_close(d);
        close_rows(&from);
        return e;
    }
    *p = (struct pipeline){
        .source = {&calls, d->name, d->use, d->rows, d->columns, d->column_count, d->feature_names,
                   d->lanes, d->meanings,
                   from.stream ? stream_left_out(from.stream) : &p->data.left_out},
        .data = *d,
        .from = from,
        .reader = {.freed_more = PTHREAD_COND_INITIALIZER},
    };
    batch_ring_init(&p->reader.ring);
    *d = (struct dataset){0};
    *ret = &p->source;
    return OK;
}

uint64_t batch_source_digest(const struct batch_source *source)
{
    if (source->calls->begin != begin) return 0; /* another kind of source */
    const struct pipeline *p = (const struct pipeline *)source;
    if (p->from.followed) return 0;
    if (p->from.stream) return stream_digest(p->from.stream);
    uint64_t digest = (uint64_t)p->data.rows;
    for (int i = 0; i < p->data.column_count; i++) {
        const struct column *c = &p->data.columns[i];
        const size_t bytes = column_row_bytes(c) * (size_t)p->data.rows;
        if (c->at) digest = fingerprint_join(digest, fingerprint(c->at, bytes));
    }
    return digest;
}

int64_t batch_source_stretch(const struct batch_source *source, int workers)
{
    const struct pipeline *p = (const struct pipeline *)source;
    struct stream_size size;
    if (source->calls->begin != begin) return 0;
    if (p->from.followed) return followed_stretch(p->from.followed, workers);
    if (!p->from.stream) return 0;
    stream_measure(p->from.stream, &size);
    return stream_stretch(&size, &p->options, workers);
}

bool batch_source_is_in_memory(const struct batch_source *source)
{
    return !is_elsewhere((const struct pipeline *)source);
}

err batch_source_share(const struct batch_source *whole, struct batch_source **ret)
{
    const struct pipeline *p = (const struct pipeline *)whole;
    struct dataset borrowed = p->data;
    *ret = NULL;
    if (is_elsewhere(p)) return OK;
    borrowed.parts = NULL;
    borrowed.close = NULL;
    borrowed.left_out = (struct left_out){0};
    return batch_source_of(&borrowed, (struct rows_from){0}, ret);
}
