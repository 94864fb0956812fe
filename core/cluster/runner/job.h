/* job.h - long-running work in a thread, with a callback in the loop. */
#ifndef CORE_CLUSTER_RUNNER_JOB_H
#define CORE_CLUSTER_RUNNER_JOB_H

#include <pthread.h>
#include <stdbool.h>

#include "core/cluster/role/role.h"
#include "net/loop.h"

/* Embedded in the owner; zeroed: idle. */
struct task_job {
    err (*run)(void *context); /* in the thread; only it may use its data meanwhile */
    /* in the loop's thread, after run; error_text() is run's. The job is idle then */
    void (*done)(void *context, err result);
    void *context;
    struct loop *loop;
    pthread_t thread;
    bool is_running;
    int fd; /* an eventfd, while it runs */
    err result;
    char text[ACTION_TEXT_MAX];
};

err task_job_start(struct task_job *); /* run, done, context and loop are set; ERR_IO */
/* Does not wait: the data of a running thread must stay. Only when the process ends. */
void task_job_abandon(struct task_job *);
void task_job_close(struct task_job *); /* waits for the thread; done() is not called */

#endif
