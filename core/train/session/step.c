/* step.c - one push worth of work of a worker.
 *
 * Where the device can, the next batch travels to it while this one is worked on, and gradients
 * leave while backward continues (overlap.h); what comes of it is the same to the bit.
 */
#include <math.h>

#include "core/train/session/session_inside.h"

int session_list_gradients(const struct session *s, int optimizer)
{
    int count = 0;
    for (int i = 0; i < s->graph->param_count; i++) {
        const struct param *param = s->graph->params[i];
        const int by = s->optimizer_of[i];
        if (optimizer >= 0 ? by != optimizer : by == OPTIMIZER_NONE) continue;
        s->clip.gradients[count] = param->gradient;
        s->clip.sizes[count++] = param_floats(param);
    }
    return count;
}

/* The norm of all gradients is known only if a single optimizer has all variables. */
static void clip(struct session *s)
{
    const struct optimizers *optimizers = &s->options.spec->optimizers;
    const uint64_t begin_ns = trace_begin(s->trace);
    double norm = 0;
    for (int i = 0; i < optimizers->count; i++) {
        const struct clip clip = optimizer_clip(&optimizers->at[i]);
        if (clip.type == CLIP_NONE) continue;
        const int count = session_list_gradients(s, i);
        clip_gradients(&clip, s->options.device, s->clip.gradients, s->clip.sizes, count, &norm);
    }
    s->clip.norm = optimizers->count == 1 ? norm : 0;
    trace_end(s->trace, SPAN_CLIP, 0, begin_ns);
}

/* Clipping is done per batch, so the sum of several batches is kept apart. */
static void keep(struct session *s, int batch)
{
    struct device *d = s->options.device;
    for (int i = 0; i < s->graph->param_count; i++) {
        float *gradient = s->graph->params[i]->gradient;
        int64_t n = param_floats(s->graph->params[i]);
        if (batch > 0) d->kernels->axpy(d, gradient, 1.0f, s->kept[i], n);
        if (batch + 1 < s->options.batches_per_push) d->kernels->copy(d, s->kept[i], gradient, n);
    }
}

/* No two batches of the run share their random draws. */
static uint64_t draw_of(const struct session *s, const struct batch *batch)
{
    return batch->index * (uint64_t)s->options.workers + (uint64_t)s->options.worker;
}

/* Takes the next batch and looks its ids up. */
static err prepare(struct session *s, struct prepared *p)
{
    struct batch batch;
    TRY(s->data.train->calls->next(s->data.train, &batch));
    prepared_make(p, s->graph, &batch, draw_of(s, &batch));
    return OK;
}

/* Towers divide the batch among them when they run. */
static void load(struct session *s, const struct batch *batch)
{
    s->fed.last_rows = batch->rows;
    s->fed.batch = *batch;
    s->fed.draw = draw_of(s, batch);
    if (!s->towers.count) plan_load(s->replica.plan, batch, s->fed.draw);
}

/* Takes a batch with the table rows that it names. */
static err take_with_rows(struct session *s)
{
    struct prepared *p = &s->rows.batches[s->rows.current];
    if (!p->is_there) TRY(prepare(s, p));
    TRY(rows_fetch(&s->rows, s->graph, p));
    load(s, &p->batch);
    return OK;
}

/* Brings the next batch to where the plan wants it: from the stream, or from where it was sent
 * ahead. */
static err take_batch(struct session *s)
{
    struct batch batch;
    const uint64_t begin_ns = clock_ns();
    if (rows_are_used(&s->rows)) {
        TRY(take_with_rows(s));
    } else if (s->fed.sent_rows > 0) {
        if (s->replica.plan->inlet) plan_take(s->replica.plan, s->fed.sent_rows);
        s->fed.last_rows = s->fed.sent_rows;
        s->fed.sent_rows = 0;
    } else {
        TRY(s->data.train->calls->next(s->data.train, &batch));
        load(s, &batch);
    }
    trace_end(s->trace, SPAN_DATA, 0, begin_ns);
    s->taken.data_ns += clock_ns() - begin_ns;
    s->taken.examples += (uint64_t)s->fed.last_rows;
    s->fed.batches++;
    return OK;
}

