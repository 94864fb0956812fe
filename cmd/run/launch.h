/* launch.h - shared by the launcher's files: launch.c supervises the tasks, start.c starts one. */
#ifndef CMD_RUN_LAUNCH_H
#define CMD_RUN_LAUNCH_H

#include <signal.h>
#include <sys/types.h>

#include "cmd/cmd.h"
#include "cmd/launch/key.h"
#include "cmd/run/task_output.h"

struct child {
    enum job job;
    int task;
    char name[TASK_NAME_MAX];
    const char *prefix;
    const struct host_slot *slot; /* where ssh starts it; NULL: here */
    const char *address;          /* in the lists; here with port 0: it takes any when it starts */
    bool leaves;                  /* the membership has no place for it: it ends by itself */
    int control;   /* the writing end of what ssh reads, for letters (cmd/launch/keeper.h), or -1 */
    int listen_fd; /* until the task has it, then -1 */
    pid_t pid;     /* 0: not started, or ended */
    struct task_output out, err;
};

struct launch {
    struct run *run;
    struct child *children; /* [count] with room for tasks to come, parameter servers first */
    int count, alive;
    int room[JOB_COUNT];          /* entries of children per job */
    struct membership membership; /* who takes part */
    const char *hosts[JOB_COUNT]; /* as the flags have them */
    struct launch_key key;        /* of tasks elsewhere */
    struct tls_keys *keys;        /* the same key, if it was generated here */
    struct loop *loop;
    struct visitor *visitor;     /* of ps/0, which tells of resizes; NULL: there will be none */
    struct strings ps;           /* where ps/0 is */
    int signals;                 /* signalfd */
    sigset_t old_mask;           /* of the tasks */
    int spec_fd;                 /* a copy of a spec that came on standard input, or -1 */
    int code;                    /* of the first task that failed */
    int caught;                  /* the last signal received that asks to end, or 0 */
    uint64_t failed_ms, stop_ms; /* when the first task failed, when all were asked to end; 0 */
    uint64_t ask_ms;             /* from failed_ms until the others are asked to end */
    uint64_t limit_ms;           /* from stop_ms until they are ended */
};

/* A spec from standard input can be read once: keeps a copy for the workers. */
err launch_keep_spec(struct launch *);

/* Starts the task of a child that has its name and its listening socket. */
err launch_start(struct launch *, struct child *);

#endif
