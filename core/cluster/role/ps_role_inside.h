/* ps_role_inside.h - the inside of the ps role: its state, and what its files do for each other.
 *
 * ps_role.c: life and messages; ps_rounds.c: gradients and values; ps_ahead.c: before they are
 * whole; ps_pool.c: windows that workers share; ps_snapshot.c: snapshots; ps_resize.c: resizes;
 * ps_turns.c: in which order they came, again; ps_cover.c: which rows are in the values; ps_lead.c:
 * who leads; ps_wait.c: who is waited for, and how long; ps_states.c: which state follows which,
 * which go together, and how they are told to people.
 */
#ifndef CORE_CLUSTER_ROLE_PS_ROLE_INSIDE_H
#define CORE_CLUSTER_ROLE_PS_ROLE_INSIDE_H

#include "core/base/overlap.h"
#include "core/cluster/role/parts.h"
#include "core/cluster/role/ps_role.h"
#include "core/cluster/role/batch_queue.h"

enum ps_phase { EMPTY, READY, SERVING, ENDED };

/* Of a worker's link. */
enum presence {
    NOT_YET,
    AWAY,
    HERE,
    HAS_WINDOWS, /* HERE, and shared over this link */
};

/* What rounds, cuts and the end of the job make of a worker. */
enum standing {
    COUNTED_ON,
    FINISHED, /* brings nothing more, unless it is given another ticket */
    EVICTED,  /* gone for too long: they go on without it */
};

/* What became of the last push. */
enum push_fate {
    PUSH_TAKEN, /* it is in the values; or there was none */
    PUSH_WAITS, /* for the others of its round */
    PUSH_DROPPED,
};

/* What a window of the pool is to a worker. */
enum window_use {
    WINDOW_NONE,
    WINDOW_COMES, /* a message with a stretch of it is being read, or will be */
    WINDOW_HELD,  /* what has come waits: for the rest, or for the round */
};

/* What has come of the next push before it; on the link that is. */
struct ahead {
    uint64_t push, step; /* of that push: its number */
    uint64_t parts;
    uint64_t sound; /* of them: all numbers are finite */
    uint32_t gradients;
};

/* One life of a worker's task, from its first greeting on, over all its links. */
struct member_life {
    uint64_t incarnation;
    bool has_pushed;
    bool has_spoken; /* anything behind its greeting */
    bool has_left;   /* it has signed off: nobody waits for it until there is a new link */
    bool
        kept_snapshot; /* this ps has hung up on it for that, and nothing of it was applied since */
    /* Not here: why it has ended and would again, however often it is started; "": it may come. */
    char why_absent[ABSENCE_TEXT_MAX];
};

/* Of leading. */
struct member_lead {
    /* As it has said on the link that is: */
    bool claims; /* to lead, with the highest term */
    bool can_lead;
    struct message late_term; /* LEADS that is not believed yet; of no type: none */
    /* Of whoever has this index. Terms that it named were outbid for the chief before them: so
     * often, and until when a later one of it waits. */
    bool has_named; /* a term since there is a chief that lasted */
    unsigned outbid;
    uint64_t unbelieved_ms;
};

/* Its last push. */
struct member_push {
    enum push_fate fate;
    uint64_t step;        /* PUSH_WAITS: the round that it is for, this one or a later one */
    uint32_t gradients;   /* in it */
    struct ledger before; /* PUSH_WAITS: the ledger without it */
    bool is_folded;       /* PUSH_WAITS: it is in the sum */
    bool is_in_advance;   /* its gradient is in what has advanced */
};

struct member_ticket {
    bool is_held;
    uint64_t step;       /* is_held: of the values that it came with */
    bool is_told;        /* is_held: what became of its gradient, by this link */
    bool has_returned;   /* the last one, unused: it had no batch */
    bool completes_push; /* the next one is for a push that another ps has */
};

/* A window of the pool. */
struct member_window {
    enum window_use use;
    uint64_t turn; /* it waits for one, behind lower numbers; 0: it does not */
    uint64_t step; /* of the values that it wants to push to */
};

/* Of asynchronous training (ps_turns.c) */
struct member_turn {
    bool is_open;    /* it was answered, and its push has not come, or not in its turn */
    uint64_t values; /* is_open: updates in what it was answered with */
    /* Where turns are given: */
    int64_t next;                   /* none before this one is the worker's next */
    bool has_rows;                  /* of that one */
    struct message late_push;       /* that waits for its turn; of no type: none */
    char what[ACTION_TEXT_MAX / 2]; /* its body */
};

/* A worker as this ps knows it. What names a life ends with the life; the rest is of the stream and
 * ends with the generation. */
struct member {
    enum presence presence;
    bool wants_fresh; /* of the windows, which outlive a link: those that are there are another
                         life's */
    uint64_t lost_ms; /* AWAY: since when */
    bool knows_end;   /* ENDED: it has said the verdict, or answered it */
    struct member_life life;
    struct member_lead lead;