/* Sends the next batch while the device works, but only one that is ready, since a push must not
 * wait for it. */
static err send_batch(struct session *s)
{
    struct batch batch;
    struct batch_source *data = s->data.train;
    if (!s->replica.plan->inlet || rows_are_used(&s->rows) || data->calls->ready(data) == 0)
        return OK;
    TRY(data->calls->next(data, &batch));
    plan_send(s->replica.plan, &batch, draw_of(s, &batch));
    s->fed.sent_rows = batch.rows;
    return OK;
}

/* ---- speculated ---- */

/* An error here is not reported: the step will meet it again. */
static bool take_next(struct session *s)
{
    struct batch batch;
    struct batch_source *data = s->data.train;
    if (s->fed.sent_rows > 0) return true;
    if (data->calls->ready(data) == 0) return false;
    session_keep_metrics(s);
    if (data->calls->next(data, &batch) || batch.rows == 0) return false;
    load(s, &batch);
    s->fed.sent_rows = batch.rows;
    return true;
}

bool session_speculate(struct session *s)
{
    const int before = s->replica.stepper.ahead;
    return s->overlap & OVERLAP_SPECULATE && take_next(s) &&
           replica_speculate(&s->replica) > before;
}

void session_forget_speculation(struct session *s)
{
    stepper_forget_ahead(&s->replica.stepper);
}

/* ---- a step ---- */

err session_fail_loss(const struct session *s, double loss)
{
    bool is_gradient = false;
    const char *name = replica_not_finite(&s->replica, &is_gradient),
               *noun = isnan(loss) ? "NaN" : "infinite";
    if (!name) return fail(ERR_NUMBER, "the loss is %s", noun);
    return fail(ERR_NUMBER, "the loss is %s; first that is not finite: the %s of %s", noun,
                is_gradient ? "gradient" : "value", name);
}

/* Runs the pass over the batch that was taken, number `batch` of this push. */
static err compute(struct session *s, int batch, bool leaves)
{
    if (s->towers.count) return towers_run(&s->towers, &s->fed.batch, s->fed.draw, s->trace);
    replica_run(&s->replica, s->fed.last_rows, batch > 0 && !s->kept, leaves);
    TRY(send_batch(s));
    if (leaves && s->overlap & OVERLAP_ONWARD) replica_hand_on(&s->replica, s->options.exchange);
    return OK;
}

/* Whether the gradients of the push stay, complete, on the device that updates by them */
static bool updates_here(const struct session *s)
{
    return s->options.device->is_separate && s->options.binds_device_memory &&
           s->layout->ps_count == 1 && s->options.number == NUMBER_FLOAT32;
}

/* The loss, which is waited for anyway; where gradients stay on the device, how many of them are
 * not finite is asked with it. */
static double batch_loss(struct session *s, bool is_complete, double *ret_bad)
{
    const struct summed all = {s->replica.gradients[0], s->layout->moved_floats[0], SUM_NOT_FINITE};
    const bool looks = is_complete && updates_here(s);
    if (s->towers.count) return s->towers.loss;
    if (!looks) return plan_loss(s->replica.plan, s->fed.last_rows, NULL, NULL);
    return plan_loss(s->replica.plan, s->fed.last_rows, &all, ret_bad);
}

