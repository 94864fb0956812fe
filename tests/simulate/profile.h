/* profile.h - what a seed draws before its run: the cluster, its limits, its world, its faults. */
#ifndef TESTS_SIMULATE_PROFILE_H
#define TESTS_SIMULATE_PROFILE_H

#include "core/cluster/role/ps_role.h"
#include "tests/simulate/model.h"

enum { ACTORS_MAX = PS_MAX + WORKERS_MAX, FAULTS_MAX = 32, REPLICAS_EACH_MAX = 3 };

/* What happens in the run, which determines how it must end */
enum story {
    STORY_CALM,        /* nothing goes wrong: code 0 */
    STORY_DISTURBED,   /* everybody comes back in time: code 0 */
    STORY_SLOW_RETURN, /* a worker comes back after it was evicted: code 0 */
    STORY_WORKER_GONE, /* a worker never comes back: code 0 */
    STORY_TOO_FEW,     /* so many that the job cannot continue: a retryable code */
    STORY_PS_GONE,     /* the same for a ps that never comes back */
    STORY_CHIEF_GONE,
    STORY_LEAVE,  /* a signal ends the job regularly */
    STORY_FINISH, /* a hook ends it regularly */
    STORY_HARSH,  /* beyond every limit: all tasks end, and nothing is counted wrongly */
    STORIES
};
const char *story_name(enum story);

enum fault_kind {
    FAULT_KILL,       /* kill -9 of `actor`; it is started again after duration_us (0: never) */
    FAULT_CUT,        /* the link of (actor, peer): all that is under way is lost */
    FAULT_RESET,      /* the same, but the peer gets what the actor sent before, or a part of it */
    FAULT_UNPLUG,     /* all links of actor, and none can be made for duration_us */
    FAULT_SEVER,      /* the link of (actor, peer), and none can be made for duration_us */
    FAULT_STALL,      /* the link of (actor, peer) delivers nothing for duration_us */
    FAULT_STANDSTILL, /* all that live do nothing for duration_us */
    FAULT_FREEZE,     /* actor does nothing for duration_us: its clock jumps */
    FAULT_DISK,       /* every write fails for duration_us */
    FAULT_SCALE,      /* ps/0 is asked for one worker more */
    FAULT_LEAVE,      /* actor gets a signal */
    FAULT_DEPART, /* a worker gets one that is meant for it alone; like KILL, it may come again */
    FAULT_FINISH, /* a hook of the chief ends the job */
};

struct fault {
    enum fault_kind kind;
    int deliveries;    /* it happens when so many messages have been delivered */
    int saves;         /* not 0: or so many SAVE */
    uint64_t after_us; /* and so much later */
    int actor, peer;
    int after_actions; /* KILL: so many actions of the actor later */
    uint64_t duration_us;
};

struct profile {
    enum story story;
    int ps_count, workers;
    int homes; /* of the ps, those that follow nobody; 0: all */
    bool has_variables[PS_MAX];
    uint32_t gradients_per_push[WORKERS_MAX];
    bool drops_gradients, saves, shares_memory;
    bool sees_folder[PS_MAX]; /* else its shards travel to the chief, and arrays from there */
    bool replaces_links; /* a ps takes a new life of a worker for the old one's end; else it refuses
                            the new one until it has noticed */
    int arrays_restored; /* values and slots */
    struct ps_config config; /* what the chief describes; generation and step are the run's */
    struct wait_limits limits;
    uint64_t save_interval_us; /* 0: only at the end */
    bool has_parts;            /* pushes come in parts as well */
    bool has_rows;             /* ROWS comes before each push, and with values or when asked for */
    bool advances;             /* and a ps makes use of them, most of the time */
    int starved_percent; /* of steps: what was to follow the values does not come, or its batch */
    uint64_t data_end;   /* batches that come while they are handed out; 0: there are always more */
    int feed_ahead;      /* batches that the chief, who reads for all, sends ahead; 0: each reads */
    int windows;         /* for gradients, of each ps; 0: one for each worker */
    int frozen;          /* pieces at the end of each block of which there are no gradients */
    bool saves_changes;  /* two of three times what has changed, not all */
    bool loses_verdict;
    int loses_verdict_of; /* the worker */
    bool loses_word;
    int loses_word_to;  /* the ps */
    bool hears_at_work; /* a worker hears what happens while it computes, publishes, evaluates */
    /* upper bounds of what is drawn each time; of delays and of work 0: at once */
    uint64_t delay_us, compute_us, notice_us, write_us, read_us, start_us;
    struct fault faults[FAULTS_MAX];
    int fault_count;
};

uint64_t profile_last_step(const struct profile *); /* unless data end before it */
void profile_draw(uint64_t seed, struct profile *ret);
int64_t profile_moved_floats(const struct profile *); /* of a block */
void profile_describe(const struct profile *, char *ret_text, size_t size);

/* Actors are numbered ps first; a worker's number begins at PS_MAX. */
static inline int actor_of(enum job job, int index)
{
    return job == JOB_PS ? index : PS_MAX + index;
}

#endif
