/* followed.c - see followed.h. */
#include "core/data/follow/followed.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/data/follow/ahead.h"
#include "core/data/stream/stream.h"

enum { LOOK_MS = 100, MS_IN_S = 1000 };

struct followed {
    struct arrivals arrivals;
    struct dataset described;
    struct stream_options options;
    struct opening opening;
    struct opened opened;
    struct opener ahead;
    uint64_t since_ms, noted_ms; /* since when it waits, and when it last logged that; 0: not
                                    waiting */
    bool has_ended;              /* and that was logged */
    struct stream_size example;  /* of the example file */

    pthread_mutex_t lock; /* guards what follows */
    struct reading_plan plan;
};

/* ---- waiting ---- */

static err note_wait(struct followed *f)
{
    const uint64_t now_ms = clock_ms();
    const double silent_s = f->arrivals.source->silent_secs;
    if (!f->since_ms) f->since_ms = f->noted_ms = now_ms;
    const uint64_t waited_ms = now_ms - f->since_ms;
    if (silent_s > 0 && (double)waited_ms >= silent_s * MS_IN_S)
        return fail(ERR_TIMEOUT, "%s: no file came for %g s (\"silent_secs\")", f->arrivals.pattern,
                    silent_s);
    if (!log_wait_is_due(f->since_ms, f->noted_ms, now_ms)) return OK;
    f->noted_ms = now_ms;
    log_line(LOG_INFO, "waiting for the next file of %s: %d taken%s%s, %llu s", f->arrivals.pattern,
             f->arrivals.count, f->arrivals.watched[0] ? ", last looked at " : "",
             f->arrivals.watched, (unsigned long long)waited_ms / MS_IN_S);
    return OK;
}

static void tell_end(struct followed *f)
{
    const struct arrivals *a = &f->arrivals;
    if (f->has_ended == a->has_ended) return;
    f->has_ended = a->has_ended;
    if (!f->has_ended) return;
    log_line(LOG_INFO, "%s: the end (%s%s): %d file%s, %lld row%s", a->pattern, a->folder,
             a->source->end_marker, a->count, a->count == 1 ? "" : "s", (long long)a->rows,
             a->rows == 1 ? "" : "s");
}

/* Rows of one push of every worker */
static int64_t rows_of_turn(const struct followed *f)
{
    return f->options.batch * (int64_t)stream_per_round(&f->options);
}

err followed_look(struct followed *f, uint64_t position, bool *ret_is_there)
{
    struct arrivals *a = &f->arrivals;
    const uint64_t turn = (uint64_t)rows_of_turn(f);
    const uint64_t end = position - position % turn + turn;
    const int before = a->count;
    int known = -1;
    while (known < a->count && (uint64_t)a->rows < end) { /* ends when a look finds nothing */
        known = a->count;
        TRY(arrivals_look(a));
    }
    *ret_is_there = (uint64_t)a->rows >= end;
    if (*ret_is_there || a->count > before || a->has_ended) f->since_ms = 0;
    tell_end(f);
    return *ret_is_there || a->has_ended ? OK : note_wait(f);
}

bool followed_has_ended(const struct followed *f, int64_t *ret_rows, int64_t *ret_used)
{
    *ret_rows = f->arrivals.rows;
    *ret_used = *ret_rows - *ret_rows % rows_of_turn(f);
    return f->has_ended;
}

void followed_place(const struct followed *f, uint64_t position, struct source_place *ret)
{
    const struct arrivals *a = &f->arrivals;
    const bool is_there = position < (uint64_t)a->rows;
    *ret =
        (struct source_place){.row = is_there ? (int64_t)position : a->rows,
                              .rows = a->rows,
                              .file = is_there ? arrivals_find(a, (int64_t)position) + 1 : a->count,
                              .files = a->count};
}

/* ---- rows ---- */

/* Files are used in order, so the previous one is closed. */
static err open_file(struct followed *f, int file)
{
    err e;
    if (f->opened.number == file) return OK;
    if (ahead_take(&f->ahead, file, &f->opened, &e)) return e;
    return opened_read(&f->opened, &f->arrivals, file, &f->opening);
}

/* The next file that has rows, or the index of the next one to be taken */
static int next_with_rows(const struct arrivals *a, int file)
{
    do file++;
    while (file < a->count && a->at[file].rows == 0);
    return file;
}

/* Only streams need the plan; files in memory do not. */
static void plan_stream(struct followed *f, struct row_stream *stream)
{
    pthread_mutex_lock(&f->lock);
    const struct reading_plan plan = f->plan;
    pthread_mutex_unlock(&f->lock);
    stream_plan(stream, &plan);
}

void followed_plan(struct followed *f, const struct reading_plan *plan)
{
    pthread_mutex_lock(&f->lock);
    f->plan = *plan;
    pthread_mutex_unlock(&f->lock);
}

