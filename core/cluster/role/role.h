/* role.h - what a task of the cluster does, without doing any I/O.
 *
 * A role is told what happened and answers with actions in an outbox. It never calls a clock, a
 * socket, a file or a random source; time, incarnations and values are given to it. The same role
 * runs on the real loop (task.c) and on a simulator.
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
 * Terms. One worker leads, the chief: of term t it is worker t % workers, so that no two have the
 * same term. All begin with term 0. ps/0 alone continues to a later term, where its chief is gone
 * or silent for limits.chief_ms: the next one whose worker is here. Whoever hears of a later term
 * keeps it and tells those who say an older one (LEADS); what a chief of an older term says is
 * void. While ps/0 serves, workers hear of terms from it alone: where another ps was told of a
 * later one, its chief has ps/0 go beyond it. The values stay as they are, and nothing begins
 * again.
 *
 * Who is who: peers are named by (job, index); the runner knows which link that is. A worker talks
 * to every ps; a ps talks to every worker. Nobody else talks.
 */
#ifndef CORE_CLUSTER_ROLE_ROLE_H
#define CORE_CLUSTER_ROLE_ROLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/cluster/role/coverage.h"
#include "core/cluster/role/membership.h"
#include "core/cluster/role/turns.h"
#include "net/message.h"

enum { CHIEF = 0, NOBODY = -1 }; /* of term 0; among the tasks of a job */
/* How far a term may be ahead of those that a task has heard of: of one that has just come, all. */
enum { TERMS_AHEAD_MAX = 1 << 20 };
int term_chief(uint64_t term, int workers);
uint64_t term_after(uint64_t term, int chief, int workers); /* the next one of that chief */
const char *job_name(enum job);
/* "ps/0" */
enum { TASK_NAME_MAX = 24 };
const char *task_name(enum job, int task, char text[TASK_NAME_MAX]);

/* Of any text that a role says, with its end: what a task fails with fits, with the task's name in
 * front, since what to do stands at the end of it. */
enum { ACTION_TEXT_MAX = ERROR_TEXT_MAX + 64 };
enum { TASKS_TEXT_MAX = 128 }; /* of the names of tasks in it, as many as fit: "ps/0, ps/1" */

/* actions.def lists them, with what each carries. */
enum action_type {
#define ACTION(type, member, ...) ACTION_##type,
#include "core/cluster/role/actions.def"
#undef ACTION
    ACTION_TYPES
};
const char *action_name(enum action_type); /* "SEND" */

struct action {
    enum action_type type;
    union {
#define ACTION(type, member, ...)                                                                  \
    struct action_##member {                                                                       \
        __VA_ARGS__                                                                                \
    } member;
#include "core/cluster/role/actions.def"
#undef ACTION
    };
};

/* What a ps knows of the pushes of one worker, in one generation. */
struct ledger {
    uint64_t received;   /* number of the last push that came, applied or dropped */
    uint64_t taken;      /* number of the last one that was applied, or waits for its round */
    uint64_t taken_step; /* the step that it was meant for */
};

/* Of one worker's pushes, those that not all ps have in their values: it died between two of them.
 */
struct torn_pushes {
    uint64_t lacking; /* of those that ps/0 has, some other ps lacks so many, */
    uint64_t more;    /* or has so many more than ps/0 */
};
/* What another ps than ps/0 has of these workers: torn [count], as by all that were noted before.
 */
void torn_pushes_note(struct torn_pushes *, int count, const struct ledger *first,
                      const struct ledger *other);

