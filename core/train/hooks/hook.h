/* hook.h - what happens beside the steps: saving, summaries, logging, stopping early.
 *
 * A hook is one constant in a file of its own in core/train/hooks/, and its word in
 * core/train/hooks/meson.build: parsing, `dtrain help hook`, and the schema follow from the table.
 * A spec lists hooks under train.hooks ({"type": "early_stopping", ...}); those that TensorFlow's
 * MonitoredTrainingSession always has are made from the keys of "train" (save_checkpoint_secs,
 * save_summaries_steps, log_step_count_steps, ...) unless the list has one of that type.
 *
 * Hooks run in the thread that computes, so they must not wait. What a hook may look at depends on
 * the call: `before` and `computed` see values (and gradients, in `computed`) that nobody changes,
 * but every other worker may be waiting for this one meanwhile; `stepped` comes when the gradients
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

/* What hooks may ask for. */
struct run_asks {
    void (*save)(void *asker); /* a checkpoint, soon; nothing where one is being written */
    void (*stop)(void *asker, err kind, const char *why); /* OK: steps end, the rest is as usual */
    /* From `before` only. All hooks are told of the result by hooks_before itself, not by whoever
     * answers this. */
    err (*evaluate)(void *asker, struct evaluation *ret);
    /* A timeline of all tasks, of so many steps from `first_step` on, which comes by `traced`.
     * false: one is being made, or there is nobody who can make one. Optional. */
    bool (*trace)(void *asker, uint64_t first_step, int steps);
};

struct run_view { /* what hooks see; filled in by whoever runs the worker */
    const struct spec *spec;
    struct session *session;
    bool is_chief;
    int worker, workers, ps_count;
    uint64_t first_step;  /* global step where this process began */
    uint64_t global_step; /* before: of the values; computed, stepped: the number that this step has
                             (from 1); saved, evaluated, end: the newest known */
    uint64_t last_step;   /* where the run ends; 0: unknown */
    uint64_t own_steps;   /* of this process */
    double loss, learning_rate, gradient_norm; /* of the last own step; norm 0 where unknown */
    uint64_t staleness;  /* async: updates between the values of the last answered step and its
                            gradient's turn */
    double push_seconds; /* from the last push to the last of its answers */
    double wall_s;       /* unix time of this call */
    uint64_t now_ns;     /* steady clock of this call */
    const char *checkpoint_dir, *summary_dir; /* absolute, NULL: none */
    struct events *events;                    /* NULL: none; shared by all hooks of this process */
    const struct run_asks *asks;
    void *asker;
};

struct hook { /* any function may be NULL */
    struct object object;
    size_t state_bytes;   /* zeroed memory for each instance */
    bool on_every_worker; /* false: the chief alone */
    /* When the spec is read: ERR_INPUT where attributes do not fit together, or not to the spec. */
    err (*check)(const void *attributes, const struct spec *);
    /* Of the hooks that the keys of "train" make: changes attributes, which hold their defaults, to
     * what the keys say; false: they ask for none. */
    bool (*standard)(const struct run_view *, void *attributes);
    /* The global step before which this process computes nothing; 0: it does not wait. */
    uint64_t (*wait_step)(const void *state);
    err (*begin)(void *state, const void *attributes, const struct run_view *);
    /* values of view->global_step are there: at the start and after each recovery */
    err (*adopted)(void *state, const struct run_view *);
    err (*before)(void *state, const struct run_view *);
    err (*computed)(void *state, const struct run_view *);
    err (*stepped)(void *state, const struct run_view *);
    /* prefix of the new checkpoint; NULL: it failed, why says more */
    err (*saved)(void *state, const struct run_view *, const char *prefix, const char *why);
    err (*evaluated)(void *state, const struct run_view *, const struct evaluation *);
    err (*traced)(void *state, const struct run_view *, const struct timeline *);
    err (*end)(void *state, const struct run_view *, int code); /* code of the verdict */
    void (*close)(void *state);
};
extern const struct kinds hook_kinds; /* key "type" */

/* TensorFlow's SecondOrStepTimer: exactly one of the two is set; due at the first question, never
 * twice for one step. */
struct hook_timer {
    double every_secs;   /* 0: by steps */
    int64_t every_steps; /* 0: by secs */
    bool has_fired;
    uint64_t fired_step, fired_ns;
};
bool hook_timer_is_due(const struct hook_timer *, uint64_t step, uint64_t now_ns);
void hook_timer_fired(struct hook_timer *, uint64_t step, uint64_t now_ns);

/* All hooks of one process, in TensorFlow's order: step counter, summaries, checkpoints, then the
 * spec's list. */
struct hooks;
err hooks_open(const struct run_view *, struct hooks **ret); /* calls begin() */
void hooks_close(struct hooks *);                            /* NULL is fine */
err hooks_adopted(struct hooks *, const struct run_view *);
err hooks_before(struct hooks *, const struct run_view *);
err hooks_computed(struct hooks *, const struct run_view *);
err hooks_stepped(struct hooks *, const struct run_view *);
err hooks_saved(struct hooks *, const struct run_view *, const char *prefix, const char *why);
err hooks_evaluated(struct hooks *, const struct run_view *, const struct evaluation *);
err hooks_traced(struct hooks *, const struct run_view *, const struct timeline *);
err hooks_end(struct hooks *, const struct run_view *, int code);
uint64_t hooks_wait_step(const struct hooks *); /* of global_step_waiter: 0 none */

#endif
