/* hook.h - what happens besides the steps: saving, summaries, logging, early stopping.
 *
 * A hook is one constant in a file of its own in core/train/hooks/, and its name in
 * core/train/hooks/meson.build: parsing, `dtrain help hook`, and the schema follow from the table.
 * A spec lists hooks under train.hooks ({"type": "early_stopping", ...}); those that TensorFlow's
 * MonitoredTrainingSession always has are made from the keys of "train" (save_checkpoint_secs,
 * save_summaries_steps, log_step_count_steps, ...) unless the list has one of that type.
 *
 * Hooks run in the thread that computes, so they must not block. What a hook may read depends on
 * the occasion: BEFORE: values, which nobody changes; COMPUTED: gradients, and values if the hook
 * asked for them when it began (session.is_watched), but all other workers may be waiting for this
 * one meanwhile; STEPPED comes when the gradients have been sent, delays nobody else, and must not
 * read values or gradients.
 *
 * An error from a hook ends the job with its text, except ERR_IO, which is a warning (counted, the
 * first five of each hook are logged): a full disk does not end training.
 */
#ifndef CORE_TRAIN_HOOKS_HOOK_H
#define CORE_TRAIN_HOOKS_HOOK_H

#include "core/train/session/session.h"
#include "core/train/summary/events.h"
#include "core/train/summary/timeline.h"

/* Events of a run. To add one: a constant here, and hooks_tell() where it happens. */
enum occasion_kind {
    OCCASION_ADOPTED,  /* the values of step view->global_step have arrived: at the start, and after
                          each recovery */
    OCCASION_BEFORE,   /* a step begins from the values of view->global_step */
    OCCASION_COMPUTED, /* the gradients of step view->global_step are computed */
    OCCASION_STEPPED,  /* they have been sent */
    OCCASION_WAITED,   /* no batch has come for about a second */
    OCCASION_SAVED,
    OCCASION_EVALUATED,
    OCCASION_TRACED,  /* chief only; a requested trace is complete */
    OCCASION_COVERED, /* chief; coverage of an epoch: where a run begins, when the epoch is over
                         and, with endless data, at each checkpoint */
    OCCASION_END,     /* told to every hook, even if one before it failed */
    OCCASION_KINDS
};

/* Rows of the data whose gradients are in the values (core/cluster/role/coverage.h). */
struct rows_seen {
    uint64_t epoch, epochs; /* the first one, from 0, and how many are reported together */
    uint64_t rows, applied; /* rows of these epochs; those of them in the values */
    uint64_t twice, lost, late, total; /* of the whole run. twice, lost: of finished epochs; late:
                                          lost ones that were applied afterwards; total: of all
                                          pushes */
    bool is_over;
    bool is_endless; /* data that arrives during training: counts the rows arrived so far */
    uint64_t left;   /* endless data that ended: rows too few for a push of every worker */
};

struct occasion {
    enum occasion_kind kind;
    union {
        struct {
            bool is_first; /* of this process */
        } adopted;
        struct {
            const char *prefix, *why; /* prefix of the new checkpoint; NULL: it failed, and `why` */
        } saved;
        struct {
            const struct evaluation *evaluation; /* rows 0: no evaluation data */
            bool is_last;                        /* at the end of the run */
        } evaluated;
        const struct timeline *traced;
        const struct rows_seen *covered;
        struct {
            int code; /* the verdict's exit code and text */
            const char *text;
        } end;
    };
};

/* Requests that hooks may make. */
struct run_asks {
    bool (*save)(void *asker); /* requests a checkpoint; false: one is being written */
    void (*stop)(void *asker, err kind, const char *why); /* kind OK: a normal end, no error */
    err (*evaluate)(void *asker, struct evaluation *ret); /* not for hooks, which call
                                                             hooks_evaluate() */
    /* Puts the values of another checkpoint into the last one: only at the last evaluation.
     * Optional. */
    err (*restore)(void *asker, const char *prefix);
    /* Requests a timeline of all tasks for this many steps from `first_step` on. false: one is
     * being made, or none can be made. Optional. */
    bool (*trace)(void *asker, uint64_t first_step, int steps);
};

struct run_view { /* what hooks see; filled in by whoever runs the worker */
    const struct spec *spec;
    struct session *session;
    bool is_chief;
    int worker, workers, ps_count;
    uint64_t first_step;  /* global step where this process began */
    uint64_t global_step; /* BEFORE: of the values; COMPUTED, STEPPED: this step's number (from 1);
                             SAVED: of the snapshot; else the newest known */
    uint64_t last_step;   /* where the run ends; 0: unknown */
    uint64_t own_steps;   /* of this process */
    double loss, learning_rate, gradient_norm; /* of the last own step; norm 0: unknown */
    double rate_factor;                        /* factor on the rates of schedules in that step */
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
    /* Called when the spec is read. ERR_INPUT: attributes contradict each other, or the spec. */
    err (*check)(const void *attributes, const struct spec *);
    /* Called when the model exists. ERR_INPUT: attributes name values or metrics that it does not
     * have. Optional; begin() checks this, too. */
    err (*check_names)(const void *attributes, const struct run_view *);
    /* For hooks made from the keys of "train": sets the attributes, which hold their defaults, from
     * those keys; false: the keys ask for no such hook. */
    bool (*standard)(const struct run_view *, void *attributes);
    /* The global step before which this process must not compute; 0: none. */
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

/* When the values of a global step arrived, which is when a worker begins its step: read in BEFORE.
 * The end of a step would be wrong by the difference between this step's length and the usual one.
 */
struct step_time {
    uint64_t step, ns;
};
double steps_per_second(struct step_time from, struct step_time to); /* 0: not known */

/* The program's own hook, which is not in the spec. It is told of occasions before the other hooks,
 * of the end after them; only its `on` functions are called, and any error of it ends the job. */
struct own_hook {
    const struct hook *hook; /* NULL: none */
    void *state;             /* the caller's */
};

/* All hooks of one process, in TensorFlow's order: step counter, summaries, checkpoints, then the
 * spec's list. Fills in view->hooks and view->events, and begins each. */
err hooks_open(struct run_view *, const struct own_hook *own);
/* Checks the hooks of a run without running it: view has spec and session. */
err hooks_check(const struct run_view *);
void hooks_close(struct run_view *); /* without hooks is fine */
/* Tells all hooks, in order, up to the first that fails. A hook may cause another occasion
 * meanwhile. */
err hooks_tell(const struct run_view *, const struct occasion *);
/* From a hook, in BEFORE only: evaluates, and tells all hooks of it. */
err hooks_evaluate(const struct run_view *, struct evaluation *ret);
/* Whether there are evaluations before the end, by keys of "train" or by a hook of the list. */
bool hooks_evaluate_while_training(const struct spec *);
uint64_t hooks_wait_step(const struct hooks *); /* of global_step_waiter; 0: none */

#endif