int64_t followed_stretch(const struct followed *f, int workers)
{
    if (!f->example.rows) return 0;
    return stream_stretch(&f->example, &f->options, workers);
}

err followed_rows(struct followed *f, uint64_t position, int64_t max, int64_t *rows,
                  int64_t *ret_count, const struct dataset **ret_from)
{
    const int number = arrivals_find(&f->arrivals, (int64_t)position);
    const struct arrived *file = &f->arrivals.at[number];
    const int64_t first = (int64_t)position - file->before, left = file->rows - first;
    const uint64_t key = random_u64(f->options.key, (uint64_t)number);
    TRY(open_file(f, number));
    ahead_want(&f->ahead, next_with_rows(&f->arrivals, number));
    struct row_stream *const stream = f->opened.rows.stream;
    if (stream) {
        plan_stream(f, stream);
        return stream_rows(stream, position, max, rows, ret_count, ret_from);
    }
    *ret_from = &f->opened.rows.all;
    *ret_count = left < max ? left : max;
    for (int64_t i = 0; i < *ret_count; i++) {
        const uint64_t row = (uint64_t)(first + i);
        rows[i] =
            (int64_t)(f->options.shuffle ? random_permute(key, (uint64_t)file->rows, row) : row);
    }
    return OK;
}

/* ---- open and begin ---- */

/* Waits for a file with rows, and opens it */
static err await_example(struct followed *f, struct arrived_rows *ret)
{
    const char *name;
    for (;;) { /* ends with a file, the time limit, or a signal */
        TRY(arrivals_example(&f->arrivals, &name));
        if (name) TRY(arrivals_rows(&f->arrivals, name, ret));
        if (name && ret->all.rows > 0) return OK;
        if (name) {
            arrived_rows_close(ret);
            arrivals_pass(&f->arrivals, name);
        } else {
            TRY(note_wait(f));
            clock_pause(LOOK_MS);
        }
    }
}

static err describe(struct followed *f)
{
    struct arena *arena = &f->arrivals.arena;
    struct arrived_rows rows;
    TRY(await_example(f, &rows));
    f->since_ms = 0;
    if (rows.stream) stream_measure(rows.stream, &f->example);
    const struct dataset d = rows.all;
    f->described = (struct dataset){
        .columns = arena_array(arena, (size_t)d.column_count, sizeof *d.columns),
        .column_count = d.column_count,
        .name = f->arrivals.pattern,
        .label_name = f->arrivals.pattern,
        .use = arena_format(arena, "followed%s%s", d.use && *d.use ? "; " : "", d.use ? d.use : ""),
    };
    for (int i = 0; i < d.column_count; i++) {
        f->described.columns[i] = d.columns[i];
        f->described.columns[i].at = NULL;
        f->described.columns[i].name = arena_string(arena, d.columns[i].name);
    }
    f->described.feature_names = (struct strings){
        arena_strings(arena, d.feature_names.at, d.feature_names.count), d.feature_names.count};
    f->arrivals.context.feature_names = f->described.feature_names;
    f->ahead.arrivals.context.feature_names = f->described.feature_names;
    arrived_rows_close(&rows);
    return OK;
}

err followed_open(const struct source_spec *source, const struct format_context *context,
                  struct followed **ret)
{
    struct followed *f = calloc(1, sizeof *f);
    if (!f) return fail(ERR_MEMORY, "no memory for rows");
    f->opened.number = -1;
    pthread_mutex_init(&f->lock, NULL);
    err e = ahead_open(&f->ahead, source, context);
    if (!e) e = arrivals_open(&f->arrivals, source, context);
    if (!e) e = describe(f);
    if (e)
        followed_close(f);
    else
        *ret = f;
    return e;
}

void followed_close(struct followed *f)
{
    if (!f) return;
    ahead_close(&f->ahead);
    opened_close(&f->opened);
    arrivals_close(&f->arrivals);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

void followed_describe(const struct followed *f, struct dataset *ret)
{
    *ret = f->described;
}

err followed_begin(struct followed *f, const struct stream_options *o)
{
    const int per_push = (int)stream_per_push(o), per_round = (int)stream_per_round(o);
    const struct arrivals_share share = {o->batch, o->workers, per_push};
    if (per_round % o->workers)
        return fail(ERR_INPUT,
                    "\"follow\": train.replicas_to_aggregate %d: expected a multiple of the %d "
                    "workers, or fewer",
                    per_round, o->workers);
    if (per_push > o->prefetch)
        return fail(ERR_INPUT,
                    "\"follow\": data.prefetch %d: expected the %d batches of a push, or "
                    "more",
                    o->prefetch, per_push);
    f->options = *o;
    f->options.reads = NULL;
    f->opening = (struct opening){&f->described, &f->options};
    TRY(ahead_begin(&f->ahead, &share, f->opening));
    return arrivals_begin(&f->arrivals, &share);
}
