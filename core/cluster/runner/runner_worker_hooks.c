/* runner_worker_hooks.c - a worker's hooks: what they can see, and what they can request. */
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/files/file_system.h"
#include "core/cluster/role/verdict.h"
#include "core/cluster/runner/counting.h"
#include "core/cluster/runner/greeting.h"
#include "core/cluster/runner/trace/trace_worker.h"

/* ---- what they see ---- */

uint64_t runner_worker_last_step(const struct runner_worker *w)
{
    const bool is_known = w->end.is_known || !w->options.spec->train.num_steps;
    return is_known && w->end.step != (uint64_t)STEPS_MAX ? w->end.step : 0;
}

static void look(struct runner_worker *w, uint64_t step)
{
    struct run_view *v = &w->hooks.view;
    v->wall_s = clock_unix_s();
    v->now_ns = clock_ns();
    v->global_step = step;
    v->last_step = runner_worker_last_step(w);
}

static void look_at_step(struct runner_worker *w)
{
    struct run_view *v = &w->hooks.view;
    const int64_t before = (int64_t)v->global_step - 1;
    v->loss = w->done.loss;
    v->rate_factor = runner_worker_rate_factor(w);
    v->learning_rate =
        v->rate_factor * schedule_rate(optimizer_learning_rate(&v->spec->optimizers.at[0]), before);
    v->gradient_norm = v->session->clip.norm;
    v->staleness = worker_role_staleness(w->task.role);
    v->push_seconds = w->done.push_seconds;
}

err runner_worker_tell(struct runner_worker *w, uint64_t step, const struct occasion *o)
{
    if (!w->hooks.view.hooks) return OK; /* hooks could not be opened */
    look(w, step);
    if (o->kind == OCCASION_ADOPTED && o->adopted.is_first) w->hooks.view.first_step = step;
    if (o->kind == OCCASION_COMPUTED) w->hooks.view.own_steps++;
    if (o->kind == OCCASION_COMPUTED || o->kind == OCCASION_STEPPED) look_at_step(w);
    if (o->kind == OCCASION_EVALUATED || o->kind == OCCASION_END) counting_complete(&w->task);
    const uint64_t begin_ns = clock_ns();
    const err e = hooks_tell(&w->hooks.view, o);
    w->task.counting.counters.at[COUNTER_TIME_HOOKS] += (double)(clock_ns() - begin_ns) * 1e-9;
    return e;
}

/* Endless data: all rows that came, once no more will come; before that the rows of pushes. */
static void note_rows_that_came(struct batch_source *data, struct rows_seen *seen)
{
    int64_t came, used;
    seen->is_endless = true;
    if (seen->is_over && data->calls->has_ended(data, &came, &used)) {
        seen->rows = (uint64_t)used;
        seen->left = (uint64_t)(came - used);
    }
    if (seen->applied < seen->rows)
        seen->lost += seen->rows - seen->applied;
    else
        seen->twice += seen->applied - seen->rows;
}

static uint64_t less(uint64_t count, uint64_t by)
{
    return count > by ? count - by : 0;
}

static bool is_so_far(const struct runner_worker *w, bool is_over)
{
    return !is_over || !w->session.data.train->rows;
}

static void note_torn(struct rows_seen *seen, const struct torn_rows *torn)
{
    seen->lost += torn->lost;
    seen->twice += torn->twice;
    seen->total = less(seen->total, torn->lost) + torn->twice;
}

/* Torn pushes that a snapshot shows change the counts reported before. */
void runner_worker_note_torn(struct runner_worker *w, const struct torn_rows *torn)
{
    struct told_rows *told = &w->hooks.rows;
    const bool is_news = torn->lost != told->torn.lost || torn->twice != told->torn.twice;
    told->torn = *torn;
    if (!is_news) return;
    if (torn->lost || torn->twice)
        log_line(LOG_WARNING,
                 "%llu rows are in the values of some ps only, and count as lost or twice: their "
                 "worker died between two ps, and has not come back",
                 (unsigned long long)(torn->lost + torn->twice));
    if (told->covered.rows && is_so_far(w, told->is_over))
        runner_worker_told(w, runner_worker_tell_covered(w, w->hooks.view.global_step,
                                                         &told->covered, told->is_over));
}

