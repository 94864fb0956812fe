/* worker_role_inside.h - the inside of the worker role: its state, and what its files do for each
 * other.
 *
 * worker_role.c: life and messages; worker_steps.c: steps; worker_recover.c: whether it leads, and
 * how the chief brings the ps to serve; worker_save.c: the chief saves; worker_resize.c: and
 * resizes the job; worker_change.c: and changes what its values depend on; worker_replicas.c: and
 * does without a ps; worker_wait.c: what is waited for; worker_states.c: which state follows which,
 * and which go together.
 */
#ifndef CORE_CLUSTER_ROLE_WORKER_ROLE_INSIDE_H
#define CORE_CLUSTER_ROLE_WORKER_ROLE_INSIDE_H

#include "core/base/overlap.h"
#include "core/cluster/role/parts.h"
#include "core/cluster/role/worker_role.h"

enum worker_phase {
    HOLDING,    /* not all ps serve the same generation */
    DESCRIBING, /* chief: SETUP is out, ps get ready */
    STARTING,   /* chief: SERVE is out */
    JOINING,    /* JOIN is out */
    ASKING,     /* a gradient is shown to ps/0, which may drop it */
    WAITING,    /* gradients are out, values come */
    COMPUTING,
    DEPARTING, /* between two steps: ps/0 is asked whether the job continues without this worker */
    FINISHING, /* no ticket any more */
    SAVING_LAST, /* chief */
    EVALUATING,  /* chief */
    ENDED
};

/* Of the link to a ps. */
enum contact {
    GONE,  /* or not yet there */
    FOUND, /* the link is up */
    KNOWN, /* and the ps has said its state on it */
};

/* What was asked by JOIN on this link. Only what follows the answer counts, and only with it are
 * there windows for a push. */
enum inquiry {
    NOT_ASKED,
    ASKED, /* by JOIN; of a ps that has nothing to say, or at the end by FINISHED: no more to ask */
    ANSWERED,
};

/* Of the chief, with a ps that is to serve a new generation. */
enum setup_phase {
    NOT_READY,
    IS_READY,
    WAS_TOLD, /* SERVE went out on this link: it will serve, and say so */
};

/* Of a ps in the checkpoint that is being made. */
enum shard_phase {
    NO_SHARD,
    SHARD_WANTED,
    SHARD_COPIED,
    SHARD_SAVED,
};

/* The last JOIN to a ps. */
struct server_join {
    enum inquiry inquiry;
    uint64_t number; /* JOINs that were sent */
    enum join_code code;
    uint64_t step; /* values of this step or later are wanted */
};

/* To a ps, of the step that is computed; the push may be out and the answer lost with its link. */
struct server_push {
    bool is_target, is_out, has_answered;
    bool has_left;         /* on this link */
    uint64_t ahead;        /* parts of its gradient that left ahead of the push, on this link */
    uint64_t unheard;      /* number of the push of which something left last on this link, and may
                              not have been read: nothing came that was said behind it; 0: none */
    uint64_t number, step; /* of the last push in this generation; 0: none */
};

/* That a ps sent last. */
struct server_values {
    uint64_t step, version;
    uint64_t snapshot_version; /* of the last snapshot, */
    uint64_t saved_version;    /* and of the last one that was published */
    uint64_t round;            /* where it was when it said something of its values last */
    unsigned overlap;          /* its plan of rounds, as it said with them */
};

/* A ps as this worker knows it. */
struct server {
    struct parts block, moved; /* moved: of gradients */
    enum contact contact;
    struct {
        enum ps_state state;
        uint64_t generation, last_step; /* 0: none was said */
    } said;                             /* last */
    enum setup_phase setup;
    bool is_claimed; /* in a later term, and has not said its state since: it may be another one */
    struct server_join join;
    struct server_push push;
    struct ledger ledger; /* what it has of this worker */
    struct server_values values;
    enum shard_phase shard_phase;
    uint64_t lost_ms; /* GONE: since when */
    bool is_told;     /* that this worker is gone, on this link */
    bool knows_end;   /* it has said a verdict: its own, or that it has heard this worker's */
};

