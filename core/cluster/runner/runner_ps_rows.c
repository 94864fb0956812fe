/* runner_ps_rows.c - the tables of a ps: what workers say of rows, and what becomes of it.
 *
 * A push consists of ROWS and PUSH, on one link and in this order; what ROWS brings counts when the
 * PUSH is applied. Windows of rows are also the workers' memory: what is read there is copied
 * before it is looked at. Ids cross once: those that are wanted with a push are kept, and are those
 * of the next one.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/cluster/runner/runner_ps_inside.h"
#include "core/train/variables/aside.h"
#include "core/train/variables/table.h"
#include "kernels/device.h"

enum {
    TOLD_LEAST = 1 << 16,
    CHANGES_BYTES_MAX = 256 << 20, /* rows of a table that changed between two snapshots */
};

struct runner_ps_tables {
    int users;                 /* the ps, and a checkpoint */
    struct shard_table *shown; /* [area.count] to checkpoints */
    struct device own,
        *host; /* which updates them; own: where the ps' device is none of the host's */
    struct row_area area;
    struct table **at;       /* [area.count] */
    struct aside_room aside; /* of the save that continues */
    uint64_t noted;          /* tag of the snapshot since which changes are noted; 0: none */
    int64_t *told;           /* [area.count] rows of a table that grows, when a line last said so */
    int64_t *ids;            /* [area.rows] that one worker asks for, checked */
    /* Of one table what workers have pushed, and its sum */
    struct row_gradients *pushed; /* [workers] */
    int64_t room;                 /* rows of the widest table that the following have room for */
    int64_t *sum_ids, *sum_times;
    float *sum;
};

/* ---- life ---- */

static err open_table(struct runner_ps *p, int i)
{
    const struct table_share *share = &p->share->setup.tables[i];
    const struct slice *slice = &share->slice;
    const struct table_description description = table_describe(slice, &share->spec);
    TRY(row_area_add(&p->tables->area,
                     &(struct area_slice){slice->start, slice->length, slice->shape.dim[1],
                                          share->spec.most, growth_counts(share->spec.growth)}));
    struct updater by = {0};
    if (share->optimizer != OPTIMIZER_NONE) by = p->store.updaters[share->optimizer];
    by.decay = optimizers_decay(&p->share->setup.optimizers, slice->name);
    TRY(table_open(&description, by.optimizer ? &by : NULL, p->tables->host, &p->tables->at[i]));
    p->tables->shown[i] = (struct shard_table){
        .slice = slice, .optimizer = share->optimizer, .rows = p->tables->at[i]};
    return OK;
}

static void open_named(const struct row_area *area, struct arena *arena, struct rows_named *ret)
{
    const size_t rows = (size_t)area->rows + 1;
    *ret = (struct rows_named){.pushed = arena_array(arena, rows, sizeof *ret->pushed),
                               .wanted = arena_array(arena, rows, sizeof *ret->wanted),
                               .brought =
                                   arena_array(arena, (size_t)area->count, sizeof *ret->brought)};
    area_counts_open(area, arena, &ret->counts);
    area_counts_open(area, arena, &ret->asked);
}

err runner_ps_tables_open(struct runner_ps *p)
{
    struct share *share = p->share;
    const int count = share->setup.table_count;
    runner_ps_tables_close(p);
    if (!count) return OK;
    p->tables = calloc(1, sizeof *p->tables);
    if (!p->tables) return fail(ERR_MEMORY, "no memory for %d tables", count);
    struct runner_ps_tables *t = p->tables;
    t->users = 1;
    aside_room_open(&t->aside);
    t->host = p->device->is_separate ? &t->own : p->device;
    if (t->host == &t->own) TRY(device_open_cpu(1, NULL, &t->own));
    row_area_open(count, &share->arena, &t->area);
    t->at = calloc((size_t)count, sizeof(struct table *));
    t->shown = calloc((size_t)count, sizeof *t->shown);
    t->told = calloc((size_t)count, sizeof *t->told);
    if (!t->at || !t->shown || !t->told) return fail(ERR_MEMORY, "no memory for %d tables", count);
    for (int i = 0; i < count; i++) TRY(open_table(p, i));
    t->ids = malloc((size_t)t->area.rows * sizeof *t->ids);
    t->pushed = calloc((size_t)p->task.peer_count, sizeof *t->pushed);
    if (!t->ids || !t->pushed)
        return fail(ERR_MEMORY, "no memory for %lld ids", (long long)t->area.rows);
    runner_ps_tables_unname(p);
    return OK;
}

