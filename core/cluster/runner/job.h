/* job.h - work that may take long, done by a thread beside the loop. */
#ifndef CORE_CLUSTER_RUNNER_JOB_H
#define CORE_CLUSTER_RUNNER_JOB_H

#include <pthread.h>
#include <stdbool.h>

#include "core/cluster/role/role.h"
#include "net/loop.h"

/* In the owner's memory; zeroed: idle. */
struct task_job {
    err (*run)(void *context); /* in the thread; what it touches is its own meanwhile */
    /* in the loop's thread, once it has run; error_text() says more. The job is idle by then */
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
/* Does not wait: what the thread uses stays, where it is still running. Of a process that ends. */
void task_job_abandon(struct task_job *);
void task_job_close(struct task_job *); /* waits for the thread; done() does not come any more */

#endif
