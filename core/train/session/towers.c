/* towers.c - see towers.h. */
#include "core/train/session/towers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/threads/thread.h"
#include "core/train/session/pinned.h"
#include "core/train/session/replica.h"

enum { PAGE_BYTES = 4096, FLOATS_ALIGN = 16 };

/* ---- where parameters lie ---- */

/* Whether the device of the tower does not see the session's memory. CPUs all see the same memory.
 */
static bool is_apart(const struct tower *t)
{
    const struct device *all = t->all->device;
    return t->device != all && (t->device->is_separate || all->is_separate);
}

static err open_floats(struct device *d, const struct graph *g, struct arena *arena, float ***ret)
{
    *ret = arena_array(arena, (size_t)g->param_count, sizeof **ret);
    for (int i = 0; i < g->param_count; i++)
        TRY(device_floats(d, param_floats(g->params[i]), &(*ret)[i]));
    return OK;
}

static void close_floats(struct device *d, const struct graph *g, float **floats)
{
    for (int i = 0; floats && i < g->param_count; i++)
        if (floats[i]) d->kernels->release(d, floats[i]);
}

static int64_t room_of(const struct param *param)
{
    return (param_floats(param) + FLOATS_ALIGN - 1) / FLOATS_ALIGN * FLOATS_ALIGN;
}

/* Opens memory of the host that the device writes, for all params: one piece, in pages of its own.
 */
static err open_hosted(struct device *by, const struct graph *g, struct arena *arena,
                       struct hosted *ret)
{
    int64_t floats = 0;
    ret->at = arena_array(arena, (size_t)g->param_count, sizeof *ret->at);
    for (int i = 0; i < g->param_count; i++) floats += room_of(g->params[i]);
    const size_t bytes = (size_t)floats * sizeof(float);
    float *block = aligned_alloc(PAGE_BYTES, (bytes / PAGE_BYTES + 1) * PAGE_BYTES);
    if (!block) return fail(ERR_MEMORY, "no memory for a tower's gradients");
    ret->block = block;
    ret->is_pinned = pinned_open(by, block, bytes, true, "what towers exchange");
    for (int i = 0; i < g->param_count; block += room_of(g->params[i++])) ret->at[i] = block;
    return OK;
}

static void close_hosted(struct device *by, struct hosted *h)
{
    if (h->block) pinned_close(by, h->block, h->is_pinned);
    free(h->block);
    *h = (struct hosted){0};
}

/* Params of tables have room for as many rows in a tower as in a whole batch. */
static err open_params(struct tower *t, struct arena *arena)
{
    struct towers *all = t->all;
    for (int i = 0; i < t->graph->param_count; i++)
        t->graph->params[i]->held = all->whole->params[i]->held;
    if (t->index > 0 || is_apart(t) || all->pieces)
        TRY(open_floats(t->device, t->graph, arena, &t->gradients));
    if (!is_apart(t)) return OK;
    TRY(open_floats(t->device, t->graph, arena, &t->values));
    TRY(open_hosted(t->device, t->graph, arena, &t->hosted));
    if (!all->device->is_separate) return OK;
    if (!all->values.at) TRY(open_hosted(all->device, all->whole, arena, &all->values));
    return open_floats(all->device, all->whole, arena, &t->copies);
}

/* ---- threads ---- */

static err compute(struct tower *);

/* The text of an error belongs to its thread, so it is kept for the thread that waits. */
static void compute_kept(struct tower *t)
{
    t->result = compute(t);
    if (t->result) memcpy(t->text, error_text(), sizeof t->text);
}