    enum standing standing;
    struct member_push push;
    /* Each may be so in any standing, and over the loss of a link: */
    struct {
        bool values;
        uint64_t step; /* of this step or a later one */
    } wants;
    struct member_ticket ticket;
    bool makes_good; /* others wait for what its last life showed to some ps only */

    struct ledger ledger;
    uint64_t joins;   /* since its last push came */
    bool has_renewed; /* the wait for this step (ps_renew_wait) */

    bool reads; /* of a ps that follows another one: its values are wanted, on the link that is */
    struct ahead ahead;
    uint64_t given; /* parts of the next VALUES that have gone ahead of it, on the link that is */
    struct member_window window;

    struct member_turn turn;
    struct message late_join; /* that must wait for the end of a snapshot; of no type: none */
    uint64_t numbers[LEDGER_NUMBERS]; /* of its last LEDGER, in the byte order of the wire */
};

/* ps/0: what was asked of the chief. */
struct scaling {
    bool is_asked;
    uint64_t generation, term; /* in which */
};

enum snapshot_phase { SNAPSHOT_NONE, SNAPSHOT_COMING, SNAPSHOT_MADE };

struct snapshot {
    enum snapshot_phase phase;
    uint64_t tag;
    uint64_t since_ms;      /* COMING: since when */
    uint64_t step;          /* COMING, not ps/0: where to snapshot */
    uint64_t since;         /* of what changed since the one of that tag; 0: of all */
    struct ledger *target;  /* [workers]; not ps/0: what must be here */
    struct ledger *as_of;   /* [workers]: the ledger at the snapshot */
    struct coverage covers; /* ps/0: as of the snapshot */
    int64_t *queue;         /* [queue_count], of queue_capacity; likewise */
    int queue_count, queue_capacity;
    uint64_t *numbers; /* of the message with it */
    int shard, shards;
    bool is_kept;     /* ps/0: all have made it, and workers stay held (RESUME_STAY) */
    bool is_holding;  /* ps/0: somebody waits for the end of the snapshot */
    uint64_t writing; /* tag of the shard that is being written; 0: none */
    uint64_t written; /* ps/0: tag of one whose SAVED waits for RESUME; 0: none */
    uint32_t written_code;
    char written_text[ACTION_TEXT_MAX];
};

enum { COVERED_WAITING_MAX = 64 };

/* ps/0: epochs that are over, and of which a chief that computes is told later */
struct waiting_coverage {
    struct covered at[COVERED_WAITING_MAX];
    int count;
};

/* The gradients of the current step. */
struct round {
    uint32_t gradients; /* that have come, here */
    int *applying;      /* workers of the updates of this call, one after the other */
    int applying_count;
    struct overlap_rounds facts;
    unsigned overlap;  /* the plan of rounds, by these facts */
    uint64_t advanced; /* parts that have the values of this round already */
    uint32_t advanced_gradients;
    int fold_next; /* the sum has passed the workers before this one */
};

/* Windows that workers share (ps_pool.c), which outlive a generation. */
struct window_pool {
    int count, used; /* count 0: there is none */
    uint64_t turns;  /* given out */
};

/* ENDED: how. */
struct ps_verdict {
    int from; /* the worker that said so; NOBODY: this ps itself */
    int code;
    char text[ACTION_TEXT_MAX];
    struct membership resizes_to; /* it has ended by a resize; of no tasks: otherwise */
    uint64_t resizes_at;          /* the step of the checkpoint */
};

/* ps/0: which rows are in the values, and which come next (ps_cover.c) */
struct data_progress {
    struct coverage coverage; /* of what is applied */
    struct waiting_coverage waiting;
    struct batch_queue queue; /* of no workers: rows are shared otherwise */
    uint64_t share_end;       /* asynchronous, needs_everybody: batches of all shares */
};

/* Who leads (ps_lead.c) */
struct leadership {
    uint64_t term;     /* the highest that was heard of */
    uint64_t term_ms;  /* since when */
    int lasting;       /* the last chief that was obeyed for a while */
    uint64_t lease_ms; /* ps/0: until when its chief need not be heard */
    uint64_t gone;     /* ps/0: ps that this generation is done without, bit by bit */
};

/* No steps but those that are being computed. */
struct stopping {
    bool is_on;
    uint64_t since_ms;
    int code; /* with what the job is to end */
    char text[ACTION_TEXT_MAX];
};

/* A signal has asked this task to end the job. */
struct leaving {
    int code; /* 0: none has */
    uint64_t since_ms;
    char text[ACTION_TEXT_MAX];
};

