/* runner_worker_resize.c - the chief's checks before it resizes the job to another membership. */
#include "core/cluster/runner/runner_worker_inside.h"
#include "core/train/session/rows.h"

static err check_workers(const struct runner_worker *w, int workers)
{
    const struct spec *spec = w->options.spec;
    if (workers < spec->train.absence.min_workers)
        return fail(ERR_INPUT, "with fewer workers than train.min_workers (%lld) the job would end",
                    (long long)spec->train.absence.min_workers);
    if (rows_are_used(&w->session.rows) && setup_gradients_per_push(spec, workers, 0) > 1)
        return fail(ERR_INPUT,
                    "train.replicas_to_aggregate: at most one per worker where the model "
                    "has tables of rows");
    return OK;
}

/* Variables may be pinned to a ps that would not exist. */
static err check_ps(const struct runner_worker *w, int ps)
{
    const struct layout *now = w->session.layout;
    struct layout *layout;
    struct arena arena = {0};
    const err e = layout_make(&w->options.spec->placement, now->variables, now->variable_count, ps,
                              &arena, &layout);
    arena_free(&arena);
    return e;
}

static err check(const struct runner_worker *w, const struct membership *wanted)
{
    const struct spec *spec = w->options.spec;
    struct cluster_spec tried = *w->options.task.cluster;
    if (!spec->train.checkpoint.dir)
        return fail(ERR_INPUT,
                    "a job is resized through a checkpoint: it needs a train.checkpoint_dir");
    if (spec_is_in_graph(spec))
        return fail(ERR_INPUT, "with \"replication\": \"in_graph\" a job has its tasks for good");
    if (!w->session.data.train->rows && !spec_hands_out(spec))
        return fail(ERR_INPUT, "data that synchronous workers follow are shared out for good");
    TRY(cluster_resize(&tried, wanted));
    TRY(check_workers(w, wanted->count[JOB_WORKER]));
    return check_ps(w, wanted->count[JOB_PS]);
}

void runner_worker_check_scale(struct runner_worker *w, const struct message *m)
{
    struct membership wanted;
    const bool is_wrong = membership_unpack(m, &wanted) && check(w, &wanted);
    worker_role_refuse_scale(w->task.role, is_wrong ? error_text() : NULL);
}
