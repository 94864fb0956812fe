/* worker_inside.h - the inside of the worker role: its state, and what its files do for each
 * other.
 *
 * worker.c: life and messages; worker_steps.c: steps; worker_recover.c: the chief
 * brings the ps to serve; worker_save.c: the chief saves; worker_wait.c: what is waited
 * for.
 */
#ifndef CORE_CLUSTER_ROLE_WORKER_INSIDE_H
#define CORE_CLUSTER_ROLE_WORKER_INSIDE_H

#include "core/cluster/role/worker.h"

enum worker_life {
    HOLDING,    /* not all ps serve the same generation */
    DESCRIBING, /* chief: SETUP is out, ps get ready */
    STARTING,   /* chief: SERVE is out */
    JOINING,    /* JOIN is out */
    ASKING,     /* a gradient is shown to ps/0, which may drop it */
    WAITING,    /* gradients are out, values come */
    COMPUTING,
    FINISHING,   /* no ticket any more */
    SAVING_LAST, /* chief */
    EVALUATING,  /* chief */
    ENDED
};
enum { TASK_TEXT_MAX = 24, NOBODY = -1 };

/* A ps as this worker knows it. */
struct server {
    uint64_t bytes;       /* of its block */
    bool is_up, is_known; /* is_known: it has said its state on this link */
    enum ps_state state;
    uint64_t generation;
    bool needs_join; /* its link is new */

    bool is_ready; /* DESCRIBING */
    bool was_told; /* SERVE went out on this link: it will serve, and say so */

    uint64_t joins;  /* JOINs that were sent: the number of the last one */
    bool has_ledger; /* the answer to that, on this link: only what follows it counts, and only now
                        are there windows for a push */
    bool has_answered;
    bool takes_back;              /* JOINING: what waits there for its round was asked back */
    bool is_target, is_pushed;    /* of the step that is computed; its push is out */
    struct ledger ledger;         /* what it has of this worker */
    uint64_t sequence, push_step; /* of the last push to it in this generation; 0: none */
    uint64_t step, version;       /* of the values that came last */

    bool is_saver, has_cut, has_saved;
    int shard;
};

enum save_phase { SAVE_IDLE, SAVE_FIRST, SAVE_REST, SAVE_PUBLISHING };

struct saving {
    enum save_phase phase;
    uint64_t generation, tag, step, since_ms, count; /* count: saves begun by this task */
    bool is_last;                                    /* of the final values */
    bool is_refused;                                 /* by a ps that could not make its cut */
    int refusals;                                    /* of last ones */
    bool has_saved; /* in this generation: a checkpoint of saved_step */
    uint64_t saved_step;
    int shards;
    uint64_t *numbers; /* of SAVE: shards, then the ledger of ps/0; in the byte order of the wire */
    uint32_t number_bytes;
};

struct worker_role {
    struct role role;
    struct worker_options options;
    struct server *servers;
    enum worker_life phase;
    uint64_t generation; /* that this worker takes part in, or that the chief is making; 0: none */
    bool has_ticket;
    bool has_adopted;     /* values of this generation have come */
    bool was_adopted;     /* of any generation */
    bool has_served;      /* chief: SERVE has gone out: there may be steps that can be lost */
    bool is_relaying;     /* the verdict is another task's, which the text names */
    uint64_t global_step; /* as ps/0 said last */
    uint64_t first_step, staleness;
    uint64_t computed_step; /* of the values that the gradient in the windows comes from */
    uint64_t computed;      /* its sequence */
    int arrays;             /* chief: that a ps which wants values is to be brought */
    bool is_stopping;       /* the job is to end well, with stop_code and stop_text */
    bool is_leaving;        /* a signal: not later than stop_timeout_ms after leave_ms */
    uint64_t leave_ms;
    int stop_code;
    char stop_text[ACTION_TEXT_MAX];
    struct saving saving;
    struct patience patience;
    char name[TASK_TEXT_MAX];
};

bool worker_is_chief(const struct worker_role *);
/* In the outbox: what it says more is added to it. */
struct message *worker_send(struct worker_role *, int ps, enum message_type, struct outbox *);
void worker_end(struct worker_role *, int code, const char *text, int except, struct outbox *);
void worker_enter(struct worker_role *, enum worker_life);
/* ps/0 owns the global step; a ps without variables has nothing else to say. */
bool worker_is_asked(const struct worker_role *, int ps);
void worker_settle(struct worker_role *, struct outbox *); /* after news of a ps' state */

void worker_adopt(struct worker_role *, uint64_t generation, struct outbox *);
void worker_rejoin(struct worker_role *, int ps, struct outbox *);
void worker_ledger(struct worker_role *, int ps, const struct message *, struct outbox *);
void worker_values(struct worker_role *, int ps, const struct message *, struct outbox *);
void worker_push(struct worker_role *, struct outbox *); /* what was computed */
void worker_ask_to_stop(struct worker_role *, int ps, struct outbox *);
void worker_ask_all_to_stop(struct worker_role *, int except, struct outbox *);

void worker_recover(struct worker_role *, struct outbox *);
void worker_ready(struct worker_role *, int ps, const struct message *, struct outbox *);

void worker_save_first(struct worker_role *, struct outbox *); /* before anybody joins */
void worker_save_last(struct worker_role *, struct outbox *);
void worker_cut(struct worker_role *, int ps, const struct message *, struct outbox *);
void worker_saved(struct worker_role *, int ps, const struct message *, struct outbox *);
void worker_published(struct worker_role *, err, const char *text, struct outbox *);
void worker_abandon(struct worker_role *, const char *why, struct outbox *);
void worker_watch_save(struct worker_role *, struct outbox *);
/* after the last checkpoint: the chief evaluates, or ends */
void worker_conclude(struct worker_role *, struct outbox *);

void worker_watch(struct worker_role *, struct outbox *);
void worker_tell_wait(const struct worker_role *, struct outbox *); /* if it waits */
void worker_report(const struct role *, struct outbox *);

#endif
