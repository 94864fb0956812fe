/* job.c - see job.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/base/threads/thread.h"
#include "core/cluster/runner/job.h"

static void *run(void *context)
{
    struct task_job *job = context;
    const uint64_t one = 1;
    job->result = job->run(job->context);
    if (job->result) snprintf(job->text, sizeof job->text, "%s", error_text());
    if (write(job->fd, &one, sizeof one) < 0) log_line(LOG_ERROR, "eventfd: %s", strerror(errno));
    return NULL;
}

static void on_ready(void *context)
{
    struct task_job *job = context;
    uint64_t count;
    if (read(job->fd, &count, sizeof count) < 0) return;
    task_job_close(job);
    job->done(job->context, job->result ? fail(job->result, "%s", job->text) : OK);
}

err task_job_start(struct task_job *job)
{
    job->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (job->fd < 0) return fail(ERR_IO, "eventfd: %s", strerror(errno));
    err e = loop_watch(job->loop, job->fd, on_ready, job);
    if (!e) {
        e = thread_start(&job->thread, run, job);
        if (e) loop_unwatch(job->loop, job->fd);
    }
    if (e) close(job->fd);
    job->is_running = !e;
    return e;
}

void task_job_close(struct task_job *job)
{
    if (!job->is_running) return;
    pthread_join(job->thread, NULL);
    loop_unwatch(job->loop, job->fd);
    close(job->fd);
    job->is_running = false;
}

void task_job_abandon(struct task_job *job)
{
    if (!job->is_running) return;
    pthread_detach(job->thread);
    loop_unwatch(job->loop, job->fd);
    job->is_running = false;
}
