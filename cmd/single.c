/* single.c - `dtrain SPEC.json`: a ps and a worker in one process, joined by memory. The same
 * roles, the same code. */
#include "cmd/progress.h"
#include "cmd/wiring.h"
#include "core/cluster/ps_task.h"

struct single {
    struct run *run;
    struct cluster_spec ps_cluster;
    struct loop *loop;
    struct device device;
    struct progress progress;
};

static void name_tasks(struct single *s)
{
    static const char *ps_host = "ps", *worker_host = "worker";
    struct cluster_spec *cluster = &s->run->cluster;
    *cluster = (struct cluster_spec){
        .hosts = {[JOB_PS] = {&ps_host, 1}, [JOB_WORKER] = {&worker_host, 1}},
        .job = JOB_WORKER,
    };
    s->ps_cluster = *cluster;
    s->ps_cluster.job = JOB_PS;
}

static err run_both(struct single *s, struct ps_task *ps, int *ret_code)
{
    const struct worker_task_options options = {
        .task = task_options_of(s->run, s->loop),
        .spec = &s->run->spec,
        .device = &s->device,
        .events = progress_events,
        .context = &s->progress,
    };
    struct worker_task_options inproc = options;
    inproc.task.transport = TRANSPORT_INPROC;
    struct worker_task *worker;
    TRY(worker_task_open(&inproc, &worker));
    progress_attach(&s->progress, worker);
    struct task *tasks[] = {ps_task_task(ps), worker_task_task(worker)};
    err e = tasks_run(tasks, 2);
    if (!e) *ret_code = report_verdict(tasks[1]);
    if (!e) e = progress_finish(&s->progress, tasks[1]->code, tasks[1]->text);
    worker_task_close(worker);
    return e;
}

static err run_parts(struct single *s, int *ret_code)
{
    struct task_options options = task_options_of(s->run, s->loop);
    options.cluster = &s->ps_cluster;
    options.transport = TRANSPORT_INPROC;
    struct ps_task *ps;
    TRY(progress_open(s->run, &s->progress));
    err e = ps_task_open(&options, &s->device, &ps);
    if (!e) {
        e = run_both(s, ps, ret_code);
        ps_task_close(ps);
    }
    progress_close(&s->progress);
    return e;
}

int run_single(struct run *run)
{
    struct single s = {.run = run};
    int code = EXIT_DONE;
    name_tasks(&s);
    tasks_prepare();
    err e = loop_open(&s.loop);
    if (e) return report_error(e);
    e = open_device(run, &s.device);
    if (!e) {
        e = run_parts(&s, &code);
        device_close(&s.device);
    }
    loop_close(s.loop);
    return e ? report_error(e) : code;
}
