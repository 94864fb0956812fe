/* role.h - the logic of a task of the cluster, without any I/O.
 *
 * A role gets events and answers with actions in an outbox. It never calls a clock, a socket, a
 * file or a random source; time, incarnations and values are passed to it. The same role runs on
 * the real loop (task.c) and in a simulator.
 *
 * Generations. Values live in the memory of the ps. Whenever the chief finds that not all ps serve
 * the same generation (at the start, or when a ps came back empty) it draws a new one, describes
 * (SETUP) and fills (INIT) every ps, from a checkpoint or with initial values, and sends SERVE.
 * Other workers learn of it by STATE and join. Messages of another generation are ignored, so no
 * task must be restarted and nothing old is ever counted.
 *
 * Streams. In a generation each worker has one stream of pushes, numbered from 1, also across
 * restarts. A ps applies each number at most once, in order. A worker that joins or rejoins asks
 * every ps what it has, and first pushes again what some ps have and others lack.
 *
 * Terms. One worker leads, the chief: of term t it is worker t % workers, so that no two have the
 * same term. All begin with term 0. Only ps/0 begins a later term, when the chief is gone or silent
 * for limits.chief_ms: the next one whose worker is connected. A task that hears of a later term
 * adopts it, and sends LEADS to tasks with an older one; messages of an older term's chief are
 * ignored. While ps/0 serves, workers accept terms from it alone: if another ps knows a later one,
 * the chief has ps/0 go beyond that. The values stay as they are, and nothing restarts.
 *
 * Peers are named by (job, index); the runner knows their links. Only workers and ps talk to each
 * other, each worker with every ps.
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

enum { CHIEF = 0, NOBODY = -1 }; /* CHIEF: index of the chief of term 0; NOBODY: no task of a job */
/* How far a new term may be ahead of the latest one that a task knows. */
enum { TERMS_AHEAD_MAX = 1 << 20 };
int term_chief(uint64_t term, int workers);
uint64_t term_after(uint64_t term, int chief, int workers); /* the next term with that chief */
const char *job_name(enum job);
/* "ps/0" */
enum { TASK_NAME_MAX = 24 };
const char *task_name(enum job, int task, char text[TASK_NAME_MAX]);

/* Size of any text of a role, with its NUL: an error text fits with the task's name in front, since
 * advice is at its end. */
enum { ACTION_TEXT_MAX = ERROR_TEXT_MAX + 64 };
enum { TASKS_TEXT_MAX = 128 }; /* names of tasks in it, as many as fit: "ps/0, ps/1" */

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

/* What a ps has of one worker's pushes, in one generation. */
struct ledger {
    uint64_t received;   /* number of the last push that came, applied or dropped */
    uint64_t taken;      /* number of the last one that was applied, or waits for its round */
    uint64_t taken_step; /* the step that it was meant for */
};

/* How many of one worker's pushes some ps have in their values and others lack: it died between two
 * of them. */
struct torn_pushes {
    uint64_t lacking; /* pushes that ps/0 has and some other ps lacks, at most */
    uint64_t more;    /* pushes that some other ps has and ps/0 lacks */
};
/* Takes another ps's ledgers into account; first: those of ps/0. torn: [count], the maximum over
 * all ps so far. */
void torn_pushes_note(struct torn_pushes *, int count, const struct ledger *first,
                      const struct ledger *other);

/* A queue that the runner empties after every call; bounded by what one event can cause. */
struct outbox {
    struct action *at;
    int count, capacity;
    struct arena texts; /* texts of the actions */
};
struct action *outbox_add(struct outbox *, const struct action *); /* valid until the next call */
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
const char *outbox_text(struct outbox *, const char *text); /* copied, cut to ACTION_TEXT_MAX */

/* The body of a SCALE or a RESIZE, in the outbox. */
void message_say_membership(struct message *, const struct membership *, struct outbox *);
/* ACTION_LOG, the same as a warning, ACTION_BREACH, and ACTION_END with the verdict. */
void outbox_log(struct outbox *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void outbox_warn(struct outbox *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void outbox_breach(struct outbox *, bool is_of_number, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void outbox_end(struct outbox *, int code, const char *text);

/* The text becomes the body of a message, copied into the outbox; "": no body. */
void message_say(struct message *, const char *text, struct outbox *);
/* A VERDICT. name: of this task, put before the text; "" when the verdict is another task's, which
 * the text names already. */
void message_say_verdict(struct message *, int code, const char *name, const char *text,
                         struct outbox *);
void message_text(const struct message *,
                  char ret_text[ACTION_TEXT_MAX]); /* the body, cut to its limit */

/* How long a role has been waiting. Logs now and then for what, after 30 s as a warning.
 *
 * A role's time, by which all its limits are measured, passes only while its task runs: while that
 * is stopped (a paused container, Ctrl-Z) it hears nothing, and no peer counts as late. */
struct patience {
    uint64_t now_ms, since_ms, noted_ms;
    uint64_t told_ms; /* the last tick, by the clock */
};
enum { STANDSTILL_MS = 1000 }; /* more between two ticks: the task was stopped */
void patience_begin(struct patience *, uint64_t clock_ms);
void patience_tick(struct patience *, uint64_t clock_ms);
void patience_renew(struct patience *); /* the wait is over: restarts the count */
struct awaited {
    const char *what;
    uint64_t limit_ms;
    bool is_usual; /* a long wait is normal, as for others' end or an evaluation: no warning */
};
/* true: the limit was reached, ret_text says what was waited for */
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
    /* SNAPSHOT, COMPUTE, PUBLISH or EVALUATE has ended, or BEGIN has failed; text: the error, if
     * result is not OK. COMPUTE, ERR_PEER: what follows VALUES did not come, and the step was given
     * up */
    void (*done)(struct role *, enum action_type, err result, const char *text, struct outbox *);
    /* a signal: the job is to end in order, with a last checkpoint, if possible within the limit;
     * with only_me: this worker leaves, and the job continues, if ps/0 permits */
    void (*leave)(struct role *, int code, const char *why, bool only_me, struct outbox *);
    /* a peer reports another membership: it is passed on as RESIZE to connected peers */
    void (*resize)(struct role *, const struct membership *, struct outbox *);
    /* a failure of this task: the job ends now */
    void (*stop)(struct role *, int code, const char *why, struct outbox *);
    void (*tick)(struct role *, uint64_t now_ms, struct outbox *); /* about every 100 ms */
    void (*report)(const struct role *,
                   struct outbox *); /* ACTION_LOG: what it is doing and waiting for */
    void (*state)(const struct role *, char ret[ACTION_TEXT_MAX]); /* the same in a few words */
};

/* Returns `to`, asserting that it may follow: follows[from] has a bit MAY(state) for each. Staying
 * is always allowed. Messages are checked before, so no peer can make this fail. */
#define MAY(state) (1u << (state))
int state_after(const uint16_t follows[], int from, int to);

/* As a row of numbers, in the order of the struct: in SETUP and in checkpoints. */
enum { LEDGER_NUMBERS = 3 };
void ledger_numbers(const struct ledger *, int64_t ret[LEDGER_NUMBERS]);
struct ledger ledger_of(const int64_t numbers[LEDGER_NUMBERS]);

/* To and from the body of LEDGER, SAVE and SNAPSHOT, in the byte order of the wire. */
void ledger_pack(const struct ledger *, int count, uint64_t ret_numbers[]);
/* false: not `count` ledgers */
bool ledger_unpack(const struct message *, int count, struct ledger ret[]);

struct role { /* first member of every role's struct */
    const struct role_ops *ops;
};

#endif
