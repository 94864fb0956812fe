/* runner_worker.c - see runner_worker.h: a worker's steps, and its role's actions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/cluster/runner/feed/remote_input.h"
#include "core/cluster/runner/feed/feeder.h"
#include "core/cluster/runner/feed/follow.h"
#include "core/cluster/runner/greeting.h"
#include "core/cluster/role/ps_role.h"
#include "core/cluster/role/verdict.h"
#include "core/cluster/runner/board.h"
#include "core/cluster/runner/placement.h"
#include "core/cluster/runner/trace/trace_worker.h"
#include "core/train/hooks/values.h"

enum {
    EVALUATIONS_MAX = 1000,
    /* how long a step waits for a batch that another task reads, before this one listens again */
    FED_LOOKS = 20,
    FED_LOOK_MS = 50,
};

bool runner_worker_leads(const struct runner_worker *w)
{
    return w->task.role && worker_role_leads(w->task.role);
}

uint64_t runner_worker_block_bytes(const struct runner_worker *w, int ps)
{
    return (uint64_t)w->session.layout->block_floats[ps] * sizeof(float);
}

/* ---- what the role asks for ---- */

static err check_bound(const struct runner_worker *w)
{
    for (int ps = 0; ps < w->session.layout->ps_count; ps++)
        if (runner_worker_block_bytes(w, ps) && !w->session.replica.values[ps])
            return fail(ERR_PROTOCOL, "ps/%d shared no windows", ps);
    return OK;
}

static err step(struct runner_worker *w, const struct action_compute *a)
{
    struct trace *const trace = w->session.trace;
    TRY(check_bound(w));
    if (!w->session.replica.exchange) TRY(runner_worker_await_all(w));
    const uint64_t before_ns = trace_begin(trace);
    TRY(runner_worker_tell(w, a->step, &(struct occasion){OCCASION_BEFORE}));
    runner_worker_trace_asked(w, a->step);
    trace_end(trace, SPAN_HOOKS, 0, before_ns);
    runner_worker_use_speculation(w);
    w->lending.is_computing = w->session.replica.exchange || w->session.overlap & OVERLAP_ONWARD;
    runner_worker_lend_loop(w);
    err e = session_step(&w->session, &w->done.loss);
    w->lending.is_computing = false;
    runner_worker_reclaim_loop(w);
    if (w->lack.is_now) return OK; /* whatever came of it, it is none */
    if (e) return fail_prefix(e, "step %llu", (unsigned long long)a->step + 1);
    const uint64_t computed_ns = trace_begin(trace);
    TRY(runner_worker_tell(w, a->step + 1, &(struct occasion){OCCASION_COMPUTED}));
    trace_end(trace, SPAN_HOOKS, 0, computed_ns);
    return session_hand_over(&w->session);
}

/* Of a chief that is gone the batches may never come, and what became of the job is heard between
 * steps. ERR_PEER: they are not there yet, and nothing has come of the step. */
static err await_batches(struct runner_worker *w)
{
    struct remote_input *const fed = w->options.remote_input;
    const int count = session_wants_batches(&w->session);
    if (!fed) return follow_await(w);
    if (count == 0 || remote_input_await(fed, count, 0)) return OK;
    TRY(runner_worker_await_all(w));
    const uint64_t begin_ns = trace_begin(w->session.trace);
    bool has_come = false;
    for (int i = 0; i < FED_LOOKS && !has_come; i++) {
        has_come = remote_input_await(fed, count, FED_LOOK_MS);
        if (!has_come) loop_move(w->options.task.loop);
    }
    trace_end(w->session.trace, SPAN_DATA, 0, begin_ns);
    return has_come ? OK : remote_input_note_late(fed);
}

/* Nothing comes of the step, which is started over for as long as that is worth it. ERR_PEER; then
 * ERR_TIMEOUT. */
static err begin_anew(struct runner_worker *w)
{
    const uint64_t now_ms = clock_ms(), limit_ms = w->options.task.limits.step_ms;
    struct lack *const lack = &w->lack;
    if (!lack->tries++) lack->since_ms = now_ms;
    if (lack->tries < LACKS_MAX || now_ms - lack->since_ms < limit_ms)
        return runner_worker_await_all(w);
    return fail(ERR_TIMEOUT,
                "values, batches or rows did not all come, %d times within %llu s (--step_timeout)",
                lack->tries, (unsigned long long)(now_ms - lack->since_ms) / 1000);
}

static err await_counted(struct runner_worker *w)
{
    const uint64_t begin_ns = clock_ns();
    const err e = await_batches(w);
    w->task.counting.counters.at[COUNTER_TIME_DATA] += (double)(clock_ns() - begin_ns) * 1e-9;
    return e;
}

