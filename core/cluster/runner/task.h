/* task.h - runs one role on the real loop: links, greetings, time, and the role's actions.
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
    TASK_LINGER_MS = 400, /* how long the end of a task waits for its last messages to leave, */
    TASK_TELL_MS =
        5000, /* and for who hears a verdict to answer it, back on a new link where it must be */
    TASK_GREET_LIMIT_MS = 10000, /* how long an accepted link may stay silent */
    /* accepted links that have not said who they are; what they have sent so far takes at most
     * TASK_STRANGERS_MAX * TASK_GREETING_BYTES_MAX = 64 MiB */
    TASK_STRANGERS_MAX = 1024,
    TASK_GREETING_BYTES_MAX = 64 << 10,
};

struct task_options {
    const struct cluster_spec *cluster;
    struct loop *loop;
    const struct transport *transport; /* NULL: of those that are offered, the first that works */
    enum parts_choice parts;
    struct wait_limits limits;
    const char *fingerprint; /* of the spec, to a ps as written; NULL on one without */
    const char *listen;      /* NULL: the task's own address in the cluster (listen.h) */
    bool leaves_alone;       /* a worker: SIGTERM is to this task, and not to the job */
    bool is_launched;        /* by one that passes signals on to all */
    /* Optional: it listens, and this is how others reach it; an error ends the task. */
    err (*listens)(void *context, const char *address);
    void *listens_context;
    const char *record;  /* of a ps: where it records its turns (record.h); NULL: nowhere */
    const char *replay;  /* the record that is done once more; NULL: none */
    uint64_t replay_to;  /* a step; 0: to its end */
    struct board *board; /* borrowed: where it puts up what it counts; NULL: one of its own */
};

/* What a worker trains on, as it greets: tasks that share out rows have the same ones. */
struct data_said {
    uint64_t rows, digest; /* digest 0: nothing is said */
    uint64_t spec;         /* fingerprint of the spec without what is measured of them */
};

/* The other end, by index in its job. */
struct peer {
    struct link *link; /* NULL: not there */
    unsigned overlap;  /* of the link (core/base/overlap.h) */
    bool is_up;        /* greeted; the role knows it */
    bool was_up;       /* at any time */
    uint64_t lost_ms;  /* !is_up && was_up: since when */
    uint64_t incarnation;
    uint64_t came_ms; /* was_up: ps: since when this life of it is known; worker: the link */
    char fingerprint[17];
    struct data_said data;
    /* worker: how connecting goes */
    uint64_t retry_ms; /* when to try again */
    uint32_t tries;
    char trouble[ADDRESS_MAX]; /* why it is not there yet */
};

struct task;
struct task_ops { /* what differs between a ps and a worker */
    void (*act)(struct task *, const struct action *);
    void (*flushed)(struct task *); /* optional: everything the role asked for has been done */
    void (*pump)(struct task *);    /* optional: after every look at the links */
    /* optional: before a message of the role leaves */
    void (*sending)(struct task *, int peer, const struct message *);
    err (*send)(struct task *, int peer, const struct message *); /* else link_send */
    void (*save)(struct task *);                                  /* optional: SIGUSR2 */
    void (*report)(const struct task *); /* optional: SIGUSR1, what the role does not know */
    /* What it counts is completed as of now, and told; true: it takes part in steps (counting.h) */
    bool (*count)(struct task *, struct counters *);
    void (*tell)(struct task *, const struct task_status *);
    void (*tick)(struct task *, uint64_t now_ms);
    void (*hang_up)(struct task *); /* close all links: the task has left the job */
    void (*tick_end)(struct task *, uint64_t now_ms); /* optional: likewise, once it has_ended */
    /* optional: has_ended: the peer has not answered that */
    bool (*awaits)(const struct task *, int peer);
};

/* What keeps lines about peers few. */
struct task_lines {
    struct log_limit breaches;  /* what peers may not say */
    struct log_limit replanned; /* plans of links that change */
    struct log_limit requests;  /* of visitors: each may ask again and again */
    struct log_budget others;   /* whatever else roles tell of them */
};

/* Of a task that has_ended: who ends with it. */
enum task_company {
    ENDS_WITH_ALL,  /* all are told the verdict */
    ENDS_ALONE,     /* the job continues: nobody is told */
    ENDS_AFTER_ALL, /* the others ended before, and are gone */
};

struct task_counting {
    struct counters counters; /* those that are added to as things happen */
    struct board *board, *own_board;
    uint64_t counted_ms, room_ms; /* room_ms: of what control groups allow; 0: not yet */
    double throttled_before_s;    /* when the task began */
    bool is_on;
    uint64_t absent_ms; /* when data that a step needs did not come; 0: they have come since */
    uint64_t peers_ms;  /* when a peer came or went; 0: none has come */
};