enum save_phase { SAVE_IDLE, SAVE_FIRST, SAVE_REST, SAVE_PUBLISHING };

/* What workers stay held for when all ps have made the checkpoint's snapshot (RESUME_STAY). */
enum held_for { HELD_FOR_NOTHING, HELD_TO_RESIZE, HELD_TO_CHANGE, HELD_TO_TAKE_IN };

struct saving {
    enum save_phase phase;
    uint64_t generation, tag, step, since_ms, count; /* count: saves begun by this task */
    bool is_last;                                    /* of the final values */
    enum held_for held_for;
    bool is_refused;               /* by a ps that could not make its snapshot */
    int refusals;                  /* of last ones */
    uint64_t failing_ms, again_ms; /* of last ones: since when they fail, and when the next one is
                                      to begin; 0: none has, none is */
    bool awaits_folder;            /* this worker leads, and it is being opened */
    uint64_t since; /* of what changed since the snapshot of that tag; 0: a whole checkpoint */
    struct {
        uint64_t generation, tag, step; /* of the last one, whole or not, that all of it is there
                                           of; tag 0: none is */
    } last;
    bool has_saved; /* in this generation: a checkpoint of saved_step */
    uint64_t saved_step;
    uint64_t end_step; /* of the values that all workers have ended with; 0: they have not */
    int shards;
    struct ledger *ledgers;   /* [2 * workers]: of ps/0, and of another one, at the snapshot */
    struct torn_pushes *torn; /* [workers], by what has come */
    uint64_t *numbers; /* of SAVE: shards, then the ledger of ps/0; in the byte order of the wire */
    uint32_t number_bytes;
};

/* Chief: to which membership it was asked to resize the job, in which generation. */
struct resizing {
    bool is_asked;
    struct membership membership;
    uint64_t generation, since_ms;
    const char *refusal; /* by the runner, of the next SCALE */
};

/* Chief: it was asked to change what the values depend on, in which generation. */
struct changing {
    bool is_asked;
    uint64_t generation, since_ms;
};

/* In generations. */
enum participation {
    IN_NONE,
    IN_EARLIER, /* values of one have come, and not yet of this one */
    IN_CURRENT, /* values of the one that it joined last have come */
};

/* A signal to a worker that is to lead and has heard of no ps yet, which is told as soon as it has.
 */
enum unheard { NOTHING_UNHEARD, LEAVE_UNHEARD, STOP_UNHEARD };

/* What is to become of the job. */
enum ending {
    GOES_ON,
    STOPS,   /* it is to end well, with stop.code and stop.text */
    DEPARTS, /* so says a signal to this worker alone: it leaves, if ps/0 grants that */
    LEAVES   /* the job is to end, so says a signal: not later than limits.stop_ms after since_ms */
};

struct worker_lead {
    uint64_t term; /* the highest that was heard of */
    bool is_ours;  /* this worker leads */
    /* is_ours: a later term that another ps spoke of, and that ps/0 is to outbid; its lease */
    uint64_t rumoured;
    uint64_t renewed_ms;
    bool is_lease_long; /* that was asked for then: this worker may say nothing for a while */
    struct {
        uint64_t ps, generation; /* that is done without these, bit by bit, as ps/0 says */
        uint64_t again_ms;       /* is_ours: not before then are they taken in again */
        uint64_t absent; /* is_ours: these take no part in what it brings to serve, bit by bit */
        bool take_part_again; /* is_ours: for which the last generation was outlived */
    } gone;
};

/* The step that is under way. */
struct step_now {
    bool has_ticket;
    bool in_doubt;        /* asynchronous: ps/0 was lost since it gave the ticket, which may be
                             another worker's */
    uint64_t values_step; /* of the values that the gradient in the windows comes from */
    uint64_t push;        /* its number */
};

/* ENDED: how. */
struct worker_verdict {
    bool is_relayed; /* it is another task's, which the text names */
    bool is_told;    /* to all ps */
    int code;
    char text[ACTION_TEXT_MAX];
};

