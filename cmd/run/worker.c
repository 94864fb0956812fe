/* worker.c - `dtrain --job_name=worker ... SPEC.json`: a worker, and the chief when it is worker 0.
 */
#include "cmd/run/progress.h"
#include "cmd/run/task_parts.h"
#include "cmd/run/descriptors.h"
#include "core/cluster/task/feed/fed.h"
#include "core/cluster/task/feed/feeder.h"
#include "core/cluster/task/listen.h"

static void turn_away(void *context, struct link *link)
{
    link_close(link);
}

static const struct link_events nobody_calls = {.accepted = turn_away};

static bool met_anybody(const struct task *task)
{
    for (int ps = 0; ps < task->peer_count; ps++)
        if (task->peers[ps].was_up) return true;
    return false;
}

/* The chief trains and saves, so what is there without it is no answer. */
static bool came_too_late(const struct run *run, const struct task *task)
{
    return task->code == EXIT_TIMEOUT && run_kind(run) == RUN_WORKER && !met_anybody(task) &&
           job_had_ended(run);
}

static err run_task(const struct run *run, struct worker_task *worker, int *ret_code)
{
    struct task *task = worker_task_task(worker);
    TRY(tasks_run(&task, 1));
    if (task_has_moved(task)) return OK;
    *ret_code = came_too_late(run, task) ? EXIT_DONE : report_verdict(task);
    return worker_task_end(worker);
}

/* Where the chief reads for all, it is called at its address, which is its feeder's; the others
 * are fed. */
struct work {
    struct run *run;
    struct loop *loop;
    struct listener *address; /* NULL: the feeder has it */
    struct feeder *feeder;
    struct fed *fed;
    struct task_devices devices;
    struct progress progress;
    uint64_t last_step;
    struct next_life next;
    int code;
};

/* A worker's own address is taken for as long as it lives, so that a second one with the same index
 * is an error. */
static err open_address(struct work *w)
{
    const struct task_options options = task_options_of(w->run, w->loop);
    const bool feeds = run_kind(w->run) == RUN_CHIEF && spec_is_in_graph(&w->run->spec);
    return feeds ? feeder_open(&options, &w->feeder)
                 : task_listen(&options, &nobody_calls, NULL, &w->address);
}

/* Completes the spec. */
static err open_feed(struct work *w)
{
    const struct task_options options = task_options_of(w->run, w->loop);
    return run_is_fed(w->run) ? fed_open(&options, &w->run->spec, &w->fed) : OK;
}

static err train(struct work *w)
{
    struct worker_task *worker = NULL;
    struct worker_task_options options =
        worker_options_of(w->run, w->loop, &w->devices, &w->progress);
    options.feeder = w->feeder;
    options.fed = w->fed;
    options.last_step = &w->last_step;
    err e = worker_task_open(&options, &worker);
    if (!e) e = run_task(w->run, worker, &w->code);
    w->next.roster = e ? (struct roster){0} : worker_task_task(worker)->moves_to;
    worker_task_close(worker);
    return e ? e : run_move(w->run, &w->next);
}

/* As long as the job has one roster; threads are shared anew in each. */
static err train_in_roster(struct work *w)
{
    TRY(open_training_devices(w->run, &w->devices));
    const err e = train(w);
    task_devices_close(&w->devices);
    return e;
}

static err work(struct work *w)
{
    TRY(loop_open(&w->loop));
    TRY(open_address(w));
    TRY(open_feed(w));
    TRY(progress_open(w->run, &w->progress));
    err e;
    do e = train_in_roster(w); /* ends: a turn more for each time that somebody has it moved */
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
    fed_close(w.fed);
    feeder_close(w.feeder);
    if (w.address) transport_tcp.unlisten(w.address);
    loop_close(w.loop);
    return code;
}
