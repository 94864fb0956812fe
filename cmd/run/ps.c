/* ps.c - `dtrain --job_name=ps ...`: a parameter server, until the job ends. */
#include "cmd/run/task_parts.h"
#include "cmd/run/descriptors.h"
#include "core/cluster/task/ps.h"

static err serve(struct run *run, struct loop *loop, struct device *device, int *ret_code)
{
    const struct task_options options = task_options_of(run, loop);
    struct ps_task *ps;
    TRY(ps_task_open(&options, device, &ps));
    struct task *task = ps_task_task(ps);
    err e = tasks_run(&task, 1);
    if (!e) *ret_code = report_verdict(task);
    ps_task_close(ps);
    return e;
}

int run_ps(struct run *run)
{
    struct loop *loop;
    struct device device;
    int code = EXIT_DONE;
    tasks_prepare();
    task_descriptors_raise(&run->cluster);
    err e = loop_open(&loop);
    if (e) return report_error(e);
    e = open_device(run, &device);
    if (!e) {
        e = serve(run, loop, &device, &code);
        device_close(&device);
    }
    loop_close(loop);
    return e ? report_error(e) : code;
}
