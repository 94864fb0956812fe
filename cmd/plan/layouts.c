/* layouts.c - see layouts.h. */
#include "cmd/plan/layouts.h"

#include <stdlib.h>

#include "core/base/overlap.h"

enum {
    BATCHES = 8,
    PROGRAM_BYTES = 16 << 20, /* of a task, besides its data */
};

/* ---- rows ---- */

static const struct lookup *lookup_of(const struct session *s, const struct param *param)
{
    return &s->rows.batches[0].lookups[graph_input_of(s->graph, param->ids)];
}

static err count_batch(struct session *s, struct named_rows *ret)
{
    struct batch batch;
    TRY(s->data.train->calls->next(s->data.train, &batch));
    prepared_make(&s->rows.batches[0], s->graph, &batch, 0);
    for (int i = 0; i < s->graph->param_count; i++)
        if (s->graph->params[i]->held)
            ret->at[i] += (double)lookup_of(s, s->graph->params[i])->count;
    ret->batches++;
    return OK;
}

/* Followed files may not exist yet: assumes as many rows as possible. */
static void take_most(const struct session *s, struct named_rows *ret)
{
    for (int i = 0; i < s->graph->param_count; i++) ret->at[i] = (double)s->graph->params[i]->held;
}

err named_rows_count(struct planned *planned, struct arena *arena, struct named_rows *ret)
{
    struct session *s = &planned->session;
    *ret = (struct named_rows){
        .at = arena_array(arena, (size_t)s->graph->param_count + 1, sizeof *ret->at)};
    if (!rows_are_used(&s->rows)) return OK;
    if (!s->data.train->rows) {
        take_most(s, ret);
        return OK;
    }
    for (int i = 0; i < BATCHES; i++) TRY(count_batch(s, ret));
    for (int i = 0; i < s->graph->param_count; i++) ret->at[i] /= ret->batches;
    return OK;
}

/* ---- bytes ---- */

static void count_dense(struct over_ps *s)
{
    const struct train_spec *train = &s->planned->run.spec.train;
    for (int ps = 0; ps < s->layout->all_ps; ps++) {
        s->bytes[ps].dense_up =
            (double)s->layout->moved_floats[ps] * (double)number_bytes((enum number)train->wire);
        if (ps >= s->layout->ps_count) continue; /* a follower: it sends no values */
        s->bytes[ps].dense_down = (double)s->layout->block_floats[ps] *
                                  (double)number_bytes((enum number)train->wire_values);
    }
}

/* Up: gradients of rows, and the ids of the next batch (row_area.h); down: rows */
static void count_rows(struct over_ps *s, const struct named_rows *named)
{
    const struct session *session = &s->planned->session;
    for (int i = s->layout->slice_count; i < s->layout->all_count; i++) {
        const struct slice *slice = &s->layout->slices[i];
        const struct param *param = session->graph->params[slice->variable];
        const double rows = named->at[slice->variable] / slice->parts,
                     floats = rows * (double)param->shape.dim[1] * (double)sizeof(float);
        const bool is_frozen = optimizers_freeze(&s->planned->run.spec.optimizers, param->name);
        const int numbers = 1 + growth_counts(param->growth);
        s->bytes[slice->ps].rows_up +=
            (is_frozen ? 0 : floats) + rows * numbers * (double)sizeof(int64_t);
        s->bytes[slice->ps].rows_down += floats;
    }
    for (int ps = s->layout->ps_count; ps < s->layout->all_ps; ps++)
        s->bytes[ps].rows_up = s->bytes[layout_home(s->layout, ps)].rows_up;
}

err over_ps_open(const struct planned *planned, const struct named_rows *named, int ps,
                 struct over_ps *ret)
{
    *ret = (struct over_ps){.planned = planned};
    const err e = session_spread(&planned->session, ps, &ret->arena, &ret->layout, &ret->rows);
    if (e) {
        over_ps_close(ret);
        return fail_prefix(e, "%d ps", ps);
    }
    ret->bytes = arena_array(&ret->arena, (size_t)ps, sizeof *ret->bytes);
    count_dense(ret);
    count_rows(ret, named);
    return OK;
}