struct task {
    const struct task_ops *ops;
    struct task_options options;
    struct role *role;
    enum job job, peer_job;
    int index, peer_count;
    struct peer *peers;
    struct outbox outbox;
    enum number wire, wire_values; /* what gradients travel as, and values */
    struct data_said data;         /* of a worker that reads for itself; before it greets */
    uint64_t incarnation, started_ms, ticked_ms, ended_ms;
    struct task_lines lines;
    struct task_counting counting;
    bool has_ended, has_left;
    enum task_company ends_with;
    struct membership resizes_to; /* has_ended: by a resize; of no tasks: otherwise */
    int code;
    char text[ACTION_TEXT_MAX]; /* of the verdict; "" when all is well */
};

/* The tasks of the job are in this process. */
bool task_is_inside(const struct task_options *);
/* What connections begin over. */
const struct transport *task_first_transport(const struct task_options *);
/* Whether they may go on over this one, where it is offered. */
bool task_takes(const struct task_options *, const struct transport *);

/* The pause before the next attempt at what failed so many times: a connection, an address. */
uint64_t task_retry_ms(uint32_t tries);

err task_open(struct task *, const struct task_options *, const struct task_ops *, struct role *);
void task_close(struct task *);

/* Carries out what the role asked for, until it asks for nothing more. */
void task_flush(struct task *);
/* In the middle of an action: carries out those that the role has asked for since there were
 * `before` of them, which ask for nothing themselves. */
void task_flush_since(struct task *, int before);

/* First of all in a process that will run tasks or start them: SIGINT counts here though a shell
 * that starts a job in the background has it ignored. What asks the process to end meanwhile is
 * kept until tasks_prepare or tasks_are_started_here, also where the program starts anew in
 * between. */
void tasks_hold_signals(void);
/* Before tasks are opened, which may wait for others or read data for long: a signal ends the
 * process at once, also where it is process 1, which the system's own way would spare. */
void tasks_prepare(void);
/* The same for a process that starts tasks as others, and watches signals in its own way. */
void tasks_are_started_here(void);
/* In a new process that becomes a task: these signals end it from its first moment on. */
void tasks_reset_signals(void);
/* What is done as well in a signal's handler where a signal ends the process at once: in a thread
 * that does nothing else, and for a second at most. At most TASK_LAST_ACTS_MAX. */
typedef void task_last_act(int signo);
enum { TASK_LAST_ACTS_MAX = 3 };
void tasks_end_by(task_last_act *);

/* Runs until every task has ended; SIGTERM, SIGINT and SIGHUP (unless it is ignored from the start)
 * ask the roles to end the job well, or a worker to leave it; a second one ends the process.
 * SIGUSR1: each says what it does and waits for; SIGUSR2 to the chief: a checkpoint. */
err tasks_run(struct task *const tasks[], int count);
/* Afterwards: a signal ends the process at once again. */
void tasks_end_at_once(void);
/* One has come that the roles have not been told of: whoever keeps the loop from that gives up. */
bool task_signal_waits(void);

/* For a task with a loop of its own: whether SIGUSR1 has come since it was last asked; none is
 * heard of before task_watch_report. */
void task_watch_report(void);
bool task_report_is_wanted(void);
void task_report_memory(const char *what); /* "ps, 10.3 MiB resident" */

/* Of the link that is: its plan, from these facts and what is known of it here. */
void task_plan_overlap(struct task *, int peer, struct overlap_link facts);
/* Whether the plan of some link has one of these bits. */
bool task_overlaps(const struct task *, unsigned bits);

/* Of a message with gradients or values, and of no other: from its range of the block to the bytes
 * that travel, and back. */
void task_set_stretch(const struct task *, struct message *);
void task_set_range(const struct task *, struct message *);

/* The role is told, and its answers carried out. */
void task_peer_up(struct task *, int peer);
void task_peer_lost(struct task *, int peer, const char *why);
void task_forget_peer(struct task *, int peer); /* as the role has */
void task_message(struct task *, int peer, const struct message *);
void task_done(struct task *, enum action_type, err result);
/* A peer is of a later membership: this task is to go on in it, or to end. */
void task_resize(struct task *, const struct membership *);
bool task_has_resized(const struct task *);
void task_end(struct task *, err why); /* an error of this task itself; error_text() says more */
/* The others have ended so, and are gone. */
void task_end_as_they(struct task *, int code, const char *text);
/* The job is no business of a task that does not belong to it, or any more: no verdict for the
 * others. OK: it was done. */
void task_end_alone(struct task *, err why);

#endif