struct ps_role {
    struct role role;
    struct ps_options options;
    struct ps_config config;   /* generation 0: never set up */
    struct parts block, moved; /* moved: of gradients */
    enum ps_phase phase;
    int arrays; /* READY: that have come */
    bool was_set_up;
    bool goes_on; /* when this ps came somebody took part in a generation already */
    struct member *members;
    uint64_t step;    /* sync: rounds applied; async: updates applied */
    uint64_t tickets; /* async, ps/0: given out, those before this generation too */
    struct round round;
    struct window_pool pool;
    struct data_progress data;
    struct snapshot snapshot;
    struct leadership lead;
    struct {
        int64_t next; /* of those that are given: none before this one is next */
    } turns;
    struct patience patience;
    struct scaling scaling;
    struct stopping stopping;
    struct leaving leaving;
    struct ps_verdict verdict;
    struct ps_counters counters;
    char name[TASK_NAME_MAX];
};

/* ps_states.c: the only places where these change, each to what may follow. */
void ps_set_phase(struct ps_role *, enum ps_phase);
void ps_set_snapshot(struct ps_role *, enum snapshot_phase);
void member_set_presence(struct member *, enum presence);
void member_set_standing(struct member *, enum standing);
void member_set_push(struct member *, enum push_fate);
bool member_is_here(const struct member *);
void ps_report(const struct role *, struct outbox *);
void ps_state(const struct role *, char ret[ACTION_TEXT_MAX]);

/* In the outbox: what it says more is added to it. */
struct message *ps_send(struct ps_role *, int worker, enum message_type, struct outbox *);
/* What concerns the job as a whole. */
int ps_chief(const struct ps_role *);
bool ps_chief_is_here(const struct ps_role *);
struct message *ps_tell_chief(struct ps_role *, enum message_type, struct outbox *);
void ps_ask_chief_to_stop(struct ps_role *, struct outbox *);
void ps_forget_link(struct ps_role *, int worker, struct outbox *);
void ps_end(struct ps_role *, int code, const char *text, int from, struct outbox *);

void ps_share(struct ps_role *, int worker, struct outbox *);
void ps_join(struct ps_role *, int worker, const struct message *, struct outbox *);
void ps_push(struct ps_role *, int worker, const struct message *, struct outbox *);
void ps_finished(struct ps_role *, int worker, uint32_t code, struct outbox *);
void ps_answer_waiting(struct ps_role *, struct outbox *);
void ps_apply_ready_rounds(struct ps_role *, struct outbox *);
bool ps_all_finished(const struct ps_role *);
void ps_return_ticket(struct ps_role *, int worker);
void ps_stop_tickets(struct ps_role *, struct outbox *);

bool ps_gives_values(const struct ps_role *, int worker);  /* not only says how far it is */
bool ps_is_in_round(const struct ps_role *, int worker);   /* with a push that is whole */
bool ps_is_past_round(const struct ps_role *, int worker); /* it will bring nothing more for it */

void ps_part(struct ps_role *, int worker, const struct message *, struct outbox *);
void ps_plan_overlap(struct ps_role *);             /* with this generation's config */
void ps_advance(struct ps_role *, struct outbox *); /* after anything that may let it */
void ps_take_back(struct ps_role *, struct outbox *);
struct message *ps_send_ahead(struct ps_role *, int worker, struct outbox *);
void ps_send_parts(struct ps_role *, int worker, uint64_t parts, struct outbox *); /* of values */
/* What came ahead of the worker's push, or went ahead to it, counts no more. */
void ps_forget_ahead(struct ps_role *, int worker, struct outbox *);
/* Before the APPLY of these: what has advanced stays, if it is of them. */
void ps_keep_advance(struct ps_role *, int *workers, int count, struct outbox *);

/* ps_pool.c */
void ps_pool_heard(struct ps_role *, int worker,
                   const struct message *);         /* when it is dealt with */
void ps_pool_release(struct ps_role *, int worker); /* what it holds, not what comes just now */
void ps_pool_forget_link(struct ps_role *, int worker);
void ps_pool_forget(struct ps_role *);
/* It waits for a window with a push of a later round than this one. */
bool ps_brings_later(const struct ps_role *, const struct member *);
void ps_fold(struct ps_role *, struct outbox *); /* after anything that may let it */
void ps_begin_sum(struct ps_role *);             /* of another round */
/* So that a push of this worker, which is in the sum, comes again. false: that cannot be. */
bool ps_unfold(struct ps_role *, int worker, struct outbox *);

/* ps_turns.c. push: NULL: it has not come */
void ps_note_turn(struct ps_role *, enum turn_kind, int worker, const struct message *push,
                  struct outbox *);
