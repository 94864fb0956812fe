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
    const char *address;          /* on this host with port 0: any free one, when it starts */
    bool leaves;                  /* it is no longer in the membership, and ends by itself */
    int control;   /* write end of ssh's standard input, for letters (cmd/launch/keeper.h), or -1 */
    int listen_fd; /* until the task has it, then -1 */
    pid_t pid;     /* 0: not started, or ended */
    struct task_output out, err;
};

struct launch {
    struct run *run;
    struct child *children; /* [count] with room for later tasks, parameter servers first */
    int count, alive;
    int room[JOB_COUNT];          /* entries of children per job */
    struct membership membership; /* who takes part */
    const char *hosts[JOB_COUNT]; /* comma-separated, as for flags */
    struct launch_key key;        /* of tasks on other hosts */
    struct tls_keys *keys;        /* the same key, if it was generated here */
    struct loop *loop;
    struct visitor *visitor;     /* of ps/0, which reports resizes; NULL: there are none */
    struct strings ps;           /* the address of ps/0 */
    int signals;                 /* signalfd */
    sigset_t old_mask;           /* signal mask of the tasks */
    int spec_fd;                 /* a copy of a spec that came on standard input, or -1 */
    int code;                    /* of the first task that failed */
    int caught;                  /* the last signal that asked to end, or 0 */
    uint64_t failed_ms, stop_ms; /* when the first task failed, when all were asked to end; 0 */
    uint64_t ask_ms;             /* from failed_ms until the others are asked to end */
    uint64_t limit_ms;           /* from stop_ms until they are killed */
};

/* Keeps a copy of a spec from standard input, which can be read only once, for the workers. */
err launch_keep_spec(struct launch *);

/* Starts the task of a child, which already has its name and listening socket. */
err launch_start(struct launch *, struct child *);

#endif