static void compute(struct runner_worker *w, const struct action_compute *a)
{
    uint64_t now_ns = clock_ns();
    if (w->done.pushed_ns) w->done.push_seconds = (double)(now_ns - w->done.pushed_ns) * 1e-9;
    runner_worker_count_waited(w, now_ns);
    const double apart = runner_worker_apart(w);
    w->lack.is_now = false;
    runner_worker_turn_to(w);
    for (int ps = 0; ps < w->task.peer_count; ps++) runner_worker_plan_overlap(w, ps);
    err e = session_seek(&w->session, a->batch * w->gradients_per_push);
    if (w->trace && !e) runner_worker_trace_step(w, a->step);
    if (!e) e = await_counted(w);
    if (e == ERR_PEER)
        runner_worker_told(w, runner_worker_tell(w, a->step, &(struct occasion){OCCASION_WAITED}));
    const bool has_waited = e == ERR_PEER; /* for files that come, as long as silent_secs allows */
    if (!e) e = step(w, a);
    if (w->lack.is_now || (e == ERR_PEER && !has_waited)) {
        const err why = begin_anew(w);
        if (why) e = why;
    } else {
        w->lack.tries = 0;
    }
    w->done.is_new = !e;
    w->done.step = a->step + 1;
    runner_worker_count_step(w, now_ns, apart, w->done.is_new);
    task_done(&w->task, ACTION_COMPUTE, e);
}

/* The gradients have left; what people want to see is done while others work. */
static void flushed(struct task *t)
{
    struct runner_worker *w = (struct runner_worker *)t;
    if (!w->done.is_new) return;
    w->done.is_new = false;
    if (w->trace) runner_worker_trace_pump(w);
    const uint64_t begin_ns = trace_begin(w->session.trace);
    runner_worker_told(w,
                       runner_worker_tell(w, w->done.step, &(struct occasion){OCCASION_STEPPED}));
    trace_end(w->session.trace, SPAN_HOOKS, 0, begin_ns);
}

static void evaluate(struct runner_worker *w, uint64_t step)
{
    struct evaluation evaluation = {0};
    runner_worker_turn_to(w);
    err e = check_bound(w);
    w->lack.is_now = false;
    if (!e) e = runner_worker_await_all(w);
    if (!e) e = session_evaluate(&w->session, &evaluation);
    if (e == ERR_PEER && (w->lack.is_now || task_signal_waits()) &&
        w->lack.tries++ < EVALUATIONS_MAX) {
        w->evaluation.again = step + 1;
        w->evaluation.by_ms = clock_ms() + w->options.task.limits.restart_ms;
        return;
    }
    if (!e)
        e = runner_worker_tell(
            w, step, &(struct occasion){OCCASION_EVALUATED, .evaluated = {&evaluation, true}});
    if (!e && evaluation_check(&evaluation)) e = fail_prefix(ERR_NUMBER, "the last evaluation");
    task_done(&w->task, ACTION_EVALUATE, e);
}

/* Another life of this worker was in the generation that it joins. A chief that has not chosen what
 * that begins from knows so; another worker may also be the first to come late to a run that went
 * on from a checkpoint with pushes of its own. */
static void note_return(const struct runner_worker *w, uint64_t step)
{
    const bool is_chief = runner_worker_leads(w);
    if (is_chief ? w->has_chosen : !w->past.has_pushed) return;
    log_line(LOG_INFO, "takes part again at step %llu%s", (unsigned long long)step,
             is_chief ? "; nothing is rolled back" : "");
}

/* A run whose end was reached before. */
static void note_end(const struct runner_worker *w, uint64_t step)
{
    const unsigned long long last = runner_worker_last_step(w);
    if (!w->hooks.view.is_chief || !last || step < last) return;
    log_line(LOG_INFO, "step %llu of %llu is there already: nothing is left to train",
             (unsigned long long)step, last);
}

static err adopted(struct runner_worker *w, const struct action_adopted *a)
{
    if (!w->has_adopted) note_return(w, a->step);
    w->has_adopted = true;
    w->saving.is_looked_for = false; /* all ps have done so: they serve */
    runner_worker_origin_close(w);
    runner_worker_forget_speculation(w);
    session_forget_residual(&w->session); /* another life of the values has not lost it */
    if (w->trace) runner_worker_trace_abandon(w);
    w->task.counting.counters.at[COUNTER_GENERATION]++;
    runner_worker_turn_to(w);
    TRY(check_bound(w));
    if (a->is_first) note_end(w, a->step);
    return runner_worker_tell(w, a->step,
                              &(struct occasion){OCCASION_ADOPTED, .adopted = {a->is_first}});
}

