/* nan.c - what happens when the loss is not finite.
 *
 * By default the step fails, and the job with it (core/train/session/step.c). With this hook and
 * fail_on_nan_loss false the run is stopped instead: the gradients of that step become zero before
 * they are pushed, so that the last checkpoint holds numbers.
 */
#include <math.h>

#include "core/base/log.h"
#include "core/train/hooks/hook.h"

struct nan {
    bool fail_on_nan_loss;
};

struct state {
    bool tolerates;
};

static const struct field fields[] = {
    FIELD_OF("fail_on_nan_loss", BOOL, struct nan, fail_on_nan_loss, .fallback = "true",
             .help = "false: a loss that is NaN or infinite ends training as if the last step were "
                     "reached"),
    {0},
};

static err begin(void *state, const void *attributes, const struct run_view *view)
{
    const struct nan *a = attributes;
    struct state *s = state;
    s->tolerates = !a->fail_on_nan_loss;
    if (s->tolerates) view->session->tolerates_nan = true;
    return OK;
}

/* The last chance: next the gradients are pushed. */
static err computed(void *state, const struct run_view *view, const struct occasion *o)
{
    const struct state *s = state;
    if (isfinite(view->loss)) return OK;
    const err e = session_fail_loss(view->session, view->loss);
    if (!s->tolerates) return e;
    log_line(LOG_WARNING, "%s; training is stopped", error_text());
    session_clear_gradients(view->session);
    view->asks->stop(view->asker, OK, error_text());
    return OK;
}

const struct hook hook_nan = {
    .object = {.name = "nan",
               .summary = "decides whether a loss that is not finite fails the job or stops it",
               .fields = fields,
               .size = sizeof(struct nan)},
    .state_bytes = sizeof(struct state),
    .on_every_worker = true,
    .begin = begin,
    .on = {[OCCASION_COMPUTED] = computed},
};