void runner_ps_tables_unname(struct runner_ps *p)
{
    for (int w = 0; p->tables && w < p->task.peer_count; w++)
        open_named(&p->tables->area, &p->share->arena, &p->windows[w].named);
}

/* The last user frees them. */
static void drop(struct runner_ps_tables *t)
{
    if (!t || --t->users) return;
    for (int i = 0; t->at && i < t->area.count; i++) table_close(t->at[i]);
    free(t->at);
    free(t->shown);
    free(t->told);
    if (t->own.kernels) device_close(&t->own);
    free(t->ids);
    free(t->pushed);
    free(t->sum_ids);
    free(t->sum_times);
    free(t->sum);
    aside_room_close(&t->aside);
    free(t);
}

void runner_ps_tables_close(struct runner_ps *p)
{
    drop(p->tables);
    p->tables = NULL;
}

struct runner_ps_tables *runner_ps_tables_hold(struct runner_ps *p)
{
    struct runner_ps_tables *t = p->tables;
    if (!t) return NULL;
    t->users++;
    aside_room_begin(&t->aside);
    for (int i = 0; i < t->area.count; i++) table_save_begin(t->at[i], &t->aside);
    return t;
}

/* A checkpoint that is written holds the share too, whose arena has descriptions. */
void runner_ps_tables_release(struct runner_ps_tables *t)
{
    if (!t) return;
    for (int i = 0; i < t->area.count; i++) table_save_end(t->at[i]);
    aside_room_end();
    drop(t);
}

/* ---- what changes ---- */

void runner_ps_tables_note(struct runner_ps *p, uint64_t tag)
{
    struct runner_ps_tables *t = p->tables;
    if (!t) return;
    for (int i = 0; i < t->area.count; i++) table_note_changes(t->at[i], CHANGES_BYTES_MAX);
    t->noted = tag;
}

void runner_ps_changes_free(struct table_changes *changes, int count)
{
    for (int i = 0; changes && i < count; i++) table_changes_free(&changes[i]);
    free(changes);
}

static err take_changes(struct runner_ps_tables *t, struct table_changes *ret)
{
    for (int i = 0; i < t->area.count; i++) TRY(table_take_changes(t->at[i], &ret[i]));
    return OK;
}

err runner_ps_tables_take(struct runner_ps *p, uint64_t since, uint64_t tag,
                          struct table_changes **ret)
{
    struct runner_ps_tables *t = p->tables;
    *ret = NULL;
    if (!t) return OK;
    if (t->noted != since)
        return fail(ERR_INPUT,
                    "changes are known since another snapshot, not since the one before");
    t->noted = tag;
    *ret = calloc((size_t)t->area.count, sizeof **ret);
    if (!*ret) return fail(ERR_MEMORY, "no memory for what has changed");
    return take_changes(t, *ret);
}

void runner_ps_tables_describe(const struct runner_ps *p, struct shard *ret)
{
    if (!p->tables) return;
    ret->tables = p->tables->shown;
    ret->table_count = p->tables->area.count;
}

size_t runner_ps_tables_window_bytes(const struct runner_ps *p)
{
    return p->tables ? p->tables->area.bytes : 0;
}

/* ---- what workers say ---- */

/* Ids of a front, `count` by table, copied to where they stay as they are; sound ones. */
static err take_ids(struct runner_ps *p, const int64_t *from, const int64_t *count, int64_t *ids)
{
    const struct runner_ps_tables *t = p->tables;
    for (int i = 0; i < t->area.count; i++) {
        memcpy(ids, from, (size_t)count[i] * sizeof *ids);
        if (!table_has(t->at[i], ids, count[i]))
            return fail(ERR_PROTOCOL, "rows of %s that are not on this ps",
                        p->share->setup.tables[i].slice.name);
        from += count[i];
        ids += count[i];
    }
    return OK;
}