static void covered(struct runner_worker *w, const struct action_covered *a)
{
    if (w->end.keeps_counts) return; /* the checkpoint's are told */
    runner_worker_told(
        w, runner_worker_tell_covered(w, w->hooks.view.global_step, &a->covered, a->is_over));
}

static void act(struct task *t, const struct action *a)
{
    struct runner_worker *w = (struct runner_worker *)t;
    switch (a->type) {
    case ACTION_COMPUTE:
        compute(w, &a->compute);
        break;
    case ACTION_PLAN:
        runner_worker_told(
            w, session_plan_batches(&w->session, a->plan.first, a->plan.ranges, a->plan.count));
        break;
    case ACTION_ADOPTED:
        runner_worker_told(w, adopted(w, &a->adopted));
        break;
    case ACTION_STAND_IN:
        runner_worker_stand_in(w, a->stand_in.gone);
        break;
    case ACTION_REMAKE:
        runner_worker_remake(w, a->remake.ps);
        break;
    case ACTION_LEAD:
        runner_worker_lead(w);
        break;
    case ACTION_CLAIM:
        runner_worker_claim(w, &a->claim);
        break;
    case ACTION_YIELD:
        runner_worker_yield(w);
        break;
    case ACTION_CHOOSE:
        runner_worker_choose(w, &a->choose);
        break;
    case ACTION_DESCRIBE:
        runner_worker_told(w, runner_worker_describe(w, a->describe.ps));
        break;
    case ACTION_FILL:
        runner_worker_told(w, runner_worker_fill(w, a->fill.ps, a->fill.array));
        break;
    case ACTION_BEGIN:
        runner_worker_begin_files(w, &a->begin);
        break;
    case ACTION_PUBLISH:
        runner_worker_publish_files(w, &a->publish);
        break;
    case ACTION_ABANDON:
        runner_worker_abandon_files(w, &a->abandon);
        break;
    case ACTION_CHANGED:
        runner_worker_changed(w, &a->changed);
        break;
    case ACTION_COVERED:
        covered(w, &a->covered);
        break;
    case ACTION_TORN:
        runner_worker_torn(w, a->torn.of_workers);
        break;
    case ACTION_EVALUATE:
        evaluate(w, a->evaluate.step);
        break;
    default:
        break;
    }
}

static void save(struct task *t)
{
    ((struct runner_worker *)t)->folder.is_asked_to_save = true;
}

static void report(const struct task *t)
{
    const struct runner_worker *w = (const struct runner_worker *)t;
    struct batch_source *data = w->session.data.train;
    const int ready = data->calls->ready(data);
    char text[OVERLAP_TEXT_MAX];
    log_line(LOG_INFO, "overlap of a step: %s", overlap_text(w->session.overlap, text));
    if (ready >= 0)
        log_line(LOG_INFO, "%d batches are ready (prefetch %lld)", ready,
                 (long long)w->options.spec->data.prefetch);
}

bool runner_worker_save(struct runner_worker *w)
{
    if (w->folder.jobs.opening.is_running) return false;
    if (w->options.task.replay) return true; /* the last one alone */
    return !w->folder.checkpoints || worker_role_save(w->task.role, &w->task.outbox);
}

/* Somebody wants one of now: one that is being made is of before, and a ps that is away comes back.
 */
static void save_as_asked(struct runner_worker *w)
{
    if (!w->folder.is_asked_to_save || !worker_role_can_save(w->task.role)) return;
    w->folder.is_asked_to_save = false;
    runner_worker_save(w);
}

static void sending(struct task *t, int ps, const struct message *m)
{
    struct runner_worker *w = (struct runner_worker *)t;
    if (m->type == MESSAGE_PUSH || m->type == MESSAGE_PART) runner_worker_copy_push(w, ps, m);
    if (m->type == MESSAGE_PUSH) runner_worker_rows_push(w, ps, m);
    if (w->trace) runner_worker_trace_sending(w, ps, m);
}

/* What came in front of the rows that were asked for has been heard, and a link that was lost is
 * back. */
static void evaluate_again(struct runner_worker *w)
{
    const uint64_t step = w->evaluation.again - 1;
    if (!worker_role_is_evaluating(w->task.role)) {
        w->evaluation.again = 0;
        return;
    }
    if (check_bound(w) && clock_ms() < w->evaluation.by_ms) return;
    w->evaluation.again = 0;
    evaluate(w, step);
    task_flush(&w->task);
}

