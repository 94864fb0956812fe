/* worker_role.h - what a worker, and the chief, decides.
 *
 * Life: HOLDING until every ps is there and serves the same generation; then JOIN to each, and
 * steps: with a ticket of ps/0, COMPUTE, PUSH to every ps, wait for the VALUES of every ps. Without
 * a ticket: FINISHED to every ps, and wait for the job's verdict. The chief instead waits for the
 * final values, which come when every worker has finished, saves, evaluates and sends the verdict.
 *
 * A link that is lost is no end: the runner makes a new one, and STATE says what became of the ps.
 * The same generation: only the connection was cut; JOIN asks what came, the rest is sent again.
 * Another one, or none: HOLDING again.
 *
 * The chief, when every ps is there and they do not all serve the same generation: CHOOSE what to
 * start from, DESCRIBE to each ps its share (SETUP), bring it what it lacks (INIT), SERVE.
 *
 * Where ps/0 may drop a gradient (drops_gradients), it is pushed to ps/0 first; the other ps get it
 * when it was taken, and are otherwise asked for their values of the step that ps/0 has reached.
 * The same holds of an asynchronous gradient once the link to ps/0 was lost, whose ticket may be
 * another worker's by now. A synchronous worker that some ps have gone on without begins its step
 * anew: what it has computed is of no round any more.
 *
 * A ps without variables is asked for nothing but the global step, if it is ps/0.
 *
 * Leading: a worker leads when the highest term that it has heard of is its own, and ps/0 is there.
 * In term 0 worker/0 waits for all ps, since one of them may know of a later term. It renews its
 * lease with each tick that is due. It yields when it hears of a later term.
 *
 * Leaving (a signal): between two steps, when its push is whole at every ps, LEAVE to ps/0, which
 * grants it where enough others are here, and somebody to lead; then to the other ps and, at last,
 * to ps/0, which finds another chief then. Refused, the job ends well. One that takes no part yet
 * asks at once; the chief of a job that has not begun ends it, as soon as it meets a ps.
 *
 * Saving (chief): SAVE to ps/0, which answers with the SNAPSHOT and its ledger; the same to the
 * others; RESUME to ps/0; and when all have SAVED, PUBLISH. Anything that goes wrong abandons this
 * checkpoint and nothing else: each ps removes what it wrote (RESUME_DROP), whenever that ends.
 * After the last one all ps are asked for their final values once more: a worker that has come back
 * since may have changed them, and then it is made again. What has changed since the last one (a
 * delta) is saved in the same way, and where anything goes wrong the next one is whole.
 *
 * Resizing (chief): on SCALE a checkpoint is made like others, but that ps/0 keeps all workers held
 * (RESUME_STAY) until it is published; then RESIZE to every ps. Where it fails, RESUME, and the job
 * continues.
 *
 * Changing (chief): what the values depend on (dtrain set) changes at a checkpoint, which is made
 * as for a resize. The runner keeps the change beside it, with the generation that it was made in.
 * That one is over then: all ps begin another one from the checkpoint, which the runner describes
 * as it was changed. A chief that comes to lead outlives the generation of the last change, too: so
 * no death on the way leaves some ps with it and some without.
 *
 * Replicas (train.ps_replicas): of two ps that hold the same each is joined and pushed to like any
 * other, so that both have what is acknowledged; the values come from the first one. A chief that
 * misses one of them for limits.ps_ms, or finds it empty, has ps/0 say to all that this generation
 * is done without it: it is not asked any more, nor heard, and the other one is read. When it is
 * back a checkpoint is made as for a resize, and all begin again from that.
 */
#ifndef CORE_CLUSTER_ROLE_WORKER_ROLE_H
#define CORE_CLUSTER_ROLE_WORKER_ROLE_H

#include "core/cluster/role/limits.h"
#include "core/cluster/role/role.h"

struct worker_options {
    int task, ps_count, workers;
    int homes; /* of the ps, those that follow nobody (core/base/replicas.h) */
    uint64_t incarnation;
    const int64_t *block_floats; /* [ps_count]; copied */
    const int64_t *moved_floats; /* of them, of which there are gradients; NULL: all */
    uint32_t gradients_per_push;
    bool is_sync;
    bool drops_gradients;         /* backup workers, or max_staleness */
    bool lends_windows;           /* some ps has fewer windows for gradients than workers */
    bool saves;                   /* where it leads: a last checkpoint before the end */
    struct membership membership; /* of which ps_count and workers are */
    bool keeps_chief;             /* nobody can take the place of worker/0 */
    struct wait_limits limits;
    uint64_t worker_timeout_ms; /* how long a ps waits for a lost worker */
};

