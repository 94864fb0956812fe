/* role.h - what a task of the cluster does, without doing any I/O.
 *
 * A role is told what happened and answers with actions in an outbox. It never calls a clock, a
 * socket, a file or a random source; time, incarnations and values are given to it. The same role
 * runs on the real loop (task.c) and can run on a simulator.
 *
 * Generations. Values live in the memory of the ps. Whenever the chief finds that not all ps serve
 * the same generation (at the start, or when a ps came back empty) it draws a new one, describes
 * and fills every ps, from a checkpoint or with initial values, and says SERVE. Everybody else
 * learns of it by STATE and joins. Whatever is said about another generation is void, so nobody
 * needs to be restarted and nothing old is ever counted.
 *
 * Streams. In a generation each worker has one stream of pushes, numbered from 1 whatever its
 * lives. A ps applies each number at most once, in order. A worker that joins, newly or again, asks
 * every ps what it has, and first brings what some have and others lack.
 *
 * Who is who: peers are named by (job, index); the runner knows which link that is. A worker talks
 * to every ps; a ps talks to every worker; worker 0 is the chief. Nobody else talks.
 */
#ifndef CORE_CLUSTER_ROLE_ROLE_H
#define CORE_CLUSTER_ROLE_ROLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "net/message.h"

enum job { JOB_PS, JOB_WORKER, JOB_COUNT };
const char *job_name(enum job);

enum action_type {
    ACTION_SEND, /* message to (job, task); where it has a stretch, of the window shared with that
                    peer */
    ACTION_LOG,  /* text: a line for a person */
    ACTION_END,  /* code, text: the task's verdict; nothing comes after it but the verdict, to a
                    worker that is back */
    /* of a ps */
    ACTION_SETUP, /* body: open the store that the chief described, and restore it if that says so;
                     then ps_role_set_up() */
    ACTION_SHARE, /* share windows with worker `task`; is_fresh: new ones, the old are another
                     life's */
    ACTION_INITIALIZE, /* what worker `task` sent becomes array `array` of the store */
    ACTION_APPLY,      /* the gradients of workers[]; see struct action */
    ACTION_REFRESH,    /* copy the values into what worker `task` sees (where it does not see the
                          store itself) */
    ACTION_CUT,  /* copy the state at `step` with the ledger, and begin to write it as shard `task`
                    of  `count` of the checkpoint `tag`; done() when it is written */
    ACTION_HELD, /* of ps/0: workers wait for a cut from now on (is_fresh) or no more */
    /* of a worker */
    ACTION_COMPUTE, /* one step from the values that are there, of push `batch` (from 0) of this
                       worker's stream, gradients to the windows; then role->done() */
    ACTION_ADOPTED, /* this worker takes part in a generation, from `step` on */
    /* of the chief */
    ACTION_CHOOSE,   /* what do we start from? then worker_role_chosen() */
    ACTION_DESCRIBE, /* send SETUP to ps `task` (the runner knows the layout) */
    ACTION_FILL,     /* array `array` of ps `task`'s block into the gradient window; INIT follows */
    ACTION_BEGIN,    /* a checkpoint of `step` with `tag` and `count` shards is being written */
    ACTION_PUBLISH,  /* all its shards are there: then role->done() */
    ACTION_ABANDON,  /* it failed: text */
    ACTION_EVALUATE, /* evaluate, report; then role->done() */
};

enum { ACTION_TEXT_MAX = 256 };

struct action {
    enum action_type type;
    enum job job;
    int task;
    struct message message; /* SEND, SETUP */
    const int *workers;     /* APPLY: in worker order; valid until the next call into the role */
    int worker_count;
    uint32_t gradients; /* APPLY: how many gradients are in the sum, to divide by */
    uint64_t step;      /* APPLY: global step before it; COMPUTE: global step of the values */
    uint64_t batch;
    uint64_t generation;
    uint64_t tag;
    int count, array;
    bool is_fresh;
    int code;
    const void *body; /* SEND: instead of text; valid until the next call into the role */
    uint32_t body_bytes;
    char text[ACTION_TEXT_MAX];
};

/* What a ps knows of the pushes of one worker, in one generation. */
struct ledger {
    uint64_t received;   /* sequence of the last push that came, applied or dropped */
    uint64_t taken;      /* sequence of the last one that was applied, or waits for its round */
    uint64_t taken_step; /* the step that it was meant for */
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
    /* greeted: HELLO and WELCOME exchanged; incarnation: names one life of the peer */
    void (*peer_up)(struct role *, enum job, int task, uint64_t incarnation, struct outbox *);
    void (*peer_lost)(struct role *, enum job, int task, const char *why, struct outbox *);
    void (*message)(struct role *, enum job, int task, const struct message *, struct outbox *);
    /* of CUT, COMPUTE, PUBLISH, EVALUATE; text says more where result is not OK */
    void (*done)(struct role *, enum action_type, err result, const char *text, struct outbox *);
    /* a signal: the job is to end well, with a last checkpoint, if it can within the limit */
    void (*leave)(struct role *, int code, const char *why, struct outbox *);
    /* something here is broken: the job ends now */
    void (*stop)(struct role *, int code, const char *why, struct outbox *);
    void (*tick)(struct role *, uint64_t now_ms, struct outbox *); /* about every 100 ms */
    void (*report)(const struct role *,
                   struct outbox *); /* LOG: what is it doing and waiting for */
};

/* A body of 64-bit numbers, as LEDGER, SAVE and CUT carry it. */
enum { LEDGER_NUMBERS = 3 };
void ledger_pack(const struct ledger *, int count, uint64_t ret_numbers[]);
/* false: not `count` ledgers */
bool ledger_unpack(const struct message *, int count, struct ledger ret[]);

struct role { /* first member of every role's struct */
    const struct role_ops *ops;
};

#endif
