/* ps.c - `dtrain --job_name=ps ...`: a parameter server, until the job ends. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cmd/launch/ready.h"
#include "cmd/run/task_parts.h"
#include "core/cluster/description/ports.h"
#include "cmd/run/descriptors.h"
#include "core/cluster/runner/runner_ps.h"

struct serving {
    struct run *run;
    struct loop *loop;
    struct device device;
    struct next_life next;
    int code;
};

static err run_task(struct serving *s, struct task *task)
{
    TRY(tasks_run(&task, 1));
    s->next.membership = task->resizes_to;
    if (!task_has_resized(task)) s->code = report_verdict(task);
    return OK;
}

/* Keeps the port that the kernel chose, for later memberships. */
static err listens(void *context, const char *address)
{
    struct serving *s = context;
    struct run *run = s->run;
    const char **own = &run->cluster.hosts[JOB_PS].at[run->cluster.task];
    if (port_is_open(*own)) *own = arena_string(&run->arena, address);
    return run->ready ? ready_tell(run->ready, address) : OK;
}

/* Duplicates an inherited socket (--bind=fd:N), so that it outlives the task that uses it. */
static err keep_socket(const char *bind, char ret[ADDRESS_MAX])
{
    int fd;
    if (!bind || sscanf(bind, "fd:%d", &fd) != 1) return OK;
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (copy < 0) return fail(ERR_IO, "--bind=%s: %s", bind, strerror(errno));
    snprintf(ret, ADDRESS_MAX, "fd:%d", copy);
    return OK;
}

static err serve_in_membership(struct serving *s)
{
    struct task_options options = task_options_of(s->run, s->loop);
    char socket[ADDRESS_MAX] = "";
    struct runner_ps *ps;
    TRY(keep_socket(options.listen, socket));
    if (socket[0]) options.listen = socket;
    options.listens = listens;
    options.listens_context = s;
    TRY(runner_ps_open(&options, &s->device, &ps));
    const err e = run_task(s, runner_ps_task(ps));
    runner_ps_close(ps);
    return e ? e : run_resize(s->run, &s->next);
}

static err serve(struct serving *s)
{
    err e;
    TRY(open_device(s->run, &s->device));
    do e = serve_in_membership(s); /* ends: one turn per resize */
    while (!e && s->next.goes_on);
    device_close(&s->device);
    return e;
}

int run_ps(struct run *run)
{
    struct serving s = {.run = run, .code = EXIT_DONE};
    task_descriptors_raise(&run->cluster);
    err e = run_open_loop(run, &s.loop);
    if (e) return report_error(e);
    e = serve(&s);
    loop_close(s.loop);
    return e ? report_error(e) : s.code;
}
