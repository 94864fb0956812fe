/* best_loss.c - a hook of one's own: whenever an evaluation is better than all before it, a line
 * says so and a checkpoint is asked for.
 *
 * To add it, copy this file to core/train/hooks/ and put the word 'best_loss' into the list in
 * core/train/hooks/meson.build. Nothing else is needed: `dtrain help hook best_loss` shows it, the
 * JSON Schema knows it, and a spec can say
 *
 *     "train": {..., "checkpoint_dir": "run", "evaluate_every_steps": 500,
 *               "hooks": [{"type": "best_loss", "margin": 0.001}]}
 *
 * core/train/hooks/hook.h says when each function is called and what it may look at there. In
 * short: keep what lasts in the state (it begins as zeros, one for each time that the spec lists
 * the hook), do not wait, and return an error only where the job must end.
 */
#include <inttypes.h>

#include "core/base/log.h"
#include "core/train/hooks/hook.h"

/* What the spec says of it: filled in from the table below. */
struct best_loss {
    double margin;
};

struct state {
    double margin;
    bool has_best;
    double best;
};

static const struct field fields[] = {
    {.name = "margin",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct best_loss, margin),
     .fallback = "0",
     .min = 0,
     .max = 1e30,
     .help = "how much smaller than the best so far a loss must be"},
    {0},
};

/* When the spec is read: what the table cannot say. */
static err check(const void *attributes, const struct spec *spec)
{
    if (!spec->train.checkpoint.dir) return fail(ERR_INPUT, "needs train.checkpoint_dir");
    return OK;
}

static err begin(void *state, const void *attributes, const struct run_view *view)
{
    const struct best_loss *a = attributes;
    struct state *s = state;
    s->margin = a->margin;
    return OK;
}

static err evaluated(void *state, const struct run_view *view, const struct occasion *o)
{
    struct state *s = state;
    const struct evaluation *evaluation = o->evaluated.evaluation;
    if (evaluation->rows == 0) return OK;
    if (s->has_best && !(evaluation->loss < s->best - s->margin)) return OK;
    s->has_best = true;
    s->best = evaluation->loss;
    log_line(LOG_INFO, "best loss so far: %.6g at step %" PRIu64, s->best, view->global_step);
    view->asks->save(view->asker);
    return OK;
}

extern const struct hook hook_best_loss; /* the table that meson makes declares it too */

const struct hook hook_best_loss = {
    .object = {.name = "best_loss",
               .summary = "asks for a checkpoint whenever an evaluation is the best so far",
               .fields = fields,
               .size = sizeof(struct best_loss)},
    .state_bytes = sizeof(struct state),
    .check = check,
    .begin = begin,
    .on = {[OCCASION_EVALUATED] = evaluated},
};