err runner_worker_tell_covered(struct runner_worker *w, uint64_t step, const struct covered *c,
                               bool is_over)
{
    w->hooks.rows.covered = *c;
    w->hooks.rows.is_over = is_over;
    struct rows_seen seen = {
        .epoch = c->epoch,
        .epochs = c->epochs,
        .rows = c->rows,
        .applied = c->applied,
        .twice = c->twice,
        .lost = c->lost,
        .late = c->late,
        .total = c->total,
        .is_over = is_over,
    };
    if (!w->session.data.train->rows) note_rows_that_came(w->session.data.train, &seen);
    if (is_so_far(w, is_over)) note_torn(&seen, &w->hooks.rows.torn);
    return runner_worker_tell(w, step, &(struct occasion){OCCASION_COVERED, .covered = &seen});
}

void runner_worker_told(struct runner_worker *w, err e)
{
    struct task *t = &w->task;
    if (e) t->role->ops->stop(t->role, exit_code_of(e), error_text(), &t->outbox);
}

err runner_worker_end(struct runner_worker *w)
{
    runner_worker_trace_finish(w);
    runner_worker_report_speculation(w);
    const struct occasion end = {OCCASION_END, .end = {w->task.code, w->task.text}};
    return runner_worker_tell(w, w->hooks.view.global_step, &end);
}

/* ---- what they ask ---- */

static bool ask_save(void *asker)
{
    return runner_worker_save(asker);
}

static void ask_stop(void *asker, err kind, const char *why)
{
    struct runner_worker *w = asker;
    worker_role_finish(w->task.role, kind ? exit_code_of(kind) : EXIT_DONE, why, &w->task.outbox);
}

static err ask_evaluate(void *asker, struct evaluation *ret)
{
    struct runner_worker *w = asker;
    const int before = w->task.outbox.count;
    TRY(runner_worker_await_all(w));
    worker_role_hold_lease(w->task.role, &w->task.outbox);
    task_flush_since(&w->task, before);
    return session_evaluate(&w->session, ret);
}

static bool ask_trace(void *asker, uint64_t first_step, int steps)
{
    return runner_worker_trace_begin(asker, first_step, steps);
}

/* All ps have saved, and wait for the verdict. The restored checkpoint is also published to
 * servers. */
static err ask_restore(void *asker, const char *prefix)
{
    struct runner_worker *w = asker;
    char published[CHECKPOINT_PATH_MAX];
    if (!w->folder.checkpoints) return fail(ERR_IO, "the folder of the checkpoints is not open");
    runner_worker_end_files(w);
    checkpoints_hold(w->folder.checkpoints, published_to_reads(w));
    TRY(checkpoints_take_values(w->folder.checkpoints, prefix, greeting_draw_incarnation(),
                                clock_unix_s(), published));
    w->saving.own_tag = 0; /* no ps has made a snapshot of these values */
    return runner_worker_publish_made(w, published);
}

static const struct run_asks asks = {.save = ask_save,
                                     .stop = ask_stop,
                                     .evaluate = ask_evaluate,
                                     .restore = ask_restore,
                                     .trace = ask_trace};

/* ---- life ---- */

/* The folder may not exist yet. */
static const char *absolute(struct runner_worker *w, const char *path)
{
    char *whole = path ? path_from_here(path) : NULL;
    const char *kept = whole ? arena_string(&w->hooks.arena, whole) : path;
    free(whole);
    return kept;
}

void runner_worker_open_view(struct runner_worker *w)
{
    const struct cluster_spec *cluster = w->options.task.cluster;
    const struct train_spec *train = &w->options.spec->train;
    w->hooks.view = (struct run_view){
        .spec = w->options.spec,
        .session = &w->session,
        .worker = cluster->task,
        .workers = cluster->hosts[JOB_WORKER].count,
        .ps_count = cluster->hosts[JOB_PS].count,
        .checkpoint_dir = absolute(w, train->checkpoint.dir),
        .summary_dir = absolute(w, train->summary.dir ? train->summary.dir : train->checkpoint.dir),
        .asks = &asks,
        .asker = w,
    };
}

err runner_worker_open_hooks(struct runner_worker *w)
{
    hooks_close(&w->hooks.view);
    w->hooks.view.is_chief = runner_worker_leads(w);
    look(w, w->hooks.view.global_step);
    TRY(hooks_open(&w->hooks.view, &w->options.own_hook));
    worker_role_begin_at(w->task.role, hooks_wait_step(w->hooks.view.hooks));
    return OK;
}
