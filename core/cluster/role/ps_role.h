/* ps_role.h - what a parameter server decides.
 *
 * Life: EMPTY, until the chief's SETUP; READY, until its SERVE; SERVING, until the job's VERDICT. A
 * SETUP may come at any time and begins another generation.
 *
 * Synchronous: a round is one global step. It is applied when workers that bring together at least
 * `replicas_to_aggregate` gradients of the current step are here; they are summed in worker order
 * and divided by their number. With as many replicas to aggregate as the workers bring, every round
 * has all of them, and the result has the same bits whatever the order of arrival. With fewer
 * (backup workers) ps/0 decides: a gradient that comes after its round is dropped and counted, its
 * worker gets the fresh values at once.
 *
 * Asynchronous: a gradient is applied as it comes. With max_staleness, ps/0 drops and counts one
 * that was computed from values more than that many updates ago (TensorFlow's
 * DropStaleGradientOptimizer).
 *
 * Where ps/0 may drop a gradient, workers show it to ps/0 first and to the other ps only once it
 * was taken, so that all ps apply the same gradients and hold the same step (worker_role.h).
 *
 * Tickets: ps/0 owns the global step. A worker computes a step only with a ticket, which comes with
 * the values; in asynchronous mode ps/0 gives out exactly last_step of them (a dropped gradient's
 * comes back), so the run stops exactly at last_step and no step is computed in vain.
 *
 * Who decides: ps/0, for all. Asynchronous, its ticket is the decision, since all ps apply a push
 * as it comes. So the ticket of a worker that is gone stays its own, whatever life brings the push;
 * once all others have finished another worker gets it. Should the first one then turn out to have
 * shown its push to another ps (JOIN_COMPLETES), ps/0 takes it beyond last_step: what one has, all
 * get. Synchronous, a push that comes after its round is dropped by ps/0 alone, which is shown it
 * first where it may do that; another ps applies it beside its rounds, as soon as it comes.
 *
 * Parts: a push may come in parts, in any order. What has come of every worker of a round is summed
 * at once and its new values go ahead, where that is planned (core/base/overlap.h); a round that
 * takes all, and no other. They count with the round's VALUES, and can be taken back until then.
 *
 * Turns: what decides the bits of asynchronous training can be noted, and given to a later run of
 * the same job, which then takes every push in its turn (ps_turns.c).
 *
 * Windows: a ps that has many workers far away has fewer windows for gradients than workers
 * (ps_pool.c). No values go ahead of the round then.
 *
 * Workers that are gone: a round waits for a worker whose link is lost until worker_timeout_ms (one
 * that never came: limits.start_ms) is over; then it is evicted, and rounds and the end of the job
 * do without it until it comes back. With fewer than min_workers left the job ends, and where one
 * that never came, or cannot (ps_role_note_absent), has rows that nobody else reads. What it pushed
 * before stays counted. Without the chief a ps continues for limits.restart_ms, and ps/0 finds
 * another one after limits.chief_ms (role.h, "Terms"). The chief's lease is renewed by whatever it
 * says, so that one which stands still loses it though its link is up.
 *
 * A worker that has left (LEAVE) is evicted at once, and its unused ticket comes back.
 *
 * Coverage: ps/0 counts the rows of what is applied, and tells the chief of every epoch that is
 * over (coverage.h). In asynchronous training it also says which batches a worker computes next
 * (batch_queue.h): by a PLAN, ahead of the values whose ticket is for the first of them.
 *
 * Snapshots: on SAVE ps/0 answers no worker any more; when no ticket is out, all have arrived at
 * the same step, and it takes its part. The others take theirs when everything that ps/0 took has
 * reached them. RESUME lets ps/0 answer again. So all shards belong to one global step in every
 * mode, and the pause is about one step of the slowest worker. One worker is answered all the same:
 * whose last life died between two ps, as only it can bring the others what they wait for. And each
 * that joins hears what has come of it (in asynchronous training not where its push would get ahead
 * of the others' snapshots), so that it can tell those that wait for it in a round which is over
 * here.
 */
