/* stream.c - see stream.h. */
#include "core/data/stream/stream.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/fingerprint.h"
#include "core/data/dataset_check.h"
#include "core/data/packing/unpacker.h"
#include "core/data/storage.h"
#include "core/data/stream/row_files.h"
#include "core/base/threads/thread.h"

enum {
    BUFFERS = 2,
    BUFFER_ROWS_DEFAULT = 1 << 17,
    READERS_DEFAULT = 2,
    READERS_OF_URLS = 16,        /* blocks in flight at once: 4 MB per round trip */
    IN_ORDER_ROWS_MAX = 1 << 14, /* of a buffer without shuffling: more would not help */
    READER_BYTES = 3 << 19,      /* for messages: of a reader's open file */
    PARTS = 16, /* minimum of buffers per large epoch if batches are handed out, so that every
                   worker gets some */
    PART_ROWS_MIN = 1 << 12,
    STRETCH_BATCHES_MIN = 4,
    STRETCH_BUFFERS = 8, /* without shuffling, as buffers are small then */
    USE_TEXT_MAX = 2048,
};

/* Memory of one buffer; complete once all its passages are read. */
struct shuffle_buffer {
    struct buffer_number number;
    bool is_wanted; /* false: free */
    struct passage *passages;
    int64_t passage_count, taken, done; /* taken, done: passages that readers have begun and
                                           finished */
    bool *is_taken;                     /* [passage_count] */
    struct block blocks[COLUMNS_MAX];
    void *to[COLUMNS_MAX];
    struct column columns[COLUMNS_MAX];
    struct dataset rows; /* the buffer's memory as a dataset */
};

struct reader {
    struct row_stream *stream;
    struct row_cursor cursor;
    pthread_t thread;
    int number;
};

struct row_stream {
    struct row_files files;
    struct column columns[COLUMNS_MAX];
    int column_count;
    int64_t row_bytes, buffer_rows;
    char use[USE_TEXT_MAX];
    struct transform transform;
    bool without_labels;