void over_ps_close(struct over_ps *s)
{
    arena_free(&s->arena);
    *s = (struct over_ps){0};
}

/* ---- a layout ---- */

static double all_of(const struct ps_memory *m)
{
    return (double)(m->values + m->slots + m->windows + m->save);
}

/* With windows of a ps for workers on other hosts */
static err count_memory(const struct over_ps *s, const struct hosts *hosts, struct sized *ret)
{
    struct ps_memory *memory;
    size_t session;
    int most = 0;
    TRY(session_memory(&s->planned->session, &session));
    TRY(check_memory(&s->planned->run.spec, s->layout, &s->rows, ret->workers, &memory));
    for (int ps = 1; ps < ret->ps; ps++)
        if (all_of(&memory[ps]) > all_of(&memory[most])) most = ps;
    const struct ps_memory *m = &memory[most];
    ret->values = (double)m->values;
    ret->slots = (double)m->slots;
    ret->windows = (double)m->windows + PROGRAM_BYTES;
    ret->save = (double)m->save;
    ret->worker = (double)session + PROGRAM_BYTES;
    for (int ps = 0; ps < s->layout->all_ps; ps++)
        ret->worker += (double)rows_window_bytes(&s->rows, layout_home(s->layout, ps));
    ret->fits = !(hosts->memory > 0) ||
                (all_of(m) + PROGRAM_BYTES <= hosts->memory && ret->worker <= hosts->memory);
    free(memory);
    return OK;
}

/* [tasks] malloc'ed; NULL: no memory */
static int *hosts_of(const struct hosts *hosts, enum job job, int tasks)
{
    int *at = calloc((size_t)tasks + 1, sizeof *at);
    for (int i = 0; at && i < tasks && hosts->count; i++)
        at[i] = hosts->at[job] ? hosts->at[job][i % hosts->named[job]] : i % hosts->count;
    return at;
}

err over_ps_size(const struct over_ps *s, int workers, const struct hosts *hosts,
                 const struct plan_costs *costs, struct sized *ret)
{
    const struct spec *spec = &s->planned->run.spec;
    *ret = (struct sized){.ps = s->layout->all_ps, .workers = workers};
    TRY(count_memory(s, hosts, ret));
    int *ps_host = hosts_of(hosts, JOB_PS, ret->ps),
        *worker_host = hosts_of(hosts, JOB_WORKER, workers);
    const struct plan_case c = {
        .host_count = hosts->count,
        .ps_host = ps_host,
        .worker_host = worker_host,
        .ps = ret->ps,
        .workers = workers,
        .batch = (double)spec->data.batch_size,
        .is_sync = spec->train.mode == MODE_SYNC,
        .overlaps = (s->planned->session.overlap & OVERLAP_BACKWARD) != 0,
        .link_bytes_s = hosts->link_bytes_s,
        .round_trip_s = hosts->round_trip_s,
        .bytes = s->bytes,
        .costs = *costs,
    };
    if (ps_host && worker_host) ret->time = plan_time_of(&c);
    free(ps_host);
    free(worker_host);
    if (!ps_host || !worker_host) return fail(ERR_MEMORY, "no memory for %d tasks", workers);
    ret->fullest = s->bytes[ret->time.ps];
    for (int ps = 0; ps < ret->ps; ps++) {
        ret->up += s->bytes[ps].dense_up + s->bytes[ps].rows_up;
        ret->down += s->bytes[ps].dense_down + s->bytes[ps].rows_down;
    }
    return OK;
}

int ladder_at(int index)
{
    static const int steps[] = {1, 2, 5};
    int ten = 1;
    for (; index >= 3; index -= 3) ten *= 10;
    return steps[index] * ten;
}
