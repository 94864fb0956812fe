/* task.h - runs a role on the real loop: links, greetings, time, and the role's actions.
 *
 * What a ps and a worker have in common is here; what they do with memory is in runner_ps.c and
 * runner_worker.c. Several tasks may share one loop: a single process is a ps and a worker with
 * inproc links.
 */
#ifndef CORE_CLUSTER_RUNNER_TASK_H
#define CORE_CLUSTER_RUNNER_TASK_H

#include "core/base/counters.h"
#include "core/base/log.h"
#include "core/base/overlap.h"
#include "core/cluster/description/cluster_spec.h"
#include "core/cluster/role/limits.h"
#include "core/cluster/role/role.h"
#include "kernels/kernels.h"
#include "net/loop.h"
#include "net/transport.h"

enum {
    TASK_TICK_MS = 100,
    TASK_LINGER_MS = 400, /* how long a task that ends waits for its last messages to leave, */
    TASK_TELL_MS =
        5000, /* and for peers to acknowledge the verdict, over new links where these are needed */
    TASK_GREET_LIMIT_MS = 10000, /* how long an accepted link may stay silent */
    /* accepted links that have not greeted yet; what they have sent so far takes at most
     * TASK_STRANGERS_MAX * TASK_GREETING_BYTES_MAX = 64 MiB */
    TASK_STRANGERS_MAX = 1024,
    TASK_GREETING_BYTES_MAX = 64 << 10,
};

struct task_options {
    const struct cluster_spec *cluster;
    struct loop *loop;
    const struct transport *transport; /* NULL: the first offered one that works */
    enum parts_choice parts;
    struct wait_limits limits;
    const char *fingerprint; /* of the spec, to a ps as written; NULL: a ps without a spec */
    const char *listen;      /* NULL: the task's own address in the cluster (listen.h) */
    bool leaves_alone;       /* a worker: SIGTERM ends this task, and not the job */
    bool is_launched;        /* by a launcher that passes signals on to all tasks */
    /* Optional: called when it listens, with the address for others; an error ends the task. */
    err (*listens)(void *context, const char *address);
    void *listens_context;
    const char *record;  /* a ps: the file where it records its turns (record.h); NULL: none */
    const char *replay;  /* the record to replay; NULL: none */
    uint64_t replay_to;  /* the step to replay to; 0: its end */
    struct board *board; /* borrowed: where it shows its counters; NULL: one of its own */
};

/* Identifies the training data in greetings: workers that share rows must have the same. */
struct data_said {
    uint64_t rows, digest; /* digest 0: not sent */
    uint64_t spec;         /* fingerprint of the spec without what is measured of the data */
};

/* A peer, by index in its job. */
struct peer {
    struct link *link; /* NULL: not connected */
    unsigned overlap;  /* of the link (core/base/overlap.h) */
    bool is_up;        /* greeted; the role knows it */
    bool was_up;       /* at any time before */
    uint64_t lost_ms;  /* !is_up && was_up: when it was lost */
    uint64_t incarnation;
    uint64_t came_ms; /* was_up: in a ps: when this life of the worker came; in a worker: when the
                         link came */
    char fingerprint[17];
    struct data_said data;
    /* worker: how connecting goes */
    uint64_t retry_ms; /* when to try again */
    uint32_t tries;
    char trouble[ADDRESS_MAX]; /* why it is not connected yet */
};

struct task;
struct task_ops { /* what differs between a ps and a worker */
    void (*act)(struct task *, const struct action *);
    void (*flushed)(struct task *); /* optional: all the role's actions have been carried out */
    void (*pump)(struct task *);    /* optional: after every loop_poll */
    /* optional: before a message of the role leaves */
    void (*sending)(struct task *, int peer, const struct message *);
    err (*send)(struct task *, int peer, const struct message *); /* else link_send */
    void (*save)(struct task *);                                  /* optional: SIGUSR2 */
    void (*report)(const struct task *); /* optional: SIGUSR1, logs what the role does not know */
    /* Updates the counters, and reports the status (counting.h). count: true: it takes part in
     * steps */
    bool (*count)(struct task *, struct counters *);
    void (*tell)(struct task *, const struct task_status *);
    void (*tick)(struct task *, uint64_t now_ms);
    void (*hang_up)(struct task *); /* close all links: the task has left the job */
    void (*tick_end)(struct task *, uint64_t now_ms); /* optional: in place of tick, once it
                                                         has_ended */
    /* optional: has_ended: the peer has not acknowledged the verdict yet */
    bool (*awaits)(const struct task *, int peer);
};

/* Limits on log lines about peers. */
struct task_lines {
    struct log_limit breaches;  /* violations of the protocol */
    struct log_limit replanned; /* overlap plans of links that change */
    struct log_limit requests;  /* of visitors, which may ask any number of times */
    struct log_budget others;   /* other lines of roles about peers */
};

/* Of a task that has_ended: which others end, too. */
enum task_company {
    ENDS_WITH_ALL,  /* all are sent the verdict */
    ENDS_ALONE,     /* the job continues: no verdict is sent */
    ENDS_AFTER_ALL, /* the others have ended before, and are gone */
};