    struct reader readers[STREAM_READERS_MAX];
    int reader_count, started;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t work, done;
    struct order order;
    struct reading_plan plan; /* if batches are handed out */
    bool is_handed_out;
    struct shuffle_buffer memory[BUFFERS];
    struct shuffle_buffer *now,
        *next; /* in `memory`: the buffer that rows come from, and the one after it */
    _Atomic bool is_stopping;
    err failure;
    char failed[ERROR_TEXT_MAX];
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static bool has_packed(const struct row_stream *s)
{
    bool is_packed = false;
    for (int i = 0; i < s->files.file_count; i++) is_packed |= s->files.files[i].index.is_packed;
    return is_packed;
}

/* ---- readers ---- */

/* A packed file is always read by the same reader, whose position is then before the next passage.
 */
static bool may_take(const struct reader *r, const struct passage *passage)
{
    const struct row_stream *s = r->stream;
    const bool is_free = !s->files.files[passage->file].index.is_packed;
    return is_free || passage->file % s->reader_count == r->number;
}

/* Takes the first passage, but prefers the file that the reader has open, since opening takes time.
 */
static const struct passage *take_of(const struct reader *r, struct shuffle_buffer *buffer)
{
    int64_t found = -1;
    if (!buffer->is_wanted || buffer->taken == buffer->passage_count) return NULL;
    for (int64_t i = 0; i < buffer->passage_count; i++) {
        const struct passage *passage = &buffer->passages[i];
        if (buffer->is_taken[i] || !may_take(r, passage)) continue;
        const bool is_open = r->cursor.reader && r->cursor.file == passage->file;
        if (found < 0 || is_open) found = i;
        if (is_open) break;
    }
    if (found < 0) return NULL;
    buffer->is_taken[found] = true;
    buffer->taken++;
    return &buffer->passages[found];
}

/* Waits for a passage to read. NULL: the stream is being closed, or has failed. */
static const struct passage *take_passage(struct reader *r, struct shuffle_buffer **ret)
{
    struct row_stream *s = r->stream;
    const struct passage *passage = NULL;
    pthread_mutex_lock(&s->lock);
    while (!s->is_stopping && !s->failure) {
        *ret = s->now;
        passage = take_of(r, s->now);
        if (!passage) passage = take_of(r, *ret = s->next);
        if (passage) break;
        pthread_cond_wait(&s->work, &s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return passage;
}

/* Checks the rows of one passage, as a dataset, so that messages name the file and row. */
static err check_rows(const struct row_stream *s, const struct shuffle_buffer *buffer,
                      const struct passage *passage, const char *name)
{
    struct dataset d = buffer->rows;
    d.columns = calloc((size_t)d.column_count, sizeof *d.columns);
    if (!d.columns) return fail(ERR_MEMORY, "no memory for rows");
    memcpy(d.columns, buffer->columns, (size_t)d.column_count * sizeof *d.columns);
    for (int i = 0; i < d.column_count; i++) {
        struct column *c = &d.columns[i];
        if (c->at) c->at = (const char *)c->at + column_row_bytes(c) * (size_t)passage->to;
    }
    d.rows = passage->rows;
    d.first_row = passage->first;
    d.name = d.label_name = name;
    err e = s->files.is_stored ? dataset_check_features(&d) : OK;
    if (!e) e = transform_check(&s->transform, &d);
    free(d.columns);
    return e;
}

static void finish_passage(struct row_stream *s, struct shuffle_buffer *buffer, err e)
{
    pthread_mutex_lock(&s->lock);
    buffer->done++;
    if (e && !s->failure) {
        s->failure = e;
        snprintf(s->failed, sizeof s->failed, "%s", error_text());
        pthread_cond_broadcast(&s->work);
    }
    pthread_cond_broadcast(&s->done);
    pthread_mutex_unlock(&s->lock);
}

static void *read_passages(void *context)
{
    struct reader *r = context;
    struct shuffle_buffer *buffer;
    const struct passage *passage;
    thread_reads_until(&r->stream->is_stopping);
    while ((passage = take_passage(r, &buffer))) {
        err e = row_cursor_read(&r->cursor, passage, buffer->to);
        if (!e) e = check_rows(r->stream, buffer, passage, r->cursor.reader->name);
        finish_passage(r->stream, buffer, e);
    }
    return NULL;
}

/* ---- buffers; callers hold the lock ---- */

static bool is_buffer(const struct shuffle_buffer *buffer, struct buffer_number n)
{
    return buffer->is_wanted && buffer->number.epoch == n.epoch &&
           buffer->number.buffer == n.buffer;
}

/* Waits until no reader writes to the buffer. */
static void give_up(struct row_stream *s, struct shuffle_buffer *buffer)
{
    buffer->is_wanted = false;
    while (buffer->done < buffer->taken) pthread_cond_wait(&s->done, &s->lock);
}

static err fill_with(struct row_stream *s, struct shuffle_buffer *buffer, struct buffer_number n)
{
    give_up(s, buffer);
    TRY(order_passages(&s->order, n, &buffer->passages, &buffer->passage_count));
    free(buffer->is_taken);
    buffer->is_taken = calloc((size_t)buffer->passage_count, sizeof *buffer->is_taken);
    if (!buffer->is_taken) return fail(ERR_MEMORY, "%s: no memory for rows", s->files.name);
    buffer->number = n;
    buffer->taken = buffer->done = 0;
    buffer->is_wanted = true;
    pthread_cond_broadcast(&s->work);
    return OK;
}

/* Finds the first position in [from, end) that is in another buffer than n; positions outside the
 * stream of an is_once file are ignored. */
static bool leaves_buffer(const struct row_stream *s, uint64_t from, uint64_t end,
                          struct buffer_number n, struct buffer_number *ret)
{
    const uint64_t first = s->order.first, last = first + (uint64_t)s->order.rows;
    int64_t row;
    if (from < first) from = first;
    if (s->order.is_once && end > last) end = last;
    for (int i = 0; i < 2 && from < end; i++) {
        *ret = order_buffer(&s->order, from, &row);
        if (ret->epoch != n.epoch || ret->buffer != n.buffer) return true;
        from = order_buffer_end(&s->order, n);
    }
    return false;
}

/* The buffer wanted after n, which has this position: by the plan, if there is one. */
static bool find_next(const struct row_stream *s, uint64_t position, struct buffer_number n,
                      struct buffer_number *ret)
{
    const struct reading_plan *plan = &s->plan;
    const uint64_t batch = (uint64_t)s->order.batch, at = position / batch;
    bool is_behind = false;
    if (!plan->count) return order_next(&s->order, n, ret);
    for (int i = 0; i < 2 * plan->count; i += 2) {
        const uint64_t begin = plan->ranges[i], end = plan->ranges[i + 1];
        const bool is_here = begin <= at && at < end;
        if ((is_here || is_behind) &&
            leaves_buffer(s, is_here ? position : begin * batch, end * batch, n, ret))
            return true;
        is_behind |= is_here;
    }
    return false;
}

/* Has readers fill the buffer of the position first, then the one after it. */
static err want(struct row_stream *s, struct buffer_number n, uint64_t position)
{
    struct buffer_number behind;
    if (!is_buffer(s->now, n)) {
        struct shuffle_buffer *const other = s->now;
        s->now = s->next;
        s->next = other;
    }
    if (!is_buffer(s->now, n)) {
        s->next->is_wanted = false;
        TRY(fill_with(s, s->now, n));
    }
    if (!find_next(s, position, n, &behind) || is_buffer(s->next, behind)) return OK;
    return fill_with(s, s->next, behind);
}

static err wait_for(struct row_stream *s, const struct shuffle_buffer *buffer)
{
    while (!s->failure && !s->is_stopping && buffer->done < buffer->passage_count)
        pthread_cond_wait(&s->done, &s->lock);
    if (s->failure) return fail(s->failure, "%s", s->failed);
    return s->is_stopping ? fail(ERR_STOPPED, "%s: closed", s->files.name) : OK;
}

/* ---- rows for batches ---- */

err stream_rows(struct row_stream *s, uint64_t position, int64_t max, int64_t *rows,
                int64_t *ret_count, const struct dataset **ret_from)
{
    int64_t first;
    row_files_keep(&s->files);
    pthread_mutex_lock(&s->lock);
    const struct buffer_number n = order_buffer(&s->order, position, &first);
    err e = want(s, n, position);
    if (!e) e = wait_for(s, s->now);
    const int64_t left = order_buffer_rows(&s->order, n) - first;
    *ret_count = left < max ? left : max;
    *ret_from = &s->now->rows;
    order_rows(&s->order, n, first, *ret_count, rows);
    pthread_mutex_unlock(&s->lock);
    return e;
}

void stream_plan(struct row_stream *s, const struct reading_plan *plan)
{
    pthread_mutex_lock(&s->lock);
    s->plan = *plan;
    pthread_mutex_unlock(&s->lock);
}

/* shuffle_rows, or by default as many as fit into memory_mb, at most BUFFER_ROWS_DEFAULT. */
static int64_t choose_buffer_rows(const struct stream_size *size, const struct stream_options *o)
{
    const struct source_spec *source = size->source;
    const int64_t most = (source->memory_mb << 20) / (BUFFERS * size->row_bytes);
    int64_t rows = source->shuffle_rows;
    if (!rows) rows = smaller(most, BUFFER_ROWS_DEFAULT);
    if (!source->shuffle_rows && o->is_handed_out)
        rows = smaller(rows, larger(size->rows / PARTS, PART_ROWS_MIN));
    if (!o->shuffle) rows = smaller(rows, IN_ORDER_ROWS_MAX);
    rows = larger(1, smaller(rows, size->rows));
    const bool is_even = o->is_handed_out && rows < size->rows && rows > o->batch;
    return is_even ? rows - rows % o->batch : rows;
}

void stream_measure(const struct row_stream *s, struct stream_size *ret)
{
    *ret = (struct stream_size){s->files.source, s->files.rows, s->row_bytes, has_packed(s)};
}

/* One buffer, which is read as a whole; for packed files a large part of the epoch, since to reach
 * a buffer everything before it must be unpacked. */
int64_t stream_stretch(const struct stream_size *size, const struct stream_options *o, int workers)
{
    const int64_t buffer = choose_buffer_rows(size, o);
    const int64_t part = size->rows / workers, buffers = part / buffer;
    const int64_t most = size->is_packed ? buffers : o->shuffle ? 1 : STRETCH_BUFFERS;
    const int64_t rows = buffers ? buffer * smaller(buffers, most) : part;
    return larger(rows / o->batch, STRETCH_BATCHES_MIN);
}

void stream_stop(struct row_stream *s)
{
    pthread_mutex_lock(&s->lock);
    s->is_stopping = true;
    pthread_cond_broadcast(&s->work);
    pthread_cond_broadcast(&s->done);
    pthread_mutex_unlock(&s->lock);
}

/* ---- begin ---- */

static err check_memory(const struct row_stream *s)
{
    const double bytes = (double)BUFFERS * (double)s->buffer_rows * (double)s->row_bytes;
    if (bytes <= (double)s->files.source->memory_mb * 0x1p20) return OK;
    return fail(
        ERR_INPUT,
        "%s: two shuffle buffers of %lld rows (\"shuffle_rows\") of %lld bytes are %.0f MiB; "
        "\"memory_mb\" is %lld",
        s->files.name, (long long)s->buffer_rows, (long long)s->row_bytes, bytes * 0x1p-20,
        (long long)s->files.source->memory_mb);
}

static err open_buffer(struct row_stream *s, struct shuffle_buffer *buffer)
{
    stream_describe(s, &buffer->rows);
    memcpy(buffer->columns, s->columns, (size_t)s->column_count * sizeof *buffer->columns);
    buffer->rows.columns = buffer->columns;
    for (int i = 0; i < s->column_count; i++) {
        uint64_t bytes;
        const struct column *c = &s->columns[i];
        TRY(storage_bytes(s->files.name, s->buffer_rows, &c->shape, c->dtype, &bytes));
        TRY(block_new(bytes, &buffer->blocks[i]));
        buffer->to[i] = buffer->blocks[i].at;
        buffer->rows.columns[i].at = buffer->to[i];
    }
    if (s->without_labels) buffer->rows.columns[LABELS].at = NULL;
    return OK;
}

/* "9 columns; ", or `use` of the files. Returns the length. */
static int say_columns(struct row_stream *s)
{
    const char *use = s->files.use;
    if (s->files.is_stored) return snprintf(s->use, sizeof s->use, "%s%s", use, *use ? "; " : "");
    const int count = s->files.context.columns->count;
    return snprintf(s->use, sizeof s->use, "%d column%s; ", count, count == 1 ? "" : "s");
}

static void say_use(struct row_stream *s)
{
    int64_t reader = READER_BYTES + (path_is_url(s->files.name) ? FILE_AHEAD_BYTES : 0);
    int64_t bytes = BUFFERS * s->buffer_rows * s->row_bytes;
    for (int i = 0; i < s->files.file_count; i++)
        bytes += s->files.files[i].index.count * (int64_t)sizeof(struct row_block);
    if (has_packed(s)) reader += UNPACKED_AHEAD_BYTES;
    bytes += s->reader_count * reader;
    const int used = say_columns(s);
    snprintf(s->use + used, sizeof s->use - (size_t)used,
             "a stream of %d file%s, shuffle buffers of %lld rows, %d reader%s, %.0f MiB",
             s->files.file_count, s->files.file_count == 1 ? "" : "s", (long long)s->buffer_rows,
             s->reader_count, s->reader_count == 1 ? "" : "s", (double)bytes * 0x1p-20);
}

static err start_readers(struct row_stream *s)
{
    for (; s->started < s->reader_count; s->started++) {
        struct reader *r = &s->readers[s->started];
        *r = (struct reader){.stream = s, .cursor = {.files = &s->files}, .number = s->started};
        TRY(row_cursor_open(&r->cursor));
        const err e = thread_start(&r->thread, read_passages, r);
        if (!e) continue;
        row_cursor_close(&r->cursor);
        return fail_prefix(e, "%s", s->files.name);
    }
    return OK;
}

err stream_begin(struct row_stream *s, const struct stream_options *o)
{
    struct dataset none;
    stream_describe(s, &none);
    none.rows = 0;
    s->transform = o->transform;
    TRY(transform_check(&s->transform, &none));
    struct stream_size size;
    stream_measure(s, &size);
    s->buffer_rows = choose_buffer_rows(&size, o);
    s->is_handed_out = o->is_handed_out;
    TRY(check_memory(s));
    s->order = (struct order){
        .units = s->files.units,
        .count = s->files.unit_count,
        .rows = s->files.rows,
        .first = o->first,
        .batch = o->batch,
        .buffer_rows = s->buffer_rows,
        .worker = o->worker,
        .workers = o->workers,
        .per_round = (int)stream_per_round(o),
        .is_even = o->is_handed_out && s->buffer_rows < s->files.rows,
        .shuffle = o->shuffle,
        .is_once = o->is_once,
        .key = o->key,
    };
    TRY(order_open(&s->order));
    for (int i = 0; i < BUFFERS; i++) TRY(open_buffer(s, &s->memory[i]));
    say_use(s);
    return start_readers(s);
}

/* ---- open ---- */

err stream_is_wanted(const struct source_spec *source, const struct format_context *context,
                     bool *ret)
{
    const struct format *format = source->format.kind->descriptor;
    const bool has_reader =
        format_context_has_columns(context) ? format->read : format->read_stored;
    const bool can_be = has_reader && parts_are_files(format);
    uint64_t bytes = 0;
    *ret = source->stream == STREAM_ALWAYS;
    if (*ret && !can_be)
        return fail(ERR_INPUT, "\"stream\": only rows of files can be read as a stream, those of "
                               "cells with data.columns");
    if (!can_be || source->stream != STREAM_LARGE) return OK;
    TRY(parts_bytes(source, context, &bytes));
    *ret = bytes > (uint64_t)source->memory_mb << 20;
    return OK;
}

static err open_files(struct row_stream *s, const struct source_spec *source,
                      const struct format_context *context)
{
    TRY(row_files_open(&s->files, source, context));
    if (s->files.rows == 0) return OK;
    const struct column *made = columns_made(s->files.columns, &s->column_count);
    for (int i = 0; i < s->column_count; i++) {
        s->columns[i] = made[i];
        s->columns[i].name = arena_string(&s->files.arena, made[i].name);
        s->row_bytes += (int64_t)column_row_bytes(&made[i]);
    }
    s->without_labels = context->without_labels;
    const bool waits = path_is_url(s->files.name) && !s->files.files[0].index.is_packed;
    s->reader_count = source->readers ? (int)source->readers
                      : waits         ? READERS_OF_URLS
                                      : READERS_DEFAULT;
    return OK;
}

err stream_open(const struct source_spec *source, const struct format_context *context,
                struct row_stream **ret)
{
    struct row_stream *s = calloc(1, sizeof *s);
    if (!s) return fail(ERR_MEMORY, "no memory for rows");
    s->now = &s->memory[0];
    s->next = &s->memory[1];
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->work, NULL);
    pthread_cond_init(&s->done, NULL);
    const err e = open_files(s, source, context);
    if (e)
        stream_close(s);
    else
        *ret = s;
    return e;
}

void stream_describe(struct row_stream *s, struct dataset *ret)
{
    *ret = (struct dataset){
        .rows = s->files.rows,
        .columns = s->columns,
        .column_count = s->column_count,
        .name = s->files.name,
        .label_name = s->files.name,
        .use = s->use,
        .feature_names = parts_feature_names(s->files.parts),
    };
}

const struct left_out *stream_left_out(const struct row_stream *s)
{
    return &s->files.bad_rows.left_out;
}

uint64_t stream_digest(const struct row_stream *s)
{
    uint64_t digest = (uint64_t)s->files.rows;
    const int64_t buffer_rows = s->buffer_rows; /* if batches are handed out, the order depends
                                                   on it */
    if (s->is_handed_out && s->order.shuffle)
        digest = fingerprint_join(digest, fingerprint(&buffer_rows, sizeof buffer_rows));
    for (int64_t i = 0; i < s->files.unit_count; i++) {
        const struct unit *unit = &s->files.units[i];
        const struct row_index *index = &s->files.files[unit->file].index;
        const struct row_block *block = &index->blocks[row_index_block(index, unit->first)];
        const uint64_t numbers[] = {(uint64_t)unit->file, (uint64_t)unit->first,
                                    (uint64_t)unit->rows, (uint64_t)block->place.byte,
                                    s->files.files[unit->file].head};
        digest = fingerprint_join(digest, fingerprint(numbers, sizeof numbers));
    }
    return digest;
}

static void close_buffer(struct shuffle_buffer *buffer)
{
    for (int i = 0; i < COLUMNS_MAX; i++) block_drop(&buffer->blocks[i]);
    free(buffer->passages);
    free(buffer->is_taken);
}

void stream_close(struct row_stream *s)
{
    if (!s) return;
    stream_stop(s);
    for (int i = 0; i < s->started; i++) {
        pthread_join(s->readers[i].thread, NULL);
        row_cursor_close(&s->readers[i].cursor);
    }
    for (int i = 0; i < BUFFERS; i++) close_buffer(&s->memory[i]);
    order_close(&s->order);
    row_files_close(&s->files);
    pthread_cond_destroy(&s->work);
    pthread_cond_destroy(&s->done);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
