/* training.c - see training.h. */
#include "cmd/run/training.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/cluster/role/verdict.h"

/* ---- what hooks see ---- */

static void look(struct training *t, uint64_t step)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    t->view.wall_s = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    t->view.now_ns = clock_ns();
    t->view.global_step = step;
}

static void look_at_step(struct training *t, uint64_t step, double loss)
{
    struct run_view *v = &t->view;
    look(t, step);
    v->loss = loss;
    v->learning_rate =
        schedule_rate(optimizer_learning_rate(&t->run->spec.optimizer), (int64_t)step - 1);
    v->gradient_norm = v->session->gradient_norm;
    v->staleness = worker_task_staleness(t->worker);
    v->push_seconds = worker_task_push_seconds(t->worker);
}

/* ---- what hooks ask ---- */

static void ask_save(void *asker)
{
    worker_task_save(((struct training *)asker)->worker);
}

static void ask_stop(void *asker, err kind, const char *why)
{
    worker_task_finish(((struct training *)asker)->worker, kind ? exit_code_of(kind) : EXIT_DONE,
                       why);
}

static err ask_evaluate(void *asker, struct evaluation *ret)
{
    return session_evaluate(((struct training *)asker)->view.session, ret);
}

static bool ask_trace(void *asker, uint64_t first_step, int steps)
{
    return worker_task_trace(((struct training *)asker)->worker, first_step, steps);
}

static const struct run_asks asks = {
    .save = ask_save, .stop = ask_stop, .evaluate = ask_evaluate, .trace = ask_trace};

/* ---- what the worker tells ---- */

static void on_placed(void *context, const struct session *s)
{
    progress_placed(&((struct training *)context)->progress, s);
}

static err on_adopted(void *context, uint64_t step, bool is_first)
{
    struct training *t = context;
    t->progress.last_step = t->view.last_step = worker_task_last_step(t->worker);
    if (is_first) t->view.first_step = step;
    const bool is_over = t->view.last_step && step >= t->view.last_step;
    if (is_first && t->view.is_chief && is_over)
        log_line(LOG_INFO,
                 "step %" PRIu64 " of %" PRIu64 " is there already: nothing is left to train", step,
                 t->view.last_step);
    look(t, step);
    return hooks_adopted(t->hooks, &t->view);
}

static err on_before(void *context, uint64_t step)
{
    struct training *t = context;
    look(t, step);
    return hooks_before(t->hooks, &t->view);
}

static err on_computed(void *context, uint64_t step, double loss)
{
    struct training *t = context;
    t->view.own_steps++;
    look_at_step(t, step, loss);
    return hooks_computed(t->hooks, &t->view);
}

static err on_stepped(void *context, uint64_t step, double loss)
{
    struct training *t = context;
    progress_stepped(&t->progress, t->view.session, step, loss);
    look_at_step(t, step, loss);
    return hooks_stepped(t->hooks, &t->view);
}

static err on_saved(void *context, uint64_t step, const char *prefix, const char *why)
{
    struct training *t = context;
    look(t, step);
    return hooks_saved(t->hooks, &t->view, prefix, why);
}

static err on_evaluated(void *context, uint64_t step, const struct evaluation *e)
{
    struct training *t = context;
    progress_evaluated(&t->progress, step, e);
    look(t, step);
    return e->rows ? hooks_evaluated(t->hooks, &t->view, e) : OK;
}

static err on_traced(void *context, const struct timeline *timeline)
{
    struct training *t = context;
    look(t, t->view.global_step);
    return hooks_traced(t->hooks, &t->view, timeline);
}

static const struct worker_events events = {
    .placed = on_placed,
    .adopted = on_adopted,
    .before = on_before,
    .computed = on_computed,
    .stepped = on_stepped,
    .saved = on_saved,
    .evaluated = on_evaluated,
    .traced = on_traced,
};

/* ---- life ---- */

/* The folder may not be there yet. */
static const char *absolute(struct training *t, const char *path)
{
    char here[PATH_MAX];
    if (!path || path[0] == '/' || !getcwd(here, sizeof here)) return path;
    return arena_format(&t->arena, "%s/%s", here, path);
}

static void describe(struct training *t)
{
    const struct run *run = t->run;
    const struct train_spec *train = &run->spec.train;
    t->view = (struct run_view){
        .spec = &run->spec,
        .session = worker_task_session(t->worker),
        .is_chief = run->cluster.task == 0,
        .worker = run->cluster.task,
        .workers = run->cluster.hosts[JOB_WORKER].count,
        .ps_count = run->cluster.hosts[JOB_PS].count,
        .last_step = worker_task_last_step(t->worker),
        .checkpoint_dir = absolute(t, train->checkpoint_dir),
        .summary_dir = absolute(t, train->summary_dir ? train->summary_dir : train->checkpoint_dir),
        .asks = &asks,
        .asker = t,
    };
    look(t, 0);
}

static void report_use(const char *role, const struct dataset *data)
{
    if (data->rows && data->use && *data->use)
        log_line(LOG_INFO, "%s: %s: %s", role, data->name, data->use);
}

/* Which columns of a table are features is said once. */
static void report_data(const struct training *t)
{
    const struct session *session = t->view.session;
    if (!t->view.is_chief) return;
    report_use("data.train", &session->train_data);
    report_use("data.eval", &session->eval_data);
}

static err open_worker(struct training *t, const struct task_options *options,
                       struct device *device)
{
    const struct worker_task_options worker_options = {
        .task = *options,
        .spec = &t->run->spec,
        .device = device,
        .events = events,
        .context = t,
    };
    TRY(worker_task_open(&worker_options, &t->worker));
    progress_attach(&t->progress, t->worker);
    describe(t);
    report_data(t);
    TRY(hooks_open(&t->view, &t->hooks));
    worker_task_begin_at(t->worker, hooks_wait_step(t->hooks));
    return OK;
}

err training_open(struct run *run, const struct task_options *options, struct device *device,
                  struct training *ret)
{
    *ret = (struct training){.run = run};
    TRY(progress_open(run, &ret->progress));
    err e = open_worker(ret, options, device);
    if (e) training_close(ret);
    return e;
}

err training_finish(struct training *t)
{
    const struct task *task = worker_task_task(t->worker);
    look(t, t->progress.final_step ? t->progress.final_step : t->view.global_step);
    worker_task_trace_finish(t->worker);
    err e = hooks_end(t->hooks, &t->view, task->code);
    err written = progress_finish(&t->progress, task->code, task->text);
    return e ? e : written;
}

void training_close(struct training *t)
{
    hooks_close(t->hooks);
    worker_task_close(t->worker);
    progress_close(&t->progress);
    arena_free(&t->arena);
}