static void pump(struct task *t)
{
    struct runner_worker *w = (struct runner_worker *)t;
    if (w->evaluation.again && !w->task.has_ended) evaluate_again(w);
    if (w->trace) runner_worker_trace_pump(w);
    runner_worker_speculate(w);
    runner_worker_count_left(w);
}

static void tick(struct task *t, uint64_t now_ms)
{
    struct runner_worker *w = (struct runner_worker *)t;
    runner_worker_tick_links(t, now_ms);
    runner_worker_look_for_end(w, now_ms);
    save_as_asked(w);
    runner_worker_publish_in_time(w, now_ms);
    if (w->trace) runner_worker_trace_tick(w, now_ms);
}

static bool awaits(const struct task *t, int ps)
{
    return worker_role_awaits(t->role, ps);
}

static const struct task_ops ops = {
    .act = act,
    .flushed = flushed,
    .pump = pump,
    .sending = sending,
    .save = save,
    .report = report,
    .count = runner_worker_count,
    .tell = runner_worker_tell_counted,
    .tick = tick,
    .tick_end = runner_worker_tick_end,
    .hang_up = runner_worker_hang_up,
    .awaits = awaits,
};

/* ---- life ---- */

static void report_use(const char *role, const struct batch_source *data)
{
    if (data && data->use && *data->use)
        log_line(LOG_INFO, "%s: %s: %s", role, data->name, data->use);
}

/* Which columns of a table are features is said once. */
static void report_data(const struct runner_worker *w)
{
    if (w->options.task.cluster->task != CHIEF) return;
    report_use("data.train", w->session.data.train);
    report_use("data.eval", w->session.data.evaluation);
}

/* num_steps count from where the first life began. */
static void take_last_step(struct runner_worker *w)
{
    const uint64_t *found = w->options.last_step;
    if (!found || !*found || !w->options.spec->train.num_steps) return;
    w->end.is_known = true;
    w->end.step = w->end.unset = *found;
}

static void leave_last_step(const struct runner_worker *w)
{
    if (w->options.last_step && w->end.is_known) *w->options.last_step = w->end.unset;
}

static err open_session(struct runner_worker *w)
{
    const struct cluster_spec *cluster = w->options.task.cluster;
    int workers = cluster->hosts[JOB_WORKER].count;
    w->gradients_per_push = setup_gradients_per_push(w->options.spec, workers, cluster->task);
    const bool is_alone = task_is_inside(&w->options.task);
    const struct train_spec *train = &w->options.spec->train;
    const struct session_options options = {
        .spec = w->options.spec,
        .device = w->options.device,
        .towers = w->options.towers,
        .worker = cluster->task,
        .workers = workers,
        .ps_count = cluster->hosts[JOB_PS].count,
        .balances = cluster_gains_by_balance(cluster),
        .batches_per_push = (int)w->gradients_per_push,
        .batches_per_round = (int)spec_replicas(w->options.spec, workers),
        .names_rows = w->options.task.replay,
        .is_handed_out = spec_hands_out(w->options.spec),
        .exchange = is_alone ? NULL : runner_worker_open_exchange(w),
        .parts = w->options.task.parts,
        .rows_from = runner_worker_open_rows(w),
        .averages_from = runner_worker_open_averages(w),
        .interlude = {follow_evaluation, w},
        .number = is_alone ? NUMBER_FLOAT32 : (enum number)train->wire,
        .value_number = is_alone ? NUMBER_FLOAT32 : (enum number)train->wire_values,
        .binds_device_memory = is_alone,
        .remote_input =
            w->options.remote_input ? remote_input_source(w->options.remote_input) : NULL,
    };
    TRY(session_open(&options, &w->session));
    if (w->options.feeder) TRY(feeder_start(w->options.feeder, &w->session));
    w->end.step = (uint64_t)spec_last_step(w->options.spec, w->session.data.train->rows, workers);
    take_last_step(w);
    return OK;
}

static bool lends_windows(const struct runner_worker *w)
{
    const struct cluster_spec *cluster = w->options.task.cluster;
    bool lends = false;
    for (int ps = 0; ps < cluster->hosts[JOB_PS].count; ps++)
        lends |= ps_config_windows(runner_worker_block_bytes(w, ps),
                                   cluster->hosts[JOB_WORKER].count) > 0;
    return lends;
}

