/* worker.c - `dtrain --job_name=worker ... SPEC.json`: a worker, and the chief when it is worker 0.
 */
#include "cmd/run/progress.h"
#include "cmd/run/task_parts.h"
#include "cmd/run/descriptors.h"
#include "core/cluster/task/listen.h"

static void turn_away(void *context, struct link *link)
{
    link_close(link);
}

static const struct link_events nobody_calls = {.accepted = turn_away};

/* The worker's own address is taken for as long as it lives, so that a second one with the same
 * index is an error. */
static err claim_address(struct run *run, struct loop *loop, struct listener **ret)
{
    const struct task_options options = task_options_of(run, loop);
    return task_listen(&options, &nobody_calls, NULL, ret);
}

static err run_task(struct worker_task *worker, int *ret_code)
{
    struct task *task = worker_task_task(worker);
    TRY(tasks_run(&task, 1));
    *ret_code = report_verdict(task);
    return worker_task_end(worker);
}

static err work(struct run *run, struct loop *loop, struct task_devices *devices, int *ret_code)
{
    struct progress progress;
    struct worker_task *worker = NULL;
    TRY(progress_open(run, &progress));
    const struct worker_task_options options = worker_options_of(run, loop, devices, &progress);
    err e = worker_task_open(&options, &worker);
    if (!e) e = run_task(worker, ret_code);
    worker_task_close(worker);
    progress_close(&progress);
    return e;
}

int run_worker(struct run *run)
{
    struct loop *loop;
    struct task_devices devices;
    struct listener *address = NULL;
    int code = EXIT_DONE;
    tasks_prepare();
    task_descriptors_raise(&run->cluster);
    err e = loop_open(&loop);
    if (e) return report_error(e);
    e = claim_address(run, loop, &address);
    if (!e) e = open_training_devices(run, &devices);
    if (!e) {
        e = work(run, loop, &devices, &code);
        task_devices_close(&devices);
    }
    if (address) transport_tcp.unlisten(address);
    loop_close(loop);
    return e ? report_error(e) : code;
}