/* Rows of these ids, `count` by table, into the back. */
static void gather(struct runner_ps *p, int worker, const int64_t *ids, const int64_t *count,
                   bool trains)
{
    struct runner_ps_tables *t = p->tables;
    float *to = area_rows(&t->area, p->windows[worker].rows.base);
    for (int i = 0; i < t->area.count; i++) {
        if (trains)
            table_gather(t->at[i], ids, count[i], to);
        else
            table_gather_made(t->at[i], ids, count[i], to);
        ids += count[i];
        to += count[i] * t->area.slices[i].width;
    }
}

/* counts NULL: there are none */
static void answer(struct runner_ps *p, int worker, struct message_rows rows,
                   const struct area_counts *counts)
{
    struct message m = {
        .type = MESSAGE_ROWS,
        .job = JOB_PS,
        .task = (uint32_t)p->task.index,
        .rows = rows,
    };
    if (counts) {
        m.generation = p->share->setup.config.generation;
        m.offset = p->tables->area.front;
        m.length = (uint64_t)counts->wanted_floats * sizeof(float);
    }
    if (link_send(p->task.peers[worker].link, &m))
        log_line(LOG_DEBUG, "%s", error_text()); /* the link closes */
}

static void note_read(struct runner_ps *p, int worker, const struct area_counts *counts,
                      bool is_asked)
{
    int64_t rows = 0;
    if (!p->turns.record) return;
    for (int i = 0; i < p->tables->area.count; i++) rows += counts->wanted[i];
    runner_ps_turns_note_rows(p, worker, rows > 0, is_asked);
}

void runner_ps_tables_answer(struct runner_ps *p, int worker)
{
    struct rows_named *named = &p->windows[worker].named;
    if (!p->tables || !named->told.wants) return;
    if (p->turns.is_replay && !ps_role_rows_go_with_values(p->task.role, worker)) {
        named->told.wants = false; /* it asks for them */
        return;
    }
    if (!rows_are_due(&named->told)) return;
    gather(p, worker, named->wanted, named->counts.wanted, true);
    note_read(p, worker, &named->counts, false);
    answer(p, worker, (struct message_rows){.push = named->told.push}, &named->counts);
    if (p->turns.is_replay) ps_role_gave_rows(p->task.role, worker, &p->task.outbox);
}

static bool is_of_this_life(const struct runner_ps *p, int worker, const struct message *m)
{
    return p->tables && p->windows[worker].rows.base && ps_role_is_serving(p->task.role) &&
           m->generation == p->share->setup.config.generation;
}

static err read_front(const struct runner_ps *p, int worker, const struct message *m,
                      struct area_counts *ret)
{
    const bool with_ids = !(m->rows.flags & ROWS_BROUGHT);
    if (m->offset) return fail(ERR_PROTOCOL, "rows that do not begin at the front");
    return area_read_counts(&p->tables->area, p->windows[worker].rows.base, m->length, with_ids,
                            ret);
}

static err answer_asking(struct runner_ps *p, int worker, const struct message *m)
{
    struct area_counts *asked = &p->windows[worker].named.asked;
    const struct runner_ps_tables *t = p->tables;
    void *front = p->windows[worker].rows.base;
    TRY(read_front(p, worker, m, asked));
    TRY(take_ids(p, area_wanted_ids(&t->area, asked, front), asked->wanted, t->ids));
    const bool trains = !(m->rows.flags & ROWS_MADE);
    gather(p, worker, t->ids, asked->wanted, trains);
    answer(p, worker, (struct message_rows){ROWS_ASKED, .request_id = m->rows.request_id}, asked);
    if (!trains) return OK;
    note_read(p, worker, asked, true);
    if (p->turns.is_replay) ps_role_gave_rows(p->task.role, worker, &p->task.outbox);
    return OK;
}

/* What trains is answered in its turn, where turns are given. */
static err answer_in_turn(struct runner_ps *p, int worker, const struct message *m)
{
    const bool trains = !(m->rows.flags & ROWS_MADE);
    p->windows[worker].named.late = (struct message){0};
    if (!p->turns.is_replay || !trains || ps_role_rows_are_due(p->task.role, worker))
        return answer_asking(p, worker, m);
    p->windows[worker].named.late = *m;
    return OK;
}

void runner_ps_tables_give_up(struct runner_ps *p, int worker)
{
    const struct message late = p->windows[worker].named.late;
    p->windows[worker].named.late = (struct message){0};
    if (!late.type || !p->task.peers[worker].link) return;
    answer(p, worker, (struct message_rows){ROWS_NONE, .request_id = late.rows.request_id}, NULL);
}

