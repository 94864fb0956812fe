/* check_warm_start.c - checks that the checkpoint of train.warm_start has the wanted variables. */
#include "cmd/check.h"
#include "core/train/checkpoint/bundle/bundle.h"
#include "core/train/checkpoint/checkpoints.h"
#include "core/train/session/warm_start.h"

/* A run with a checkpoint of its own resumes from that instead. */
static bool is_wanted(const struct train_spec *train)
{
    char own[CHECKPOINT_PATH_MAX];
    if (!train->warm_start.checkpoint) return false;
    return !train->checkpoint.dir || checkpoint_find(train->checkpoint.dir, own) != OK;
}

/* Growing tables are skipped: their rows are not in slices. */
static err check_values(struct bundle *bundle, const struct session *session)
{
    const struct layout *layout = session->layout;
    struct arena arena = {0};
    struct warm_start_plan plan;
    err e = session_plan_warm_start(session, bundle, &arena, &plan);
    for (int i = 0; !e && i < layout->all_count; i++) {
        const struct table_spec *table = layout->variables[layout->slices[i].variable].table;
        if (table && table->growth) continue;
        e = shard_check_values(bundle, &plan.how, &layout->slices[i], 1);
    }
    if (!e && plan.line_count) warm_start_log(&plan, bundle_prefix(bundle));
    arena_free(&arena);
    return e;
}

err check_warm_start(const struct spec *spec, const struct session *session)
{
    const struct warm_start_spec *warm = &spec->train.warm_start;
    struct bundle *bundle = NULL;
    char prefix[CHECKPOINT_PATH_MAX];
    if (!is_wanted(&spec->train)) return OK;
    err e = checkpoint_find(warm->checkpoint, prefix);
    if (!e) e = bundle_open(prefix, &bundle);
    if (!e) e = check_values(bundle, session);
    bundle_close(bundle);
    return e ? fail_prefix(e, "%s: train.warm_start", spec->source) : OK;
}
