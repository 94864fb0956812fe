/* role.h - what a task of the cluster does, without doing any I/O.
 *
 * A role is told what happened and answers with actions in an outbox. It never calls a clock, a
 * socket, a file or a random source; time, incarnations and values are given to it. The same role
 * runs on the real loop (task.c) and can run on a simulator.
 *
 * Who is who: peers are named by (job, index); the runner knows which link that is. A worker talks
 * to every ps; a ps talks to every worker; worker 0 is the chief. Nobody else talks.
 */
#ifndef CORE_CLUSTER_ROLE_H
#define CORE_CLUSTER_ROLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "net/message.h"

enum job { JOB_PS, JOB_WORKER, JOB_COUNT };
const char *job_name(enum job);

enum action_type {
    ACTION_SEND,  /* message to (job, task); where it has a stretch, of the window shared with that
                     peer */
    ACTION_SETUP, /* ps: body: open the store that the chief described; then role->done() */
    ACTION_SHARE, /* ps: share windows with worker `task` */
    ACTION_INITIALIZE, /* ps: the values that worker `task` sent become the values of the store */
    ACTION_APPLY,      /* ps: apply the gradients of workers[] ; see struct apply_action */
    ACTION_SNAPSHOT, /* ps: copy the values into what worker `task` sees (where it does not see the
                        store itself) */
    ACTION_DESCRIBE, /* chief: send SETUP to ps `task` (the runner knows the layout) */
    ACTION_FILL,     /* chief: compute initial values of ps `task`'s block and send INIT */
    ACTION_COMPUTE,  /* worker: one step from the values that are there, gradients to the windows;
                        then role->done() */
    ACTION_EVALUATE, /* chief: evaluate, report; then role->done() */
    ACTION_LOG,      /* text: a line for a person */
    ACTION_END,      /* code, text: the task's verdict; nothing comes after it */
};

enum { ACTION_TEXT_MAX = 256 };

struct action {
    enum action_type type;
    enum job job;
    int task;
    struct message message; /* SEND */
    const int *workers;     /* APPLY: in worker order; valid until the next call into the role */
    int worker_count;
    uint32_t gradients; /* APPLY: how many gradients are in the sum, to divide by */
    uint64_t step;      /* APPLY: global step before it; COMPUTE: global step of the values */
    int code;
    char text[ACTION_TEXT_MAX];
};

/* A queue that the runner empties after every call; bounded by what one event can cause. */
struct outbox {
    struct action *at;
    int count, capacity;
};
struct action *outbox_add(struct outbox *, enum action_type); /* zeroed but for the type */
void outbox_free(struct outbox *);

/* ACTION_LOG, and ACTION_END with the verdict. */
void outbox_log(struct outbox *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void outbox_end(struct outbox *, int code, const char *text);

/* Makes a VERDICT message of a SEND action. name: of this task, put before the text; "" when the
 * verdict is another task's, which the text names already. */
void action_verdict(struct action *, int code, const char *name, const char *text);
void message_text(const struct message *,
                  char ret_text[ACTION_TEXT_MAX]); /* the body, cut to its limit */

/* How long a role has been waiting. Says every 10 s for what. */
struct patience {
    uint64_t now_ms, since_ms, noted_ms;
};
void patience_renew(struct patience *); /* what was waited for has come */
/* true: limit_ms is over, ret_text says what was waited for */
bool patience_is_over(struct patience *, const char *what, uint64_t limit_ms, struct outbox *,
                      char ret_text[ACTION_TEXT_MAX]);

struct role;
struct role_ops {
    const char *name;
    void (*start)(struct role *, uint64_t now_ms, struct outbox *);
    /* greeted: HELLO and WELCOME exchanged; incarnation: of the peer */
    void (*peer_up)(struct role *, enum job, int task, uint64_t incarnation, struct outbox *);
    void (*peer_lost)(struct role *, enum job, int task, const char *why, struct outbox *);
    void (*message)(struct role *, enum job, int task, const struct message *, struct outbox *);
    /* of SETUP, COMPUTE, EVALUATE; text says more where result is not OK */
    void (*done)(struct role *, enum action_type, err result, const char *text, struct outbox *);
    /* a signal: end after the current step */
    void (*stop)(struct role *, int code, const char *why, struct outbox *);
    void (*tick)(struct role *, uint64_t now_ms, struct outbox *); /* about every 100 ms */
};

struct role { /* first member of every role's struct */
    const struct role_ops *ops;
};

#endif