/* By a signal */
struct worker_leaving {
    enum unheard unheard;
    bool has_asked; /* ps/0, by LEAVE, on the link that is */
    bool is_granted, has_left;
    uint64_t since_ms;
};

struct worker_role {
    struct role role;
    struct worker_options options;
    struct server *servers;
    enum worker_phase phase;
    uint64_t generation; /* that this worker takes part in, or that the chief is making; 0: none */
    enum participation participation;
    struct worker_lead lead;
    struct step_now now;
    uint64_t global_step; /* as ps/0 said last */
    uint64_t first_step, staleness;
    int arrays;      /* chief: that a ps which wants values is to be brought */
    uint64_t served; /* chief: for which generation SERVE has gone out last: there may be steps of
                        it that can be lost; 0: none */
    struct saving saving;
    struct resizing resizing;
    struct changing changing;
    uint64_t outlived; /* chief: a generation that is over, whoever still serves it; 0: none */

    enum ending ending;
    struct {
        int code;
        char text[ACTION_TEXT_MAX];
    } stop;
    struct worker_leaving leaving;
    bool is_last_hour; /* ps/0 has said that the job is to end */
    struct {
        uint32_t code;     /* FINISHING: enum finished_code */
        uint64_t data_end; /* 1 + batches of all data that came; 0: more may come */
    } finished;
    struct worker_verdict verdict;
    struct patience patience;
    char name[TASK_NAME_MAX];
};

bool worker_is_chief(const struct worker_role *);
bool worker_stops_job(const struct worker_role *); /* the job is to end well */
/* This worker is to leave (DEPARTS): asks ps/0, where it is the time for that. */
void worker_depart(struct worker_role *, struct outbox *);
void worker_ask_to_leave(struct worker_role *, struct outbox *);
/* In the outbox: what it says more is added to it. */
struct message *worker_send(struct worker_role *, int ps, enum message_type, struct outbox *);
/* All ps hear of it; for who has said so itself it is the answer that this has been heard. */
void worker_end(struct worker_role *, int code, const char *text, struct outbox *);
void worker_begin_phase(struct worker_role *, enum worker_phase); /* and nobody has answered yet */

/* worker_states.c: the only places where these change, each to what may follow. */
void worker_set_phase(struct worker_role *, enum worker_phase);
void worker_set_participation(struct worker_role *, enum participation);
void worker_set_ending(struct worker_role *, enum ending);
void worker_set_save(struct worker_role *, enum save_phase);
void server_set_contact(struct server *, enum contact);
void server_set_inquiry(struct server *, enum inquiry);
void server_set_setup(struct server *, enum setup_phase);
void server_set_shard(struct server *, enum shard_phase);

/* ps/0 owns the global step; a ps without variables has nothing else to say. */
bool worker_is_asked(const struct worker_role *, int ps);
bool worker_knows_all(const struct worker_role *); /* all ps are here, and have said their state */
void worker_settle(struct worker_role *, struct outbox *);       /* after news of a ps' state */
void worker_lose(struct worker_role *, int ps, struct outbox *); /* its link has ended */

void worker_adopt(struct worker_role *, uint64_t generation, struct outbox *);
void worker_rejoin(struct worker_role *, int ps, struct outbox *);
void worker_ledger(struct worker_role *, int ps, const struct message *, struct outbox *);
void worker_values(struct worker_role *, int ps, const struct message *, struct outbox *);
void worker_push(struct worker_role *, struct outbox *);         /* what was computed */
void worker_finish_steps(struct worker_role *, struct outbox *); /* FINISHED to all */
void worker_say_finished(struct worker_role *, int ps, struct outbox *);
void worker_say_finished_to_all(struct worker_role *, struct outbox *);
void worker_bring_nothing(struct worker_role *, struct outbox *);
void worker_doubt(struct worker_role *); /* the link to ps/0 is lost */
void worker_go_on_without(struct worker_role *, uint64_t ps, struct outbox *); /* bit by bit */
void worker_ask_again(struct worker_role *, struct outbox *); /* nothing could be */
void worker_ask_to_stop(struct worker_role *, int ps, struct outbox *);
void worker_ask_all_to_stop(struct worker_role *, int except, struct outbox *);

