/* hook.h - what happens beside the steps: saving, summaries, logging, stopping early.
 *
 * A hook is one constant in a file of its own in core/train/hooks/, and its word in
 * core/train/hooks/meson.build: parsing, `dtrain help hook`, and the schema follow from the table.
 * A spec lists hooks under train.hooks ({"type": "early_stopping", ...}); those that TensorFlow's
 * MonitoredTrainingSession always has are made from the keys of "train" (save_checkpoint_secs,
 * save_summaries_steps, log_step_count_steps, ...) unless the list has one of that type.
 *
 * Hooks run in the thread that computes, so they must not wait. What a hook may look at depends on
 * the occasion: BEFORE sees values that nobody changes, COMPUTED gradients, and values where the
 * hook has said so when it began (session.is_watched), but every other worker may be waiting for
 * this one meanwhile; STEPPED comes when the gradients
 * have left, costs others nothing, and must not read values or gradients.
 *
 * An error from a hook ends the job with its text, but for ERR_IO, which is a warning (counted, the
 * first five of each hook are logged): a full disk does not end training.
 */
#ifndef CORE_TRAIN_HOOKS_HOOK_H
#define CORE_TRAIN_HOOKS_HOOK_H

#include "core/train/session/session.h"
#include "core/train/summary/events.h"
#include "core/train/summary/timeline.h"

/* What happens in a run. A new kind: a word here, and hooks_tell() where it happens. */
enum occasion_kind {
    OCCASION_ADOPTED,  /* the values of step view->global_step are there: at the start, and after
                          each recovery */
    OCCASION_BEFORE,   /* a step begins from the values of view->global_step */
    OCCASION_COMPUTED, /* the gradients of step view->global_step are computed */
    OCCASION_STEPPED,  /* they have left */
    OCCASION_WAITED,   /* or nothing was computed: no batch has come for about a second */
    OCCASION_SAVED,
    OCCASION_EVALUATED,
    OCCASION_TRACED,  /* chief only; somebody asked for it */
    OCCASION_COVERED, /* chief; an epoch is over, or has come so far: where a run begins from, at
                         its end and, of data without end, at each checkpoint */
    OCCASION_END,     /* every hook hears of it, even if one before it failed */
    OCCASION_KINDS
};

/* Rows of the data whose gradients are in the values (core/cluster/role/coverage.h). */
struct rows_seen {
    uint64_t epoch, epochs; /* the first one, from 0, and how many, where they are told as one */
    uint64_t rows, applied; /* in all of these epochs; of them, those in the values */
    uint64_t twice, lost, late, total; /* of the whole run: of the epochs that are over; what came
                                          of them after that (not lost any more); of all pushes */
    bool is_over;
    bool is_endless; /* of data that arrives during training: the rows that have arrived */
    uint64_t left;   /* of these, at their end, for less than a push of everybody */
};

struct occasion {
    enum occasion_kind kind;
    union {
        struct {
            bool is_first; /* of this process */
        } adopted;
        struct {
            const char *prefix, *why; /* of the new checkpoint; NULL: it failed, and why */
        } saved;
        struct {
            const struct evaluation *evaluation; /* rows 0: there is nothing to evaluate */
            bool is_last;                        /* of the end of the run */
        } evaluated;
        const struct timeline *traced;
        const struct rows_seen *covered;
        struct {
            int code; /* of the verdict, and its words */
            const char *text;
        } end;
    };
};

/* What hooks may ask for. */
struct run_asks {
    bool (*save)(void *asker); /* a checkpoint, soon; false: not while one is being written */
    void (*stop)(void *asker, err kind, const char *why); /* OK: an ordinary end, and no error */
    err (*evaluate)(void *asker, struct evaluation *ret); /* a hook calls hooks_evaluate() */
    /* The last checkpoint gets the values of another one: to be asked at the last evaluation.
     * Optional. */
    err (*restore)(void *asker, const char *prefix);
    /* A timeline of all tasks, of this many steps from `first_step` on. false: one is being made,
     * or nobody can make one. Optional. */
    bool (*trace)(void *asker, uint64_t first_step, int steps);
};