/* A queue that the runner empties after every call; bounded by what one event can cause. */
struct outbox {
    struct action *at;
    int count, capacity;
    struct arena texts; /* that the actions say */
};
struct action *outbox_add(struct outbox *, const struct action *); /* valid until the next one */
#define ACTION(type, member, ...)                                                                  \
    static inline struct action_##member *outbox_add_##member(struct outbox *outbox,               \
                                                              struct action_##member added)        \
    {                                                                                              \
        return &outbox_add(outbox, &(struct action){ACTION_##type, .member = added})->member;      \
    }
#include "core/cluster/role/actions.def"
#undef ACTION
void outbox_empty(struct outbox *);
void outbox_free(struct outbox *);
const char *outbox_text(struct outbox *, const char *text); /* kept, cut to its limit */

/* The body of a SCALE or a RESIZE, in the outbox. */
void message_say_membership(struct message *, const struct membership *, struct outbox *);
/* ACTION_LOG, one that is a warning, ACTION_BREACH, and ACTION_END with the verdict. */
void outbox_log(struct outbox *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void outbox_warn(struct outbox *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void outbox_breach(struct outbox *, bool is_of_number, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void outbox_end(struct outbox *, int code, const char *text);

/* Becomes the body of a message in the outbox; none where it is empty. */
void message_say(struct message *, const char *text, struct outbox *);
/* A VERDICT. name: of this task, put before the text; "" when the verdict is another task's, which
 * the text names already. */
void message_say_verdict(struct message *, int code, const char *name, const char *text,
                         struct outbox *);
void message_text(const struct message *,
                  char ret_text[ACTION_TEXT_MAX]); /* the body, cut to its limit */

/* How long a role has been waiting. Says now and then for what, after 30 s as a warning.
 *
 * A role's time, by which it keeps all its limits, is time in which its task runs: while the task
 * stands still (a stopped container, Ctrl-Z) it hears of nobody, and nobody is late for it. */
struct patience {
    uint64_t now_ms, since_ms, noted_ms;
    uint64_t told_ms; /* by the clock */
};
enum { STANDSTILL_MS = 1000 }; /* between two ticks: the task was not running */
void patience_begin(struct patience *, uint64_t clock_ms);
void patience_tick(struct patience *, uint64_t clock_ms);
void patience_renew(struct patience *); /* what was waited for has come */
struct awaited {
    const char *what;
    uint64_t limit_ms;
    bool is_usual; /* also where it takes long: that others end, or that it is evaluated */
};
/* true: its limit is over, ret_text says what was waited for */
bool patience_is_over(struct patience *, const struct awaited *, struct outbox *,
                      char ret_text[ACTION_TEXT_MAX]);

struct role;
struct role_ops {
    const char *name;
    void (*start)(struct role *, uint64_t now_ms, struct outbox *);
    /* greeted: HELLO and WELCOME exchanged; incarnation: names one life of the peer */
    void (*peer_up)(struct role *, enum job, int task, uint64_t incarnation, struct outbox *);
    void (*peer_lost)(struct role *, enum job, int task, const char *why, struct outbox *);
    void (*message)(struct role *, enum job, int task, const struct message *, struct outbox *);
    /* of SNAPSHOT, COMPUTE, PUBLISH, EVALUATE, and BEGIN where it failed; text says more where
     * result is not OK. COMPUTE, ERR_PEER: what followed VALUES did not come, and the step is none
     */
    void (*done)(struct role *, enum action_type, err result, const char *text, struct outbox *);
    /* a signal: the job is to end well, with a last checkpoint, if it can within the limit; of a
     * worker with only_me: it leaves, and the job continues, where ps/0 grants that */
    void (*leave)(struct role *, int code, const char *why, bool only_me, struct outbox *);
    /* a peer that was in another membership says so: RESIZE, to who is here as well */
    void (*resize)(struct role *, const struct membership *, struct outbox *);
    /* something here is broken: the job ends now */
    void (*stop)(struct role *, int code, const char *why, struct outbox *);
    void (*tick)(struct role *, uint64_t now_ms, struct outbox *); /* about every 100 ms */
    void (*report)(const struct role *,
                   struct outbox *); /* LOG: what is it doing and waiting for */
    void (*state)(const struct role *, char ret[ACTION_TEXT_MAX]); /* the same in a few words */
};

/* `to`, which must be one that may follow (assert): follows[from] has a bit MAY(state) for each.
 * Staying is always allowed. No peer can cause another one: what it says is looked at before. */
#define MAY(state) (1u << (state))
int state_after(const uint16_t follows[], int from, int to);

/* As a row of numbers, in the order of the struct: in SETUP and in checkpoints. */
enum { LEDGER_NUMBERS = 3 };
void ledger_numbers(const struct ledger *, int64_t ret[LEDGER_NUMBERS]);
struct ledger ledger_of(const int64_t numbers[LEDGER_NUMBERS]);

/* The same as a body in the byte order of the wire: LEDGER, SAVE and SNAPSHOT. */
void ledger_pack(const struct ledger *, int count, uint64_t ret_numbers[]);
/* false: not `count` ledgers */
bool ledger_unpack(const struct message *, int count, struct ledger ret[]);

struct role { /* first member of every role's struct */
    const struct role_ops *ops;
};

#endif
