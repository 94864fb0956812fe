/* ahead.c - see ahead.h. */
#include "core/data/follow/ahead.h"

#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/random.h"
#include "core/base/threads/thread.h"
#include "core/data/stream/stream.h"

enum { LOOK_MS = 200, NO_FILE = -1 };

/* ---- one file ---- */

void opened_close(struct opened *o)
{
    arrived_rows_close(&o->rows);
    o->number = NO_FILE;
}

static bool is_alike(const struct column *x, const struct column *y)
{
    return !strcmp(x->name, y->name) && x->dtype == y->dtype && shape_equal(&x->shape, &y->shape);
}

/* Checks that columns match the first file, and rows are as many as when it was taken. */
static err check_file(const struct opening *opening, const struct arrived *file,
                      const struct dataset *rows)
{
    const struct dataset *first = opening->described;
    bool is_so = rows->column_count == first->column_count;
    for (int i = 0; i < rows->column_count && is_so; i++)
        is_so = is_alike(&rows->columns[i], &first->columns[i]);
    if (!is_so)
        return fail(ERR_INPUT, "%s: its columns are not those of the files before", rows->name);
    if (rows->rows != file->rows)
        return fail(ERR_INPUT, "%s: had %lld rows when it was taken, now %lld", rows->name,
                    (long long)file->rows, (long long)rows->rows);
    return transform_check(&opening->options->transform, rows);
}

static err begin_stream(struct row_stream *stream, const struct arrived *file, int number,
                        const struct stream_options *options)
{
    struct stream_options own = *options;
    own.first = (uint64_t)file->before;
    own.key = random_u64(options->key, (uint64_t)number);
    own.is_once = true;
    return stream_begin(stream, &own);
}

err opened_read(struct opened *to, const struct arrivals *arrivals, int number,
                const struct opening *opening)
{
    const struct arrived *file = &arrivals->at[number];
    opened_close(to);
    TRY(arrivals_check(arrivals, file));
    TRY(arrivals_rows(arrivals, file->name, &to->rows));
    err e = check_file(opening, file, &to->rows.all);
    if (!e && to->rows.stream) e = begin_stream(to->rows.stream, file, number, opening->options);
    if (e)
        opened_close(to);
    else
        to->number = number;
    return e;
}

/* ---- ahead ---- */

err ahead_open(struct opener *a, const struct source_spec *source,
               const struct format_context *context)
{
    *a = (struct opener){.wanted = NO_FILE, .opened = {.number = NO_FILE}};
    return arrivals_open(&a->arrivals, source, context);
}

err ahead_begin(struct opener *a, const struct arrivals_share *share, struct opening opening)
{
    a->opening = opening;
    return arrivals_begin(&a->arrivals, share);
}

static err look(struct opener *a)
{
    if (a->wanted >= a->arrivals.count) TRY(arrivals_look(&a->arrivals));
    if (a->wanted >= a->arrivals.count || a->arrivals.at[a->wanted].rows == 0) return OK;
    return opened_read(&a->opened, &a->arrivals, a->wanted, &a->opening);
}

static void *run(void *context)
{
    struct opener *a = context;
    a->result = look(a);
    if (a->result) snprintf(a->text, sizeof a->text, "%s", error_text());
    atomic_store(&a->is_done, true);
    return NULL;
}

static void join(struct opener *a)
{
    if (a->is_running) pthread_join(a->thread, NULL);
    a->is_running = false;
}

static bool has_come(const struct opener *a, int number)
{
    return a->wanted == number && (a->result || a->opened.number == number);
}

/* If the thread cannot be started, the file is opened when it is needed. */
void ahead_want(struct opener *a, int number)
{
    if (a->is_running && !atomic_load(&a->is_done)) return;
    join(a);
    if (has_come(a, number) || clock_ms() - a->looked_ms < LOOK_MS) return;
    opened_close(&a->opened);
    a->wanted = number;
    a->result = OK;
    a->looked_ms = clock_ms();
    atomic_store(&a->is_done, false);
    a->is_running = thread_start(&a->thread, run, a) == OK;
}

bool ahead_take(struct opener *a, int number, struct opened *to, err *ret)
{
    join(a);
    if (!has_come(a, number)) return false;
    *ret = a->result ? fail(a->result, "%s", a->text) : OK;
    opened_close(to);
    *to = a->opened;
    a->opened = (struct opened){.number = NO_FILE};
    a->wanted = NO_FILE;
    a->looked_ms = 0;
    return true;
}

void ahead_close(struct opener *a)
{
    join(a);
    opened_close(&a->opened);
    arrivals_close(&a->arrivals);
}