#ifndef CORE_CLUSTER_ROLE_PS_ROLE_H
#define CORE_CLUSTER_ROLE_PS_ROLE_H

#include "core/base/overlap.h"
#include "core/cluster/role/limits.h"
#include "core/cluster/role/role.h"

struct ps_config { /* from the chief's SETUP */
    uint64_t generation;
    bool is_sync;
    uint64_t last_step;
    double rate_factor;             /* of learning rates: workers are told it. 0: 1 */
    uint32_t replicas_to_aggregate; /* gradients per round */
    bool takes_all;        /* every round needs every worker: values can be used in place */
    int64_t max_staleness; /* -1: unbounded */
    uint64_t worker_timeout_ms;
    int min_workers;
    bool needs_everybody; /* all rows are wanted, and nobody else reads those of a worker */
    int64_t block_floats; /* 0: no variables here, nothing to fill */
    bool follows;         /* another ps, from which workers have the values (replicas.h) */
    int homes, ps_count;  /* of all ps those that follow nobody; and how many there are */
    int64_t moved_floats; /* of them, at the front, of which there are gradients; 0: all */
    int arrays;    /* that INIT must bring: 1 (values), or 1 + slots after a restore by the chief */
    uint64_t step; /* where the generation begins */
    bool is_restored;            /* the runner has read its part of the checkpoint */
    const struct ledger *ledger; /* [workers]; NULL: nobody has pushed yet. Copied */
    struct coverage coverage;    /* ps/0: as of `step`; of no rows: nothing is counted */
    const int64_t *queue;        /* [queue_numbers] batch_queue.h; where the share is one. Copied */
    int queue_numbers;           /* 0: nothing has been used yet */
    int stretch;                 /* batches of it that are read together; 0: any are */
    int windows; /* for gradients of workers that share no memory; 0: one for each worker */
};

int64_t ps_config_moved(const struct ps_config *); /* floats that a push consists of */
/* Of R gradients to aggregate, those that `worker` sums into one push: with more of them than
 * workers the first bring one more where R is no multiple; with fewer some workers are backups. */
uint32_t ps_config_gradients(const struct ps_config *, int workers, int worker);
bool ps_config_drops(const struct ps_config *); /* ps/0 may drop a gradient */
/* So many windows of this size at most has a ps for gradients of workers that share no memory; 0:
 * as many as there are workers. */
int ps_config_windows(uint64_t block_bytes, int workers);

/* A job that is to end gives this part of its time to the absent, and another one to its last
 * checkpoint. */
enum { PS_STOP_PARTS = 3 };
/* How long it waits for a push of who is here: most of its time, for a step that is computed;
 * little where this life of the worker has never brought anything, since nobody knows that it will.
 */
uint64_t ps_silence_limit_ms(const struct wait_limits *, bool has_pushed);
/* The same for a snapshot of asynchronous training, while which all others wait; 0: none. */
uint64_t ps_snapshot_limit_ms(const struct wait_limits *, bool has_pushed);

struct ps_options {
    int task, workers;
    struct membership membership; /* of which the workers are */
    uint64_t incarnation;
    struct wait_limits limits;
    bool is_launched;   /* whoever has started the tasks starts none of them again */
    bool notes_turns;   /* asynchronous: they are said (ACTION_TURN) */
    struct turns turns; /* asynchronous: taken as they are here. Borrowed */
};

struct ps_counters {
    uint64_t applied, dropped_stale, dropped_repeated;
    uint64_t evicted; /* workers, each time */
};

struct role *ps_role_new(const struct ps_options *);
void ps_role_free(struct role *);

/* The runner has done SETUP; result and text say why not. is_bad_checkpoint: what it was to be
 * restored from is bad, and nothing else: the chief may choose another one. */
struct setup_result {
    err result;
    const char *text;
    bool is_bad_checkpoint;
    struct ps_config config;
};
void ps_role_set_up(struct role *, const struct setup_result *, struct outbox *);

/* This worker, which is not here, has ended for a reason that stays until somebody changes
 * something: it was refused, or lacks a file. Where the others do its part they go on at once;
 * where nobody reads its share, it has as long to be back as any that is gone, and no longer than
 * one who has not come; then the job ends by that reason (EXIT_INPUT). */
