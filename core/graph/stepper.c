/* stepper.c - see stepper.h. */
#include "core/graph/stepper.h"

#include "core/base/log.h"

void stepper_open(struct plan *plan, struct stepper *ret)
{
    const struct async *async = plan->device->kernels->async;
    *ret = (struct stepper){.plan = plan, .records_nothing = !async || !async->record};
}

/* ---- ahead ---- */

/* Index of the node where the pass continues. Nodes run in vain may have overwritten the batch. */
static int resume(struct stepper *s)
{
    if (s->was_ahead) plan_load_again(s->plan);
    s->was_ahead = false;
    return s->ahead;
}

int stepper_run_ahead(struct stepper *s, plan_needed *needed, void *context)
{
    if (s->records_nothing) s->ahead = plan_compute(s->plan, resume(s), needed, context);
    return s->ahead;
}

void stepper_forget_ahead(struct stepper *s)
{
    s->was_ahead |= s->ahead > 0;
    s->ahead = 0;
}

/* ---- a pass ---- */

static void queue(struct stepper *s, const struct pass *pass)
{
    struct plan *plan = s->plan;
    if (pass->begin) pass->begin(pass->context);
    plan_compute(plan, resume(s), pass->needed, pass->context);
    s->ahead = 0;
    plan_judge(plan, pass->rows);
    plan_backward(plan, pass->add, pass->finished, pass->context);
}

/* Recording does not execute the pass. Errors of a broken device show when it is executed. */
static err record(struct stepper *s, const struct pass *pass, struct recording **ret)
{
    struct device *d = s->plan->device;
    const struct async *async = d->kernels->async;
    TRY(async->record(d));
    queue(s, pass);
    return async->record_end(d, ret);
}

/* Whether the pass may be recorded: not while nodes are timed one by one. */
static bool is_repeated(const struct stepper *s, const struct pass *pass)
{
    return !s->records_nothing && !s->plan->trace && pass->rows == s->plan->graph->batch;
}

static void replay(const struct plan *plan, const struct recording *recording)
{
    struct device *d = plan->device;
    const struct graph *graph = plan->graph;
    if (d->kernels->mark)
        d->kernels->mark(d, "recorded pass with loss", graph->heads[0].loss.loss->object.name);
    d->kernels->async->replay(d, recording);
}

void stepper_run(struct stepper *s, const struct pass *pass)
{
    const int kind = (pass->add ? 1 : 0) + (pass->finished ? 2 : 0);
    struct recording **recording = &s->kind[kind].recording;
    const bool is_repeat = is_repeated(s, pass), is_second = s->kind[kind].is_known;
    s->kind[kind].is_known = true;
    if (is_repeat && is_second && !*recording && record(s, pass, recording)) {
        log_line(LOG_INFO, "steps are not recorded for the GPU but queued one by one: %s",
                 error_text());
        s->records_nothing = true;
    }
    if (is_repeat && *recording)
        replay(s->plan, *recording);
    else
        queue(s, pass);
}

void stepper_forget(struct stepper *s)
{
    stepper_forget_ahead(s);
    for (int i = 0; i < PASS_KINDS; i++) {
        struct recording *recording = s->kind[i].recording;
        if (recording) {
            struct device *d = s->plan->device;
            d->kernels->async->recording_close(d, recording);
        }
        s->kind[i].recording = NULL;
    }
}