struct run_view { /* what hooks see; filled in by whoever runs the worker */
    const struct spec *spec;
    struct session *session;
    bool is_chief;
    int worker, workers, ps_count;
    uint64_t first_step;  /* global step where this process began */
    uint64_t global_step; /* BEFORE: of the values; COMPUTED, STEPPED: the number that this step
                             has (from 1); SAVED: of the snapshot; else the newest known */
    uint64_t last_step;   /* where the run ends; 0: unknown */
    uint64_t own_steps;   /* of this process */
    double loss, learning_rate, gradient_norm; /* of the last own step; norm 0 where unknown */
    double rate_factor;  /* what the rates of schedules were multiplied by in that step */
    uint64_t staleness;  /* async: updates between the values of the last answered step and its
                            gradient's turn */
    double push_seconds; /* from the last push to the last of its answers */
    double wall_s;       /* unix time of this call */
    uint64_t now_ns;     /* steady clock of this call */
    const char *checkpoint_dir, *summary_dir; /* absolute, NULL: none */
    struct hooks *hooks;                      /* of hooks_open */
    struct events *events; /* NULL: none; shared by all hooks of this process; of hooks_open */
    const struct run_asks *asks;
    void *asker;
};

struct hook { /* any function may be NULL */
    struct object object;
    size_t state_bytes;   /* zeroed memory for each instance */
    bool on_every_worker; /* false: the chief alone */
    /* When the spec is read: ERR_INPUT where attributes do not fit together, or not to the spec. */
    err (*check)(const void *attributes, const struct spec *);
    /* When the model is there: ERR_INPUT where attributes name values or metrics that it lacks.
     * Optional; begin() sees to it, too. */
    err (*check_names)(const void *attributes, const struct run_view *);
    /* For hooks made from the keys of "train": sets the attributes, which hold their defaults, by
     * those keys; false: the keys ask for no such hook. */
    bool (*standard)(const struct run_view *, void *attributes);
    /* The global step before which this process computes nothing; 0: it does not wait. */
    uint64_t (*wait_step)(const void *state);
    err (*begin)(void *state, const void *attributes, const struct run_view *);
    err (*on[OCCASION_KINDS])(void *state, const struct run_view *, const struct occasion *);
    void (*close)(void *state);
};
extern const struct kinds hook_kinds; /* key "type" */

/* TensorFlow's SecondOrStepTimer: exactly one of the two is set. It is due when first asked, and
 * never twice for one step. */
struct hook_timer {
    double every_secs;   /* 0: by steps */
    int64_t every_steps; /* 0: by secs */
    bool has_fired;
    uint64_t fired_step, fired_ns;
};
bool hook_timer_is_due(const struct hook_timer *, uint64_t step, uint64_t now_ns);
void hook_timer_fired(struct hook_timer *, uint64_t step, uint64_t now_ns);

/* The time at which the values of a global step arrived, which is when a worker begins its step: in
 * BEFORE. Read at the end of a step it would be off by the time by which this step was longer than
 * usual. */
struct step_time {
    uint64_t step, ns;
};
double steps_per_second(struct step_time from, struct step_time to); /* 0: not known */

/* A hook that is not in the spec: the program's own. It hears of everything before the others do,
 * of the end after them; of its functions only those for occasions are called, and any error of it
 * ends the job. */
struct own_hook {
    const struct hook *hook; /* NULL: none */
    void *state;             /* the caller's */
};

/* All hooks of one process, in TensorFlow's order: step counter, summaries, checkpoints, then the
 * spec's list. Fills in view->hooks and view->events, and begins each. */
err hooks_open(struct run_view *, const struct own_hook *own);
/* What the hooks of a run can be checked for without running it: view has spec and session. */
err hooks_check(const struct run_view *);
void hooks_close(struct run_view *); /* without hooks is fine */
/* All hooks in order, up to the first that fails. Meanwhile a hook may cause another occasion. */
err hooks_tell(const struct run_view *, const struct occasion *);
/* From a hook, in BEFORE only: asks for an evaluation, of which all hooks hear. */
err hooks_evaluate(const struct run_view *, struct evaluation *ret);
/* Whether there are evaluations before the end, by the keys or by a hook of the list. */
bool hooks_evaluate_while_training(const struct spec *);
uint64_t hooks_wait_step(const struct hooks *); /* of global_step_waiter; 0: none */

#endif