void runner_ps_tables_pump(struct runner_ps *p)
{
    if (!p->tables || !p->turns.is_replay) return;
    for (int w = 0; w < p->task.peer_count && !p->task.outbox.count; w++) {
        const struct message late = p->windows[w].named.late;
        if (!late.type || !p->task.peers[w].link || !is_of_this_life(p, w, &late)) continue;
        if (!answer_in_turn(p, w, &late)) continue;
        connection_break_off(link_context(p->task.peers[w].link)); /* all others had their turn */
        return;
    }
}

/* Those that were wanted before */
static err take_brought(const struct runner_ps_tables *t, struct rows_named *named)
{
    int64_t *const ids = named->wanted;
    named->wanted = named->pushed;
    named->pushed = ids;
    if (!memcmp(named->brought, named->counts.pushed, (size_t)t->area.count * sizeof *ids))
        return OK;
    return fail(ERR_PROTOCOL, "gradients of other rows than were brought");
}

static err take_named(struct runner_ps *p, int worker, const struct message *m)
{
    const struct row_area *area = &p->tables->area;
    struct rows_named *named = &p->windows[worker].named;
    struct area_counts *counts = &named->counts;
    void *front = p->windows[worker].rows.base;
    memcpy(named->brought, counts->wanted, (size_t)area->count * sizeof *counts->wanted);
    TRY(read_front(p, worker, m, counts));
    if (m->rows.flags & ROWS_BROUGHT)
        TRY(take_brought(p->tables, named));
    else
        TRY(take_ids(p, area_pushed_ids(area, counts, front), counts->pushed, named->pushed));
    return take_ids(p, area_wanted_ids(area, counts, front), counts->wanted, named->wanted);
}

/* Ids that were not looked at are nobody's. */
static err keep_named(struct runner_ps *p, int worker, const struct message *m)
{
    const err e = take_named(p, worker, m);
    if (e) area_counts_clear(&p->tables->area, &p->windows[worker].named.counts);
    return e;
}

err runner_ps_tables_heard(struct runner_ps *p, int worker, const struct message *m)
{
    struct rows_told *told = &p->windows[worker].named.told;
    const char *fault = message_fault(m, FROM_WORKER | FROM_CHIEF);
    if (fault) return fail(ERR_PROTOCOL, "ROWS, %s", fault);
    switch (rows_heard(told, m, is_of_this_life(p, worker, m))) {
    case ROWS_REFUSE:
        answer(p, worker, (struct message_rows){ROWS_NONE, .request_id = m->rows.request_id}, NULL);
        return OK;
    case ROWS_ANSWER:
        return answer_in_turn(p, worker, m);
    case ROWS_KEEP:
        return keep_named(p, worker, m);
    case ROWS_WRONG:
        return fail(ERR_PROTOCOL, "gradients of rows that were not brought");
    default:
        return OK;
    }
}

bool runner_ps_tables_have(const struct runner_ps *p, int worker, const struct message *push)
{
    return !p->tables || rows_belong(&p->windows[worker].named.told, push);
}

/* ---- updates ---- */

/* Of one table what a worker has pushed, where it lies */
static struct row_gradients pushed_of(const struct runner_ps *p, int worker, int table)
{
    const struct row_area *area = &p->tables->area;
    const struct windows *w = &p->windows[worker];
    const struct area_counts *counts = &w->named.counts;
    struct row_gradients at = {
        .rows = w->named.pushed,
        .gradients = area_gradients(area, counts, w->rows.base),
        .count = counts->pushed[table],
    };
    const int64_t *times = area_times(area, counts, w->rows.base);
    for (int i = 0; i < table; i++) {
        times += area->slices[i].counts ? counts->pushed[i] : 0;
        at.rows += counts->pushed[i];
        at.gradients += counts->pushed[i] * area->slices[i].width;
    }
    at.times = area->slices[table].counts ? times : NULL;
    return at;
}