static void *run_thread(void *tower)
{
    struct tower *t = tower;
    struct towers *all = t->all;
    uint64_t passes = 0;
    pthread_mutex_lock(&all->lock);
    for (;;) {
        while (all->passes == passes && !all->ends) pthread_cond_wait(&all->wake, &all->lock);
        if (all->ends) break;
        passes = all->passes;
        pthread_mutex_unlock(&all->lock);
        compute_kept(t);
        pthread_mutex_lock(&all->lock);
        if (--all->working == 0) pthread_cond_signal(&all->done);
    }
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

static err start_thread(struct tower *t)
{
    TRY(thread_start(&t->thread, run_thread, t));
    t->has_thread = true;
    return OK;
}

static void end_threads(struct towers *all)
{
    pthread_mutex_lock(&all->lock);
    all->ends = true;
    pthread_cond_broadcast(&all->wake);
    pthread_mutex_unlock(&all->lock);
    for (int i = 0; i < all->count; i++)
        if (all->at[i].has_thread) pthread_join(all->at[i].thread, NULL);
}

/* ---- life ---- */

static err open_tower(const struct towers_options *o, int64_t rows, struct arena *arena,
                      struct tower *t)
{
    TRY(o->make(o->context, t->index * rows, rows, arena, &t->graph));
    t->columns = arena_array(arena, (size_t)o->whole->column_count, sizeof *t->columns);
    TRY(open_params(t, arena));
    TRY(plan_open(t->graph, t->device, &t->plan));
    stepper_open(t->plan, &t->stepper);
    return t->index > 0 ? start_thread(t) : OK;
}

err towers_check(int count, int64_t batch)
{
    if (!count || batch % count == 0) return OK;
    return fail(ERR_INPUT, "train.towers: %d towers cannot share batches of %lld examples evenly",
                count, (long long)batch);
}

static void open_lock(struct towers *all)
{
    pthread_mutex_init(&all->lock, NULL);
    pthread_cond_init(&all->wake, NULL);
    pthread_cond_init(&all->done, NULL);
    all->is_locked = true;
}

/* The gradient of a part of a batch is weighted by its rows, so every head must count the same
 * rows. */
static err check_heads(const struct graph *graph, bool are_pieces)
{
    const char *first = graph->heads[0].loss.weights.name;
    for (int i = 1; i < graph->head_count; i++) {
        const char *name = graph->heads[i].loss.weights.name;
        if ((name && first) ? strcmp(name, first) == 0 : name == first) continue;
        return fail(ERR_INPUT,
                    "train.%s: heads[%d] (\"%s\") weighs rows by another column than heads[0] "
                    "(row_weight): that needs whole batches",
                    are_pieces ? "accumulate" : "towers", i, graph->heads[i].name);
    }
    return OK;
}

err towers_open(const struct towers_options *o, struct arena *arena, struct towers *ret)
{
    const int count = o->pieces ? 1 : o->towers.count, parts = o->pieces ? o->pieces : count;
    assert(parts >= 2 && count <= TOWERS_MAX);
    TRY(towers_check(parts, o->whole->batch));
    TRY(check_heads(o->whole, o->pieces > 0));
    *ret = (struct towers){
        .count = count,
        .pieces = o->pieces,
        .at = arena_array(arena, (size_t)count, sizeof *ret->at),
        .device = o->device,
        .whole = o->whole,
        .parts = arena_array(arena, (size_t)count, sizeof *ret->parts),
    };
    open_lock(ret);
    for (int i = 0; i < count; i++) {
        struct tower *t = &ret->at[i];
        struct device *device = o->pieces ? o->device : o->towers.at[i];
        *t = (struct tower){.all = ret, .index = i, .device = device};
        const err e = open_tower(o, o->whole->batch / parts, arena, t);
        if (e) return o->pieces ? e : fail_prefix(e, "tower %d", i);
    }
    return OK;
}

static void close_tower(struct tower *t)
{
    if (!t->graph) return;
    stepper_forget(&t->stepper);
    plan_close(t->plan);
    close_floats(t->device, t->graph, t->values);
    close_floats(t->device, t->graph, t->gradients);
    close_floats(t->all->device, t->graph, t->copies);
    close_hosted(t->device, &t->hosted);
    trace_close(&t->trace);
}

void towers_close(struct towers *all)
{
    if (!all->is_locked) return;
    end_threads(all);
    for (int i = 0; i < all->count; i++) close_tower(&all->at[i]);
    close_hosted(all->device, &all->values);
    pthread_cond_destroy(&all->done);
    pthread_cond_destroy(&all->wake);
    pthread_mutex_destroy(&all->lock);
    *all = (struct towers){0};
}

void towers_forget(struct towers *all)
{
    for (int i = 0; i < all->count; i++) stepper_forget(&all->at[i].stepper);
}

/* ---- a pass of one tower ---- */

static void point_params(struct tower *t)
{
    for (int i = 0; i < t->graph->param_count; i++) {
        struct param *own = t->graph->params[i];
        const struct param *whole = t->all->whole->params[i];
        own->value = t->values ? t->values[i] : whole->value;
        own->gradient = t->gradients ? t->gradients[i] : whole->gradient;
    }
}

static size_t bytes_of(const struct param *param)
{
    return (size_t)param_floats(param) * sizeof(float);
}

/* Copies values from the host's memory to the device of the tower, if it has memory of its own */
static void take_values(struct tower *t)
{
    const struct towers *all = t->all;
    for (int i = 0; t->values && i < t->graph->param_count; i++) {
        const float *from = all->values.at ? all->values.at[i] : all->whole->params[i]->value;
        t->device->kernels->upload(t->device, t->values[i], from, bytes_of(t->graph->params[i]));
    }
}

static void give_gradients(struct tower *t)
{
    for (int i = 0; t->hosted.at && i < t->graph->param_count; i++)
        pinned_download(t->device, t->hosted.is_pinned, t->hosted.at[i], t->gradients[i],
                        bytes_of(t->graph->params[i]));
}

static err compute(struct tower *t)
{
    struct device *d = t->device;
    t->loss = t->weight = 0;
    if (t->batch.rows == 0) return OK;
    take_values(t);
    plan_load(t->plan, &t->batch, t->all->draw);
    stepper_run(&t->stepper, &(struct pass){.rows = t->batch.rows});
    give_gradients(t);
    t->loss = plan_loss(t->plan, t->batch.rows, NULL, NULL);
    t->weight = loss_divisor(&t->graph->heads[0].loss);
    return d->kernels->synchronize(d);
}

/* ---- a pass of all ---- */

/* Gives the tower its rows of the batch, part number `index`; none where the batch is not full and
 * ends before them. */
static void cut(struct tower *t, const struct batch *batch, int index)
{
    const int64_t share = t->graph->batch, first = index * share;
    const int64_t left = batch->rows > first ? batch->rows - first : 0;
    for (int i = 0; i < batch->column_count; i++) {
        t->columns[i] = batch->columns[i];
        if (t->columns[i].at && left)
            t->columns[i].at = (const char *)t->columns[i].at +
                               (size_t)first * column_row_bytes(&batch->columns[i]);
    }
    for (int i = 0; i < t->graph->input_count; i++) {
        const struct graph_input *input = &t->graph->inputs[i];
        if (input->is_whole) t->columns[input->column].at = batch->columns[input->column].at;
    }
    assert(batch->column_count <= t->all->whole->column_count);
    t->batch = *batch;
    t->batch.rows = left < share ? left : share;
    t->batch.columns = t->columns;
}

/* Brings the values to the host's memory, so that other devices can copy them */
static err host_values(struct towers *all)
{
    struct device *d = all->device;
    if (!all->values.at) return d->kernels->synchronize(d);
    for (int i = 0; i < all->whole->param_count; i++)
        pinned_download(d, all->values.is_pinned, all->values.at[i], all->whole->params[i]->value,
                        bytes_of(all->whole->params[i]));
    return d->kernels->synchronize(d);
}

static void compute_all(struct towers *all)
{
    pthread_mutex_lock(&all->lock);
    all->working = all->count - 1;
    all->passes++;
    pthread_cond_broadcast(&all->wake);
    pthread_mutex_unlock(&all->lock);
    compute_kept(&all->at[0]);
    pthread_mutex_lock(&all->lock);
    while (all->working > 0) pthread_cond_wait(&all->done, &all->lock);
    pthread_mutex_unlock(&all->lock);
}

/* The gradient of param i where the session's device sees it */
static const float *part_of(struct tower *t, int i)
{
    struct device *d = t->all->device;
    const float *hosted = t->hosted.at ? t->hosted.at[i] : NULL;
    if (t->copies) d->kernels->upload(d, t->copies[i], hosted, bytes_of(t->graph->params[i]));
    if (t->copies) return t->copies[i];
    return hosted ? hosted : t->graph->params[i]->gradient;
}

static void sum_evenly(struct towers *all)
{
    struct device *d = all->device;
    const float factor = 1.0f / (float)all->count;
    for (int i = 0; i < all->whole->param_count; i++) {
        const struct param *param = all->whole->params[i];
        for (int k = 0; k < all->count; k++) all->parts[k] = part_of(&all->at[k], i);
        d->kernels->sum_ordered(d, param->gradient, all->parts, all->count, factor,
                                param_floats(param));
    }
}

static void sum_by_weight(struct towers *all, double weight)
{
    struct device *d = all->device;
    for (int i = 0; i < all->whole->param_count; i++) {
        const struct param *param = all->whole->params[i];
        bool is_first = true;
        for (int k = 0; k < all->count; k++) {
            const float share = weight > 0 ? (float)(all->at[k].weight / weight) : k == 0;
            if (share == 0) continue;
            const float *part = part_of(&all->at[k], i);
            if (is_first)
                d->kernels->sum_ordered(d, param->gradient, &part, 1, share, param_floats(param));
            else
                d->kernels->axpy(d, param->gradient, share, part, param_floats(param));
            is_first = false;
        }
    }
}

/* Where no row counts, the gradients are the regularizers' terms alone, the same in each tower. */
static void sum(struct towers *all)
{
    double weight = 0, loss = 0;
    bool is_even = true;
    for (int k = 0; k < all->count; k++) {
        const struct tower *t = &all->at[k];
        weight += t->weight;
        loss += t->loss * t->weight;
        is_even &= t->weight == all->at[0].weight && t->batch.rows > 0;
    }
    if (is_even)
        sum_evenly(all);
    else
        sum_by_weight(all, weight);
    all->loss = weight > 0 ? loss / weight : 0;
}

/* param (+)= share * the tower's gradient */
static void add_piece(struct towers *all, float share, bool is_first)
{
    struct device *d = all->device;
    for (int i = 0; i < all->whole->param_count; i++) {
        const struct param *param = all->whole->params[i];
        const float *part = all->at[0].graph->params[i]->gradient;
        if (is_first)
            d->kernels->sum_ordered(d, param->gradient, &part, 1, share, param_floats(param));
        else
            d->kernels->axpy(d, param->gradient, share, part, param_floats(param));
    }
}

/* As for towers, the mean over the rows that count; where none does, the first piece's gradient,
 * which has the regularizers' terms alone, is taken. */
static err run_pieces(struct towers *all, const struct batch *batch, uint64_t draw)
{
    struct device *d = all->device;
    struct tower *t = &all->at[0];
    double weight = 0, loss = 0;
    TRY(host_values(all));
    for (int k = 0; k < all->pieces && k * t->graph->batch < batch->rows; k++) {
        all->draw = draw * (uint64_t)all->pieces + (uint64_t)k;
        cut(t, batch, k);
        point_params(t);
        TRY(compute(t));
        if (weight == 0 || t->weight > 0)
            add_piece(all, t->weight > 0 ? (float)t->weight : 1, weight == 0);
        weight += t->weight;
        loss += t->loss * t->weight;
    }
    for (int i = 0; i < all->whole->param_count && weight > 0; i++)
        d->kernels->scale(d, all->whole->params[i]->gradient, (float)(1 / weight),
                          param_floats(all->whole->params[i]));
    all->loss = weight > 0 ? loss / weight : 0;
    return OK;
}

/* Records each tower's time under its number. */
static void collect(struct towers *all, struct trace *trace)
{
    for (int k = 0; k < all->count; k++) {
        struct tower *t = &all->at[k];
        t->plan->trace = NULL;
        for (int i = 0; i < t->trace.count; i++) {
            struct span span = t->trace.spans[i];
            span.count = (uint16_t)k;
            trace_add(trace, &span);
        }
        trace->dropped += t->trace.dropped;
        trace_clear(&t->trace);
    }
}

static err watch(struct towers *all, const struct trace *trace)
{
    for (int k = 0; k < all->count; k++) {
        struct tower *t = &all->at[k];
        if (!t->trace.spans) TRY(trace_open(&t->trace, 4 * t->graph->node_count + 4));
        t->trace.step = trace->step;
        t->plan->trace = &t->trace;
    }
    return OK;
}

err towers_run(struct towers *all, const struct batch *batch, uint64_t draw, struct trace *trace)
{
    if (trace) TRY(watch(all, trace));
    if (all->pieces) {
        const err e = run_pieces(all, batch, draw);
        if (trace) collect(all, trace);
        return e;
    }
    all->draw = draw;
    for (int k = 0; k < all->count; k++) {
        cut(&all->at[k], batch, k);
        point_params(&all->at[k]);
    }
    TRY(host_values(all));
    compute_all(all);
    if (trace) collect(all, trace);
    for (int k = 0; k < all->count; k++)
        if (all->at[k].result) return fail(all->at[k].result, "tower %d: %s", k, all->at[k].text);
    sum(all);
    return OK;
}
