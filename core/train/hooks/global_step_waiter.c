/* global_step_waiter.c - a worker that begins late.
 *
 * Asynchronous training starts more calmly with few workers than with many: a worker that waits
 * until the others have taken some steps starts from better values. The runner of the worker does
 * the waiting (hooks_wait_step), since a hook must not wait.
 */
#include "core/train/hooks/hook.h"

struct global_step_waiter {
    int64_t wait_until_step;
};

static const struct field fields[] = {
    FIELD_OF("wait_until_step", INT, struct global_step_waiter, wait_until_step, .min = 0,
             .max = STEPS_MAX,
             .help = "the global step that the other workers must have reached; 0: no waiting"),
    {0},
};

/* If every worker takes part in every step, one that waits would wait for itself. */
static err check(const void *attributes, const struct spec *spec)
{
    if (spec->train.mode == MODE_ASYNC) return OK;
    return fail(ERR_INPUT, "has a meaning with mode async only");
}

/* One spec is for all workers, and one of them has to begin: the chief. */
static err begin(void *state, const void *attributes, const struct run_view *view)
{
    const struct global_step_waiter *a = attributes;
    uint64_t *step = state;
    *step = view->is_chief ? 0 : (uint64_t)a->wait_until_step;
    return OK;
}

static uint64_t wait_step(const void *state)
{
    return *(const uint64_t *)state;
}

const struct hook hook_global_step_waiter = {
    .object = {.name = "global_step_waiter",
               .summary = "delays workers other than the chief until the global step is reached",
               .fields = fields,
               .size = sizeof(struct global_step_waiter)},
    .state_bytes = sizeof(uint64_t),
    .on_every_worker = true,
    .check = check,
    .begin = begin,
    .wait_step = wait_step,
};