/* Who has pushed what is no number */
static err blame(const struct runner_ps *p, const struct action_apply *a, int table)
{
    const char *name = p->share->setup.tables[table].slice.name;
    const int64_t width = p->tables->area.slices[table].width;
    const unsigned long long step = a->step + 1;
    for (int w = 0; w < a->worker_count; w++) {
        const struct row_gradients at = pushed_of(p, a->workers[w], table);
        for (int64_t i = 0; i < at.count; i++)
            if (!p->tables->host->kernels->all_finite(p->tables->host, at.gradients + i * width,
                                                      width))
                return fail(ERR_NUMBER,
                            "worker/%d pushed a gradient that is not finite at step %llu: %s, row "
                            "%lld",
                            a->workers[w], step, name,
                            (long long)table_id(p->tables->at[table], at.rows[i]));
    }
    return fail(ERR_NUMBER, "the sum of the gradients at step %llu is not finite: %s", step, name);
}

static err reserve(struct runner_ps_tables *t, int64_t rows)
{
    int64_t width = 1;
    if (rows <= t->room) return OK;
    for (int i = 0; i < t->area.count; i++)
        if (t->area.slices[i].width > width) width = t->area.slices[i].width;
    free(t->sum_ids);
    free(t->sum_times);
    free(t->sum);
    t->room = rows;
    t->sum_ids = malloc((size_t)rows * sizeof *t->sum_ids);
    t->sum_times = malloc((size_t)rows * sizeof *t->sum_times);
    t->sum = malloc((size_t)(rows * width) * sizeof *t->sum);
    if (t->sum_ids && t->sum_times && t->sum) return OK;
    t->room = 0;
    return fail(ERR_MEMORY, "no memory for the gradients of %lld rows", (long long)rows);
}

struct tables_size runner_ps_tables_size(const struct runner_ps *p)
{
    struct tables_size size = {0};
    for (int i = 0; p->tables && i < p->tables->area.count; i++) {
        size.rows += table_made(p->tables->at[i]);
        size.bytes += table_bytes(p->tables->at[i]);
    }
    return size;
}

/* At doublings */
static void tell_growth(const struct runner_ps *p, int table)
{
    const struct table *of = p->tables->at[table];
    int64_t *told = &p->tables->told[table];
    const int64_t rows = table_made(of);
    if (!table_growing(of) || rows < TOLD_LEAST || rows < 2 * *told) return;
    *told = rows;
    log_line(LOG_INFO, "%s has grown to %lld rows here, %.2f MB with slots and index",
             p->share->setup.tables[table].slice.name, (long long)rows,
             (double)table_bytes(of) / 1e6);
}

/* Of one gradient, too: windows are written by workers at any time, and what is looked at is what
 * is applied. */
static err sum_pushed(struct runner_ps *p, const struct action_apply *a, int table,
                      struct row_gradients *ret)
{
    struct runner_ps_tables *t = p->tables;
    const int64_t width = t->area.slices[table].width;
    int64_t rows = 0;
    for (int w = 0; w < a->worker_count; w++) {
        t->pushed[w] = pushed_of(p, a->workers[w], table);
        rows += t->pushed[w].count;
    }
    TRY(reserve(t, rows));
    const int64_t count = table_sum(t->pushed, a->worker_count, width, 1.0f / (float)a->gradients,
                                    t->sum_ids, t->sum);
    *ret = (struct row_gradients){t->sum_ids, t->sum, count};
    if (!t->area.slices[table].counts) return OK;
    table_sum_times(t->pushed, a->worker_count, t->sum_times);
    ret->times = t->sum_times;
    return OK;
}

static err apply_table(struct runner_ps *p, const struct action_apply *a, int table)
{
    struct runner_ps_tables *t = p->tables;
    const int updater = p->share->setup.tables[table].optimizer;
    if (updater == OPTIMIZER_NONE) return OK;
    const struct juncture now = store_juncture(&p->store, updater, (int64_t)a->step);
    struct row_gradients sum;
    TRY(sum_pushed(p, a, table, &sum));
    const err e = table_apply(t->at[table], sum.rows, sum.count, sum.gradients, sum.times, &now);
    if (!e) tell_growth(p, table);
    return e == ERR_NUMBER ? blame(p, a, table) : e;
}

err runner_ps_tables_apply(struct runner_ps *p, const struct action_apply *a)
{
    for (int i = 0; p->tables && i < p->tables->area.count; i++) TRY(apply_table(p, a, i));
    return OK;
}
