/* time_limit.c - ends training after a given time, such as the time limit of a batch job.
 *
 * An ordinary end: the last checkpoint is written and the exit code is 0, so that the next run with
 * the same checkpoint_dir continues from there, with the same time again.
 */
#include "core/base/log.h"
#include "core/train/hooks/hook.h"

enum { NS_IN_S = 1000000000 };

struct time_limit {
    double secs;
};

struct state {
    double secs;
    bool has_begun, has_stopped;
    uint64_t begin_ns;
};

static const struct field fields[] = {
    FIELD_OF(
        "secs", FLOAT, struct time_limit, secs, .min = 0.001, .max = 1e9,
        .help = "seconds from the chief's first step to its last; saving and evaluating at the end "
                "come on top"),
    {0},
};

static err begin(void *state, const void *attributes, const struct run_view *view)
{
    ((struct state *)state)->secs = ((const struct time_limit *)attributes)->secs;
    return OK;
}

/* Only at the first start: a recovery does not extend the time. */
static err before(void *state, const struct run_view *view, const struct occasion *o)
{
    struct state *s = state;
    if (!s->has_begun) s->begin_ns = view->now_ns;
    s->has_begun = true;
    return OK;
}

static err stepped(void *state, const struct run_view *view, const struct occasion *o)
{
    struct state *s = state;
    char why[ERROR_TEXT_MAX];
    if (s->has_stopped || (double)(view->now_ns - s->begin_ns) < s->secs * NS_IN_S) return OK;
    snprintf(why, sizeof why, "%.6g s of training are over (time_limit)", s->secs);
    log_line(LOG_INFO, "%s; training is stopped", why);
    s->has_stopped = true;
    view->asks->stop(view->asker, OK, why);
    return OK;
}

const struct hook hook_time_limit = {
    .object = {.name = "time_limit",
               .summary = "ends training after a given time",
               .fields = fields,
               .size = sizeof(struct time_limit)},
    .state_bytes = sizeof(struct state),
    .begin = begin,
    .on = {[OCCASION_BEFORE] = before, [OCCASION_STEPPED] = stepped},
};
