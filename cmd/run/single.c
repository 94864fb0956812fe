/* single.c - `dtrain SPEC.json`: a ps and a worker in one process, connected through memory; the
 * same roles and code as in a cluster. */
#include "cmd/run/progress.h"
#include "cmd/run/task_parts.h"
#include "core/cluster/runner/runner_ps.h"

struct single {
    struct run *run;
    struct cluster_spec ps_cluster;
    struct loop *loop;
    struct task_devices devices;
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

static err run_both(struct single *s, struct runner_ps *ps, struct runner_worker *worker,
                    int *ret_code)
{
    struct task *tasks[] = {runner_ps_task(ps), runner_worker_task(worker)};
    TRY(tasks_run(tasks, 2));
    *ret_code = report_verdict(tasks[1]);
    /* The last update may still be queued on a GPU; its errors show here. */
    if (*ret_code == EXIT_DONE) TRY(s->devices.device.kernels->synchronize(&s->devices.device));
    return runner_worker_end(worker);
}

static err run_worker_beside(struct single *s, struct runner_ps *ps, int *ret_code)
{
    struct runner_worker_options options =
        worker_options_of(s->run, s->loop, &s->devices, &s->progress);
    struct runner_worker *worker;
    options.task.transport = &transport_inproc;
    TRY(runner_worker_open(&options, &worker));
    err e = run_both(s, ps, worker, ret_code);
    runner_worker_close(worker);
    return e;
}

static err run_parts(struct single *s, int *ret_code)
{
    struct task_options options = task_options_of(s->run, s->loop);
    options.cluster = &s->ps_cluster;
    options.transport = &transport_inproc;
    options.fingerprint = s->run->spec.as_written; /* as of a ps, which reads no data */
    struct runner_ps *ps;
    TRY(runner_ps_open(&options, &s->devices.device, &ps));
    err e = run_worker_beside(s, ps, ret_code);
    runner_ps_close(ps);
    return e;
}

int run_single(struct run *run)
{
    struct single s = {.run = run};
    int code = EXIT_DONE;
    name_tasks(&s);
    err e = loop_open(&s.loop);
    if (e) return report_error(e);
    e = open_training_devices(run, &s.devices);
    if (!e) {
        e = progress_open(run, &s.progress);
        if (!e) e = run_parts(&s, &code);
        progress_close(&s.progress);
        task_devices_close(&s.devices);
    }
    loop_close(s.loop);
    return e ? report_error(e) : code;
}