enum { ABSENCE_TEXT_MAX = 160 }; /* of a reason, with its end; it is cut to that */
void ps_role_note_absent(struct role *, int worker, const char *why, struct outbox *);
/* It is the chief, and the job has not begun. */
bool ps_role_cannot_begin_without(const struct role *, int worker);

/* It has been asked to end the job, and its chief, which makes the last checkpoint, is away: for so
 * long one is waited for, and what is said of that. 0: not so. */
uint64_t ps_role_awaits_chief(const struct role *, char ret_text[ACTION_TEXT_MAX]);

/* ps/0: somebody wants so many tasks of each job; 0: as many as there are. NULL: the chief is
 * asked, and RESIZE or SCALED comes of it; or why not. */
const char *ps_role_scale(struct role *, const int count[JOB_COUNT], struct outbox *);

/* What the runner knows of how rounds may overlap (the role adds the rest); before, nothing does.
 */
void ps_role_plan_overlap(struct role *, const struct overlap_rounds *, struct outbox *);
unsigned ps_role_overlap(const struct role *);
/* Which parts of the worker's push of that number have come ahead of it: it brings the others, or
 * all again. */
uint64_t ps_role_ahead(const struct role *, int worker, uint64_t push);

/* Where config.windows is not 0: the header of a gradient has come over a link that shares no
 * memory. It is read when the worker has a window, which is its own until ps_role_has_window() says
 * that it is not. ps_role_grant(): one of those who wait has a window now; NOBODY: none. */
void ps_role_announce(struct role *, int worker, const struct message *, struct outbox *);
int ps_role_grant(struct role *);
bool ps_role_has_window(const struct role *, int worker);
bool ps_role_brings(const struct role *, int worker);  /* and its gradient is not whole */
bool ps_role_is_read(const struct role *, int worker); /* some of it is on its way just now */
int ps_role_waiting(const struct role *);              /* how many wait for one */

/* Where turns are given: rows that the worker has asked for are those of now; rows that its push
 * has named go with its values; it has got them. */
bool ps_role_rows_are_due(struct role *, int worker);
bool ps_role_rows_go_with_values(struct role *, int worker);
void ps_role_gave_rows(struct role *, int worker, struct outbox *);

struct ps_counters ps_role_counters(const struct role *);
bool ps_role_is_set_up(const struct role *); /* the chief has been here */
/* It is not set up, and somebody trains already: where another ps holds the same the chief may need
 * long for a checkpoint to take this one in by, or not make any. */
bool ps_role_is_passed_by(const struct role *);
bool ps_role_is_serving(const struct role *);
/* It has ended, and the worker has not answered the verdict, which may be lost with its link: on a
 * new one it is told again. */
bool ps_role_awaits(const struct role *, int worker);
bool ps_role_has_left(const struct role *, int worker);     /* by LEAVE, and has not come back */
bool ps_role_has_pushed(const struct role *, int worker);   /* in this life of it */
uint64_t ps_role_received(const struct role *, int worker); /* the number of its last push here */
/* For a snapshot, as of its last tick: for how long a push of this worker is waited for. false: it
 * is not. */
bool ps_role_snapshot_awaits(const struct role *, int worker, uint64_t *ret_ms);
uint64_t ps_role_term(const struct role *);
int ps_role_chief(const struct role *);              /* the worker that leads, here or not */
bool ps_role_obeys(const struct role *, int worker); /* it is here, and leads */
/* As of now, or of the snapshot while ACTION_SNAPSHOT is carried out; [workers] */
const struct ledger *ps_role_ledger(const struct role *, int worker);
const struct coverage *ps_role_coverage(const struct role *); /* ps/0; the same */
/* ps/0, while ACTION_SNAPSHOT is carried out; [*ret_count] none where rows are shared otherwise */
const int64_t *ps_role_queue(const struct role *, int *ret_count);
uint64_t ps_role_step(const struct role *);
/* NULL, or what of its state cannot be; between events. For tests: it looks at everything. */
const char *ps_role_check(const struct role *);

#endif