void ps_note_turns_end(struct ps_role *, int code, const char *text, int from, struct outbox *);
void ps_open_turn(struct ps_role *, int worker); /* it is answered */
bool ps_has_turns(const struct ps_role *);       /* they are given */
/* Where they are: */
uint64_t ps_turns_last_step(const struct ps_role *); /* of a generation that begins */
bool ps_has_turn(struct ps_role *, int worker);      /* there is one more for it */
bool ps_turns_are_left(struct ps_role *);
/* Of that one, and of the one behind it: 1 + which batch, or 0 */
void ps_turn_batches(struct ps_role *, int worker, uint64_t ret[2]);
bool ps_turn_is_answered_now(struct ps_role *, int worker); /* also where none are given */
/* This push waits for its turn, and is kept; false: it is the one. */
bool ps_turn_defers(struct ps_role *, int worker, const struct message *push);
void ps_turn_joins(struct ps_role *, int worker);      /* it is answered anew */
void ps_take_turns(struct ps_role *, struct outbox *); /* after anything that may let some come */

void ps_tell_waiting_coverage(struct ps_role *, struct outbox *); /* when the chief listens */
void ps_cover(struct ps_role *, int worker, struct outbox *);     /* its last push is applied */
/* A push of this worker has come, for which it had a ticket. */
void ps_take_batch(struct ps_role *, int worker, bool is_dropped);
uint64_t ps_next_batch(const struct ps_role *,
                       int worker); /* 1 + the one before that; 0: none is */
/* A ticket for the next one is out, or has come back. */
void ps_commit_batch(struct ps_role *, int worker, bool is_out);
void ps_note_data_end(struct ps_role *, uint64_t version); /* of FINISHED */
bool ps_has_batches(const struct ps_role *);               /* of data that have ended */
void ps_leave_batches(struct ps_role *, int worker);       /* it is evicted */
/* A push that it shows to this ps late comes again of the same batch, also where that was given to
 * another one meanwhile. */
void ps_reclaim_batch(struct ps_role *, int worker);
/* Before it gets one: the batch that it is for, and some of the next ones, are planned, and it is
 * told. false: there is none. */
bool ps_plan(struct ps_role *, int worker, struct outbox *);
/* Asynchronous: its share of the steps has one more, or there are no shares. */
bool ps_is_in_share(const struct ps_role *, int worker);
void ps_say_plan(struct ps_role *, int worker, struct outbox *);
void ps_note_queue(struct ps_role *);                                 /* for a snapshot */
void ps_tell_coverage(struct ps_role *, struct outbox *);             /* so far: the job ends */
void ps_tell_coverage_at_snapshot(struct ps_role *, struct outbox *); /* of data without end */

void ps_save(struct ps_role *, const struct message *, struct outbox *);
void ps_refuse_save(struct ps_role *, int worker, uint64_t tag, const char *why, struct outbox *);
void ps_try_snapshot(struct ps_role *, struct outbox *); /* after anything that may complete it */
/* Asynchronous: its push, which is to come before the snapshot. */
bool ps_snapshot_awaits(const struct ps_role *, int worker);
void ps_resume(struct ps_role *, struct outbox *);
void ps_stay(struct ps_role *, struct outbox *); /* RESUME_STAY */
void ps_snapshot_written(struct ps_role *, err, const char *text, struct outbox *);
bool ps_is_holding(const struct ps_role *, int worker); /* it is not answered */
void ps_note_held(struct ps_role *, struct outbox *);
void ps_snapshot_reset(struct ps_role *, struct outbox *);

/* ps_resize.c */
bool ps_has_resized(const struct ps_role *);
void ps_resize(struct ps_role *, const struct membership *, uint64_t step, struct outbox *);
void ps_heard_resize(struct ps_role *, const struct message *,
                     struct outbox *); /* the chief's RESIZE */
void ps_tell_resize(struct ps_role *, int worker, struct outbox *);
void ps_scaled(struct ps_role *, const struct message *, struct outbox *);
void ps_watch_scaling(struct ps_role *, struct outbox *);

void ps_say_state(struct ps_role *, int worker, struct outbox *);

/* ps_lead.c */
void ps_say_term(struct ps_role *, int worker, struct outbox *);
void ps_heard_term(struct ps_role *, int worker, const struct message *, struct outbox *);
void ps_renew_lease(struct ps_role *, uint64_t for_ms);           /* of limits.chief_ms at least */
bool ps_has_other_to_lead(const struct ps_role *);                /* who is here and could */
void ps_hand_over(struct ps_role *, int worker, struct outbox *); /* of a chief that has left */
void ps_watch_lead(struct ps_role *, struct outbox *);

/* ps_wait.c */
void ps_watch(struct ps_role *, struct outbox *);
/* The worker has come, brought something or gone: whoever is missing is waited for anew. Once in a
 * step for each worker, so that a wait ends whoever comes and goes. */
void ps_renew_wait(struct ps_role *, int worker);
void ps_leave(struct ps_role *, int worker, const struct message *, struct outbox *);

#endif
