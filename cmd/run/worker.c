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

static err run_task(struct worker_task *worker, int *ret_code)
{
    struct task *task = worker_task_task(worker);
    TRY(tasks_run(&task, 1));
    *ret_code = report_verdict(task);
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
    struct progress progress;
    struct worker_task *worker = NULL;
    TRY(progress_open(w->run, &progress));
    struct worker_task_options options = worker_options_of(w->run, w->loop, &w->devices, &progress);
    options.feeder = w->feeder;
    options.fed = w->fed;
    err e = worker_task_open(&options, &worker);
    if (!e) e = run_task(worker, &w->code);
    worker_task_close(worker);
    progress_close(&progress);
    return e;
}

static err work(struct work *w)
{
    TRY(loop_open(&w->loop));
    TRY(open_address(w));
    TRY(open_feed(w));
    TRY(open_training_devices(w->run, &w->devices));
    const err e = train(w);
    task_devices_close(&w->devices);
    return e;
}

int run_worker(struct run *run)
{
    struct work w = {.run = run, .code = EXIT_DONE};
    tasks_prepare();
    task_descriptors_raise(&run->cluster);
    const err e = work(&w);
    const int code = e ? report_error(e) : w.code;
    fed_close(w.fed);
    feeder_close(w.feeder);
    if (w.address) transport_tcp.unlisten(w.address);
    loop_close(w.loop);
    return code;
}
