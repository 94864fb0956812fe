/* followed.c - see followed.h. */
#include "core/data/follow/followed.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/data/follow/arrivals.h"

enum { NOTE_MS = 10000, LOOK_MS = 100, NS_IN_MS = 1000000, MS_IN_S = 1000, FILES_OPEN = 2 };

/* A file whose rows are in memory */
struct opened {
    int file; /* of the arrivals; -1: none */
    struct dataset rows;
};

struct followed {
    struct arrivals arrivals;
    struct dataset described;
    struct stream_options options;
    struct opened opened[FILES_OPEN];
    int last;                    /* of these, that was asked for last */
    uint64_t since_ms, noted_ms; /* it waits; 0: it does not */
    bool has_ended;              /* and it is said */
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
    if (now_ms - f->noted_ms < NOTE_MS) return OK;
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
    log_line(LOG_INFO, "%s: the end (%s%s): %d files, %lld rows", a->pattern, a->folder,
             a->source->end_marker, a->count, (long long)a->rows);
}

err followed_look(struct followed *f, uint64_t position, bool *ret_is_there)
{
    struct arrivals *a = &f->arrivals;
    const struct stream_options *o = &f->options;
    const uint64_t turn = (uint64_t)o->batch * (uint64_t)o->workers * (uint64_t)o->per_push;
    const uint64_t end = position - position % turn + turn;
    const int before = a->count;
    int known = -1;
    while (known < a->count && (uint64_t)a->rows < end) { /* ends: nothing is new */
        known = a->count;
        TRY(arrivals_look(a));
    }
    *ret_is_there = (uint64_t)a->rows >= end;
    if (*ret_is_there || a->count > before || a->has_ended) f->since_ms = 0;
    tell_end(f);
    return *ret_is_there || a->has_ended ? OK : note_wait(f);
}

bool followed_has_ended(const struct followed *f)
{
    return f->has_ended;
}

/* ---- rows ---- */

static bool is_alike(const struct column *x, const struct column *y)
{
    return !strcmp(x->name, y->name) && x->dtype == y->dtype && shape_equal(&x->shape, &y->shape);
}

/* As the first one, and as it was when it was taken. */
static err check_file(const struct followed *f, const struct arrived *file,
                      const struct dataset *rows)
{
    const struct dataset *first = &f->described;
    bool is_so = rows->column_count == first->column_count;
    for (int i = 0; i < rows->column_count && is_so; i++)
        is_so = is_alike(&rows->columns[i], &first->columns[i]);
    if (!is_so)
        return fail(ERR_INPUT, "%s: its columns are not those of the files before", rows->name);
    if (rows->rows != file->rows)
        return fail(ERR_INPUT, "%s: had %lld rows when it was taken, now %lld", rows->name,
                    (long long)file->rows, (long long)rows->rows);
    return rows->columns[LABELS].at ? transform_check(&f->options.transform, rows) : OK;
}

static err read_file(struct followed *f, int file, struct opened *to)
{
    const struct arrived *arrived = &f->arrivals.at[file];
    dataset_close(&to->rows);
    to->file = -1;
    TRY(arrivals_check(&f->arrivals, arrived));
    const err e = arrivals_rows(&f->arrivals, arrived->name, &to->rows);
    if (e) return e;
    TRY(check_file(f, arrived, &to->rows));
    to->file = file;
    return OK;
}

/* The one that was asked for before the last one makes room. */
static err open_file(struct followed *f, int file, const struct dataset **ret)
{
    int i = 0;
    while (i < FILES_OPEN && f->opened[i].file != file) i++;
    if (i == FILES_OPEN) {
        i = (f->last + 1) % FILES_OPEN;
        TRY(read_file(f, file, &f->opened[i]));
    }
    f->last = i;
    *ret = &f->opened[i].rows;
    return OK;
}

err followed_rows(struct followed *f, uint64_t position, int64_t max, int64_t *rows,
                  int64_t *ret_count, const struct dataset **ret_from)
{
    const int number = arrivals_find(&f->arrivals, (int64_t)position);
    const struct arrived *file = &f->arrivals.at[number];
    const int64_t first = (int64_t)position - file->before, left = file->rows - first;
    const uint64_t key = random_u64(f->options.key, (uint64_t)number);
    TRY(open_file(f, number, ret_from));
    *ret_count = left < max ? left : max;
    for (int64_t i = 0; i < *ret_count; i++) {
        const uint64_t row = (uint64_t)(first + i);
        rows[i] =
            (int64_t)(f->options.shuffle ? random_permute(key, (uint64_t)file->rows, row) : row);
    }
    return OK;
}

/* ---- open and begin ---- */

static err await_example(struct followed *f, const char **ret_name)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * NS_IN_MS};
    for (;;) { /* ends: a file, the limit, or a signal ends the process */
        TRY(arrivals_example(&f->arrivals, ret_name));
        if (*ret_name) return OK;
        TRY(note_wait(f));
        nanosleep(&pause, NULL);
    }
}

static err describe(struct followed *f)
{
    struct arena *arena = &f->arrivals.arena;
    const char *name;
    struct dataset d;
    TRY(await_example(f, &name));
    f->since_ms = 0;
    TRY(arrivals_rows(&f->arrivals, name, &d));
    f->described = (struct dataset){
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
    dataset_close(&d);
    return OK;
}

err followed_open(const struct source_spec *source, const struct format_context *context,
                  struct followed **ret)
{
    struct followed *f = calloc(1, sizeof *f);
    if (!f) return fail(ERR_MEMORY, "no memory for rows");
    for (int i = 0; i < FILES_OPEN; i++) f->opened[i].file = -1;
    err e = arrivals_open(&f->arrivals, source, context);
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
    for (int i = 0; i < FILES_OPEN; i++) dataset_close(&f->opened[i].rows);
    arrivals_close(&f->arrivals);
    free(f);
}

void followed_describe(const struct followed *f, struct dataset *ret)
{
    *ret = f->described;
}

err followed_begin(struct followed *f, const struct stream_options *o)
{
    const struct arrivals_share share = {o->batch, o->workers, o->per_push};
    if (o->per_push > o->prefetch)
        return fail(ERR_INPUT,
                    "\"follow\": data.prefetch %d: expected the %d batches of a push, or "
                    "more",
                    o->prefetch, o->per_push);
    f->options = *o;
    f->options.reads = NULL;
    return arrivals_begin(&f->arrivals, &share);
}