struct task_counting {
    struct counters counters; /* those that are incremented by events */
    struct board *board, *own_board;
    uint64_t counted_ms, room_ms; /* room_ms: last read of the limits of control groups; 0: never */
    double throttled_before_s;    /* when the task began */
    bool is_on;
    uint64_t absent_ms; /* when data that a step needs were missing; 0: they have come since */
    uint64_t peers_ms;  /* when a peer last came or went; 0: none has come */
};

struct task {
    const struct task_ops *ops;
    struct task_options options;
    struct role *role;
    enum job job, peer_job;
    int index, peer_count;
    struct peer *peers;
    struct outbox outbox;
    enum number wire, wire_values; /* number formats in which gradients and values are sent */
    struct data_said data;         /* of a worker that reads its own data; set before it greets */
    uint64_t incarnation, started_ms, ticked_ms, ended_ms;
    struct task_lines lines;
    struct task_counting counting;
    bool has_ended, has_left;
    enum task_company ends_with;
    struct membership resizes_to; /* has_ended by a resize; counts 0: for another reason */
    int code;
    char text[ACTION_TEXT_MAX]; /* of the verdict; "" when all is well */
};

/* Whether all tasks of the job are in this process. */
bool task_is_inside(const struct task_options *);
/* The transport over which connections begin. */
const struct transport *task_first_transport(const struct task_options *);
/* Whether they may move to this one, if the peer offers it. */
bool task_takes(const struct task_options *, const struct transport *);

/* The pause before retrying a connection or an address, after `tries` failures. */
uint64_t task_retry_ms(uint32_t tries);

err task_open(struct task *, const struct task_options *, const struct task_ops *, struct role *);
void task_close(struct task *);

/* Carries out the role's actions until there are no more. */
void task_flush(struct task *);
/* Within an action: carries out the actions from index `before` on, which must not add further
 * ones. */
void task_flush_since(struct task *, int before);

/* First of all in a process that will run or start tasks. SIGINT is handled even if a shell that
 * started it in the background has it ignored. Signals that end the process are held until
 * tasks_prepare or tasks_are_started_here, also across exec. */
void tasks_hold_signals(void);
/* Before tasks are opened, which may wait for others or read data for long: from now on a signal
 * ends the process at once, also as process 1, for which Linux ignores default actions. */
void tasks_prepare(void);
/* The same for a process that starts tasks as child processes, and handles signals in its own way.
 */
void tasks_are_started_here(void);
/* In a new child process that becomes a task: restores these signals' default actions. */
void tasks_reset_signals(void);
/* Registers what is also done when a signal ends the process at once: in a thread that does nothing
 * else, for a second at most. At most TASK_LAST_ACTS_MAX. */
typedef void task_last_act(int signo);
enum { TASK_LAST_ACTS_MAX = 3 };
void tasks_end_by(task_last_act *);

/* Runs until every task has ended; SIGTERM, SIGINT and SIGHUP (unless ignored from the start) ask
 * the roles to end the job in order, or a worker to leave it; a second one ends the process.
 * SIGUSR1: each logs what it does and waits for; SIGUSR2 to the chief: a checkpoint. */
err tasks_run(struct task *const tasks[], int count);
/* Afterwards: a signal ends the process at once again. */
void tasks_end_at_once(void);
/* A signal has come that the roles have not been told of: code that blocks the loop must return. */
bool task_signal_waits(void);

/* For code with a loop of its own: whether SIGUSR1 has come since the last call; only after
 * task_watch_report. */
void task_watch_report(void);
bool task_report_is_wanted(void);
void task_report_memory(const char *what); /* "ps, 10.3 MiB resident" */

/* Sets the plan of the current link, from these facts and what is known of it here. */
void task_plan_overlap(struct task *, int peer, struct overlap_link facts);
/* Whether the plan of any link has one of these bits. */
bool task_overlaps(const struct task *, unsigned bits);

/* For messages with gradients or values, others are unchanged: convert the range of the block to
 * the stretch of bytes that is sent, and back. */
void task_set_stretch(const struct task *, struct message *);
void task_set_range(const struct task *, struct message *);

/* Pass an event to the role, and carry out its actions. */
void task_peer_up(struct task *, int peer);
void task_peer_lost(struct task *, int peer, const char *why);
void task_forget_peer(struct task *, int peer); /* which the role has forgotten */
void task_message(struct task *, int peer, const struct message *);
void task_done(struct task *, enum action_type, err result);
/* A peer has a later membership: this task is to continue in it, or to end. */
void task_resize(struct task *, const struct membership *);
bool task_has_resized(const struct task *);
void task_end(struct task *, err why); /* an error of this task itself; error_text() says more */
/* Ends as the others did, which are gone. */
void task_end_as_they(struct task *, int code, const char *text);
/* Ends a task that does not belong to the job, or no more, without a verdict for the others. OK:
 * its work was done. */
void task_end_alone(struct task *, err why);

#endif