static err open_role(struct runner_worker *w)
{
    const struct task_options *o = &w->options.task;
    int ps_count = o->cluster->hosts[JOB_PS].count;
    w->task.incarnation = greeting_draw_incarnation();
    (void)greeting_boot_id(); /* while there is a descriptor to read it by */
    const struct worker_options options = {
        .task = o->cluster->task,
        .ps_count = ps_count,
        .homes = w->session.layout->ps_count,
        .workers = o->cluster->hosts[JOB_WORKER].count,
        .membership = cluster_membership(o->cluster),
        .incarnation = w->task.incarnation,
        .block_floats = w->session.layout->block_floats,
        .moved_floats = w->session.layout->moved_floats,
        .gradients_per_push = w->gradients_per_push,
        .is_sync = w->options.spec->train.mode == MODE_SYNC,
        .worker_timeout_ms = w->options.spec->train.absence.worker_timeout_ms,
        .drops_gradients =
            setup_drops_gradients(w->options.spec, o->cluster->hosts[JOB_WORKER].count),
        .lends_windows = lends_windows(w),
        .saves = w->options.spec->train.checkpoint.dir != NULL,
        .keeps_chief = spec_is_in_graph(w->options.spec),
        .limits = o->limits,
    };
    struct role *role = worker_role_new(&options);
    w->task.wire = w->session.options.number;
    w->task.wire_values = w->session.options.value_number;
    w->task.data = (struct data_said){(uint64_t)w->session.data.train->rows,
                                      batch_source_digest(w->session.data.train),
                                      strtoull(w->options.spec->as_written, NULL, 16)};
    return task_open(&w->task, o, &ops, role);
}

static err open_parts(struct runner_worker *w)
{
    int ps_count = w->options.task.cluster->hosts[JOB_PS].count;
    w->attempts.first = calloc((size_t)ps_count, sizeof *w->attempts.first);
    w->attempts.second = calloc((size_t)ps_count, sizeof *w->attempts.second);
    w->kept = calloc((size_t)ps_count, sizeof *w->kept);
    w->incoming.windows = calloc((size_t)ps_count, sizeof *w->incoming.windows);
    w->incoming.values = calloc((size_t)ps_count, sizeof *w->incoming.values);
    w->incoming.rows = calloc((size_t)ps_count, sizeof *w->incoming.rows);
    w->saving.came = calloc((size_t)ps_count, sizeof *w->saving.came);
    w->origin.filling = -1;
    if (!w->attempts.first || !w->attempts.second || !w->kept || !w->incoming.windows ||
        !w->incoming.values || !w->incoming.rows || !w->saving.came)
        return fail(ERR_MEMORY, "no memory for %d ps", ps_count);
    for (int ps = 0; ps < ps_count; ps++)
        w->attempts.first[ps] = w->attempts.second[ps] = (struct attempt){.worker = w, .ps = ps};
    TRY(open_session(w));
    TRY(runner_worker_prove_checkpoints(w));
    w->folder.token = greeting_draw_incarnation();
    TRY(open_role(w));
    board_set_placement(w->task.counting.board, placement_text(w->session.layout));
    w->noted_ms = w->task.started_ms;
    for (int ps = 0; ps < ps_count; ps++) runner_worker_connect(w, ps);
    report_data(w);
    runner_worker_open_view(w);
    return runner_worker_open_hooks(w);
}

err runner_worker_open(const struct runner_worker_options *options, struct runner_worker **ret)
{
    struct runner_worker *w = calloc(1, sizeof *w);
    if (!w) return fail(ERR_MEMORY, "no memory for a worker");
    w->options = *options;
    err e = open_parts(w);
    if (e) {
        runner_worker_close(w);
        return e;
    }
    *ret = w;
    return OK;
}

void runner_worker_close(struct runner_worker *w)
{
    if (!w) return;
    leave_last_step(w);
    hooks_close(&w->hooks.view);
    if (w->task.peers) runner_worker_hang_up(&w->task);
    runner_worker_stop_looking(w);
    published_to_end(w);
    runner_worker_close_checkpoints(w);
    runner_worker_trace_close(w);
    worker_role_free(w->task.role);
    task_close(&w->task);
    feeder_stop(w->options.feeder);
    if (w->session.options.device) session_close(&w->session);
    for (int ps = 0; w->kept && ps < w->options.task.cluster->hosts[JOB_PS].count; ps++)
        free(w->kept[ps]);
    for (int ps = 0; w->incoming.rows && ps < w->options.task.cluster->hosts[JOB_PS].count; ps++)
        free(w->incoming.rows[ps].kept);
    free(w->saving.came);
    free(w->incoming.rows);
    free(w->kept);
    free(w->incoming.windows);
    free(w->incoming.values);
    free(w->attempts.first);
    free(w->attempts.second);
    arena_free(&w->hooks.arena);
    free(w);
}

struct task *runner_worker_task(struct runner_worker *w)
{
    return &w->task;
}