err session_step(struct session *s, double *ret_loss)
{
    struct device *device = s->options.device;
    double loss = 0, bad = 1;
    bool leaves = false;
    device->finite = (struct finite_floats){0};
    s->metrics.has_last = false;
    session_plan_overlap(s);
    if (s->replica.exchange)
        s->replica.awaits_values = true;
    else if (s->towers.count)
        replica_gather_values(&s->replica);
    else
        replica_send_values(&s->replica);
    for (int i = 0; i < s->options.batches_per_push; i++) {
        TRY(take_batch(s));
        const bool is_last = i + 1 == s->options.batches_per_push;
        leaves = s->overlap & OVERLAP_BACKWARD && is_last;
        TRY(compute(s, i, leaves));
        if (s->clip.is_on) clip(s);
        if (s->kept) keep(s, i);
        if (is_last && !leaves) replica_scatter_gradients(&s->replica);
        loss += batch_loss(s, is_last, &bad);
    }
    s->has_left = leaves;
    loss = loss / s->options.batches_per_push;
    if (s->replica.wants_penalty)
        loss += s->replica.penalty;
    else if (s->regularized)
        loss += graph_regularization(s->graph, device);
    TRY(device->kernels->synchronize(device)); /* a 0 may mean that the device failed */
    if (bad == 0)
        device->finite =
            (struct finite_floats){s->replica.gradients[0], s->layout->moved_floats[0]};
    if (!isfinite(loss) && !s->tolerates_nan) return session_fail_loss(s, loss);
    *ret_loss = loss;
    return OK;
}

/* In a replay, rows that came with the values according to the record must do so again. */
static bool waits_for_next(const struct session *s)
{
    return s->options.names_rows && (!s->options.is_handed_out || s->fed.batches < s->fed.planned);
}

/* Names the rows of the next batch if that is ready: a push must not wait for it. */
static err put_rows(struct session *s)
{
    struct prepared *next = &s->rows.batches[!s->rows.current];
    if (waits_for_next(s) || s->data.train->calls->ready(s->data.train) != 0) TRY(prepare(s, next));
    rows_put(&s->rows);
    return OK;
}

err session_hand_over(struct session *s)
{
    struct device *device = s->options.device;
    if (!s->has_left) replica_round_gradients(&s->replica);
    if (rows_are_used(&s->rows)) TRY(put_rows(s));
    return device->kernels->synchronize(device);
}

void session_forget_residual(struct session *s)
{
    rounding_forget(&s->replica.rounding);
}

void session_clear_gradients(struct session *s)
{
    replica_clear_gradients(&s->replica);
}

int session_wants_batches(const struct session *s)
{
    const bool is_here =
        rows_are_used(&s->rows) ? s->rows.batches[s->rows.current].is_there : s->fed.sent_rows > 0;
    return s->options.batches_per_push - is_here;
}

int session_lacks_batches(const struct session *s)
{
    struct batch_source *data = s->data.train;
    const int most = (int)s->options.spec->data.prefetch, all = session_wants_batches(s),
              wanted = all < most ? all : most;
    if (wanted == 0 || !data->calls->await) return 0;
    const int ready = data->calls->ready(data);
    return ready < 0 || ready >= wanted ? 0 : wanted;
}

/* The stream is a function of the index, and random draws are numbered by the same index: a
 * restored run drops out what the undisturbed one would have. A batch that was sent ahead, or whose
 * rows were named, belongs to the old place. */
static err seek(struct session *s, uint64_t batch)
{
    const err e = s->data.train->calls->seek(s->data.train, batch);
    if (e) return fail_prefix(e, "data.train");
    s->fed.sent_rows = 0;
    session_forget_speculation(s);
    s->rows.batches[0].is_there = s->rows.batches[1].is_there = false;
    rows_revoke(&s->rows);
    s->fed.batches = batch;
    return OK;
}

err session_seek(struct session *s, uint64_t batch)
{
    return batch == s->fed.batches ? OK : seek(s, batch);
}

err session_plan_batches(struct session *s, uint64_t first, const uint64_t *ranges, int count)
{
    const struct source_calls *calls = s->data.train->calls;
    bool is_void = false;
    if (!calls->plan)
        return fail(ERR_INPUT, "data.train: batches that are handed out cannot be read here");
    const err e = calls->plan(s->data.train, first, ranges, count, &is_void);
    if (e) return fail_prefix(e, "data.train");
    s->fed.planned = first;
    for (int i = 0; i < count; i++) s->fed.planned += ranges[2 * i + 1] - ranges[2 * i];
    return is_void ? seek(s, s->fed.batches) : OK;
}