void worker_heard_term(struct worker_role *, int ps, const struct message *, struct outbox *);
void worker_try_lead(struct worker_role *, struct outbox *);         /* after news of a ps */
void worker_say_term(struct worker_role *, int ps, struct outbox *); /* which is known anew */
/* What is said now is not to wait behind a gradient that comes to nothing. */
void worker_make_way(struct worker_role *, struct outbox *);
void worker_watch_lease(struct worker_role *, struct outbox *);
int worker_chief(const struct worker_role *); /* who leads, as far as it has heard */

void worker_recover(struct worker_role *, struct outbox *);
void worker_ready(struct worker_role *, int ps, const struct message *, struct outbox *);

void worker_save_first(struct worker_role *, struct outbox *); /* before anybody joins */
void worker_save_last(struct worker_role *, struct outbox *);
void worker_save_again(struct worker_role *, struct outbox *);
void worker_snapshot(struct worker_role *, int ps, const struct message *, struct outbox *);
void worker_saved(struct worker_role *, int ps, const struct message *, struct outbox *);
void worker_published(struct worker_role *, err, const char *text, struct outbox *);
void worker_abandon(struct worker_role *, const char *why, struct outbox *);
/* false: not now */
bool worker_save_held(struct worker_role *, enum held_for, struct outbox *);
void worker_watch_save(struct worker_role *, struct outbox *);
/* after the last checkpoint: the chief evaluates, or ends */
void worker_conclude(struct worker_role *, struct outbox *);

/* worker_change.c */
void worker_watch_change(struct worker_role *, struct outbox *);
void worker_change_failed(struct worker_role *, const char *why, struct outbox *);
void worker_forget_change(struct worker_role *, struct outbox *); /* another worker leads */
/* The checkpoint is there: all begin again from it; false: the job continues as it is. */
bool worker_change(struct worker_role *, struct outbox *);
void worker_outlive(struct worker_role *, uint64_t generation, struct outbox *);

/* worker_replicas.c */
uint64_t worker_gone(const struct worker_role *); /* of this generation, bit by bit */
bool worker_is_without(const struct worker_role *, int ps);
bool worker_stands_in(const struct worker_role *, int ps); /* it follows one that is done without */
/* It need not be there, or serve what others do: so it is, or will be. */
bool worker_is_spared(const struct worker_role *, int ps);
/* Chief: another generation begins from a checkpoint of the last step. */
bool worker_begins_where_it_was(const struct worker_role *);
/* And all that it needs are here: then it may begin without one whose other is. */
bool worker_can_begin(const struct worker_role *);
void worker_watch_beginning(struct worker_role *, struct outbox *);
bool worker_is_absent(const struct worker_role *, int ps); /* of what begins */
void worker_note_absent(struct worker_role *);
void worker_watch_replicas(struct worker_role *, struct outbox *);
void worker_heard_gone(struct worker_role *, int ps, const struct message *, struct outbox *);

/* worker_resize.c */
bool worker_is_ending(const struct worker_role *); /* nothing is changed any more */
void worker_scale(struct worker_role *, const struct message *, struct outbox *);
/* The checkpoint is there: the job is resized; false: it continues, as it is to end meanwhile. */
bool worker_resize_job(struct worker_role *, struct outbox *);
void worker_resize_failed(struct worker_role *, const char *why, struct outbox *);
void worker_forget_resize(struct worker_role *);
void worker_watch_resize(struct worker_role *, struct outbox *);
/* This worker hears that the job was resized: from a ps (RESIZE), or as its runner greeted one. */
void worker_heard_resize(struct worker_role *, const struct membership *, uint64_t step,
                         struct outbox *);

void worker_watch(struct worker_role *, struct outbox *);
void worker_tell_wait(const struct worker_role *, struct outbox *); /* if it waits */
void worker_report(const struct role *, struct outbox *);
void worker_state(const struct role *, char ret[ACTION_TEXT_MAX]);

#endif
