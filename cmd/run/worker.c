/* worker.c - `dtrain --job_name=worker ... SPEC.json`: a worker, and the chief when it is worker 0.
 */
#include <stdio.h>

#include "cmd/run/absence.h"
#include "cmd/run/progress.h"
#include "cmd/run/task_parts.h"
#include "cmd/run/descriptors.h"
#include "core/cluster/runner/feed/remote_input.h"
#include "core/cluster/runner/feed/feeder.h"
#include "core/cluster/runner/listen.h"

static void turn_away(void *context, struct link *link)
{
    link_close(link);
}

static const struct link_events nobody_calls = {.accepted = turn_away};

static bool is_alone(const struct task *task)
{
    for (int ps = 0; ps < task->peer_count; ps++)
        if (task->peers[ps].is_up) return false;
    return true;
}

static bool met_anybody(const struct task *task)
{
    for (int ps = 0; ps < task->peer_count; ps++)
        if (task->peers[ps].was_up) return true;
    return false;
}

/* Whether the job ended, but the ps were gone before they could say so. Worker 0 usually saves the
 * last checkpoint itself: one proves something to it only if it met a ps, as another worker may
 * then have led. */
static bool missed_end(const struct run *run, const struct task *task)
{
    const bool has_waited = task->code == EXIT_TIMEOUT || task->code == EXIT_LOST_PEER;
    return has_waited && task->ends_with != ENDS_AFTER_ALL && is_alone(task) &&
           (run_kind(run) == RUN_WORKER || met_anybody(task)) && job_had_ended(run);
}

/* ret_why: set if only this task was to end */
static err run_task(const struct run *run, struct runner_worker *worker, int *ret_code,
                    char ret_why[ACTION_TEXT_MAX])
{
    struct task *task = runner_worker_task(worker);
    TRY(tasks_run(&task, 1));
    if (task_has_resized(task)) return OK;
    *ret_code = missed_end(run, task) ? EXIT_DONE : report_verdict(task);
    if (task->ends_with == ENDS_ALONE) snprintf(ret_why, ACTION_TEXT_MAX, "%s", task->text);
    return runner_worker_end(worker);
}

/* With in-graph replication, workers connect to the chief's address, at which its feeder listens;
 * the others have a remote input. */
struct work {
    struct run *run;
    struct loop *loop;
    struct listener *address; /* NULL: the feeder listens there */
    struct feeder *feeder;
    struct remote_input *remote_input;
    struct task_devices devices;
    struct progress progress;
    uint64_t last_step;
    struct next_life next;
    int code;
    char why[ACTION_TEXT_MAX]; /* why only this task ended; "": the job did */
};

/* A worker listens at its address as long as it lives, so that a second worker with the same index
 * fails. */
static err open_address(struct work *w)
{
    const struct task_options options = task_options_of(w->run, w->loop);
    const bool feeds = run_kind(w->run) == RUN_CHIEF && spec_is_in_graph(&w->run->spec);
    return feeds ? feeder_open(&options, &w->feeder)
                 : task_listen(&options, &nobody_calls, NULL, &w->address);
}

/* Opens the remote input, if any, which completes the spec. */
static err open_feed(struct work *w)
{
    const struct task_options options = task_options_of(w->run, w->loop);
    return run_has_remote_input(w->run)
               ? remote_input_open(&options, &w->run->spec, &w->remote_input)
               : OK;
}

static err train(struct work *w)
{
    struct runner_worker *worker = NULL;
    struct runner_worker_options options =
        worker_options_of(w->run, w->loop, &w->devices, &w->progress);
    options.feeder = w->feeder;
    options.remote_input = w->remote_input;
    options.last_step = &w->last_step;
    run_tell_signal(w->run);
    err e = runner_worker_open(&options, &worker);
    run_tell_signal(NULL);
    if (!e) e = run_task(w->run, worker, &w->code, w->why);
    w->next.membership = e ? (struct membership){0} : runner_worker_task(worker)->resizes_to;
    runner_worker_close(worker);
    return e ? e : run_resize(w->run, &w->next);
}

/* Trains until the job ends or is resized. Each time the threads are divided anew. */
static err train_in_membership(struct work *w)
{
    TRY(open_training_devices(w->run, &w->devices));
    const err e = train(w);
    task_devices_close(&w->devices);
    return e;
}

static err work(struct work *w)
{
    TRY(run_open_loop(w->run, &w->loop));
    TRY(open_address(w));
    TRY(open_feed(w));
    TRY(progress_open(w->run, &w->progress));
    err e;
    do e = train_in_membership(w); /* ends: one turn per resize */
    while (!e && w->next.goes_on);
    progress_close(&w->progress);
    return e;
}

int run_worker(struct run *run)
{
    struct work w = {.run = run, .code = EXIT_DONE};
    task_descriptors_raise(&run->cluster);
    const err e = work(&w);
    const int code = e ? report_error(e) : w.code;
    if (e) snprintf(w.why, sizeof w.why, "%s", error_text());
    remote_input_close(w.remote_input);
    feeder_close(w.feeder);
    if (w.address) listener_close(w.address);
    loop_close(w.loop);
    if (w.why[0]) run_tell_absence(run, code, w.why);
    return code;
}