struct role *worker_role_new(const struct worker_options *);
void worker_role_free(struct role *);
uint64_t worker_role_global_step(const struct role *); /* as ps/0 said last */
uint64_t worker_role_generation(const struct role *);  /* 0: none yet */
/* EVALUATE is still wanted: the ps that are asked have lost nothing meanwhile. */
bool worker_role_is_evaluating(const struct role *);
/* For how long a checkpoint has been made; 0: none is. */
uint64_t worker_role_saving_ms(const struct role *);
uint64_t worker_role_term(const struct role *);
bool worker_role_leads(const struct role *);
/* This generation is done without this ps, whether it is there or not. */
bool worker_role_is_without(const struct role *, int ps);
/* Some ps has said of which generation it is, though the chief may have ended before all of them
 * served: whoever began that was let into the folder. */
bool worker_role_is_in_progress(const struct role *);
/* Chief: will say nothing for a while, for a reason that has a limit of its own (evaluation). */
void worker_role_hold_lease(struct role *, struct outbox *);
/* Updates by others between the values of the last answered step and its own (asynchronous). */
uint64_t worker_role_staleness(const struct role *);
/* Asynchronous: this worker begins when the global step is there. Before it joins. */
void worker_role_begin_at(struct role *, uint64_t first_step);

/* While COMPUTE is carried out: which parts of the gradient for this ps have not left and may. The
 * first part goes with the push. */
uint64_t worker_role_left(const struct role *, int ps);
unsigned worker_role_overlap(const struct role *, int ps); /* the ps' plan of rounds, as it said */
/* These, which are left, are final: they leave now (SEND). */
void worker_role_part(struct role *, int ps, uint64_t parts, struct outbox *);

/* Synchronous: gradients are out, and the values of the next step come. */
bool worker_role_awaits_next(const struct role *);

/* NULL, or what of its state cannot be; between events. For tests: it looks at everything. */
const char *worker_role_check(const struct role *);

/* Who has no batch for COMPUTE yet answers it with ERR_PEER, and gets it again; ERR_STOPPED: none
 * will come, or the job is to end and this says so: then it is not waited for. */
bool worker_role_is_stopping(const struct role *);

/* It does as so many batches are all that there are, and the one that is to be computed is none of
 * these: before ERR_STOPPED. */
void worker_role_note_end(struct role *, uint64_t batches);

/* The runner's answer to ACTION_CHOOSE. */
struct choice {
    err result; /* not OK: there is nothing to start from; text says why */
    const char *text;
    uint64_t generation; /* a new one, never 0 */
    uint64_t step;       /* of the checkpoint; 0 for initial values */
    bool is_saved;       /* there is a checkpoint of just this */
    int arrays;          /* what a ps that READY_WANTS is to be filled with: 1, or 1 + slots */
};
void worker_role_chosen(struct role *, const struct choice *, struct outbox *);
/* Chief: the folder of its checkpoints is being opened, since LEAD, and no checkpoint begins; and
 * it is open, and what was to be chosen or claimed meanwhile is asked for again. */
void worker_role_folder_opens(struct role *);
void worker_role_folder_is_open(struct role *, struct outbox *);

/* Chief: a checkpoint is wanted now. false: not while one is being written or nobody serves. */
bool worker_role_save(struct role *, struct outbox *);
/* Chief: the step at which all workers have ended well; 0: they have not yet. */
uint64_t worker_role_end_step(const struct role *);
bool worker_role_can_save(const struct role *); /* false: not now, but perhaps later */
/* The same of what has changed since the last one, be it a checkpoint or what had changed then;
 * where there was none in this generation, or one has failed since, of all. */
bool worker_role_save_changes(struct role *, struct outbox *);
int worker_role_shard(const struct role *, int ps); /* which of a checkpoint a ps writes */
/* Chief: what the values depend on is to change: CHANGED comes; or why nothing comes of it. */
const char *worker_role_change(struct role *, struct outbox *);
/* It could not be kept, and whoever asked for it knows: the checkpoint is one like any other. */
void worker_role_drop_change(struct role *);
/* Chief: this generation is over, whichever ps serve it; 0: none is. false: none is, or all its
 * steps are taken, so that what was set comes too late. */
#define CHANGE_TOO_LATE "the job ends meanwhile: it holds when it is started again"
bool worker_role_outlive(struct role *, uint64_t generation, struct outbox *);
/* Chief: what is wrong with the membership that SCALE asks for, as its runner knows; before the
 * role hears of that. NULL: nothing. Borrowed until then. */
void worker_role_refuse_scale(struct role *, const char *why);
/* It has ended, and the ps has not said that it knows the verdict, which may be lost with its link:
 * on a new one it is told again. */
bool worker_role_awaits(const struct role *, int ps);
/* It has ended by itself, as a signal said, and the job continues. */
bool worker_role_has_left(const struct role *);
/* A hook ends the job: steps end, the rest is as usual. code 0: all is well. */
void worker_role_finish(struct role *, int code, const char *why, struct outbox *);

#endif
