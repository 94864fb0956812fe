/* warm.c - whether the patterns of train.warm_start speak of anything that the model has.
 */
#include "core/train/checkpoint/shard.h"
#include "core/train/session/session_inside.h"

/* What a checkpoint of this run would hold. */
static const char *const *names_of(struct session *s, int *ret_count)
{
    const struct graph *g = s->graph;
    const struct variant *chosen = &s->options.spec->optimizer.optimizer;
    const struct optimizer *optimizer = chosen->kind->descriptor;
    const int slots = optimizer_slots(optimizer, chosen->attributes);
    const size_t count = (size_t)g->param_count * (size_t)(1 + slots) + POWERS_MAX;
    const char **names = arena_array(&s->arena, count, sizeof *names);
    int at = 0;
    for (int i = 0; i < g->param_count; i++) {
        names[at++] = g->params[i]->name;
        for (int k = 0; k < slots; k++)
            names[at++] =
                arena_format(&s->arena, "%s/%s", g->params[i]->name, optimizer->slot[k].name);
    }
    for (int i = 0; i < optimizer->power_count; i++) names[at++] = optimizer->power[i].name;
    *ret_count = at;
    return names;
}

err session_check_warm_start(struct session *s)
{
    const struct warm_start_spec *spec = &s->options.spec->train.warm_start;
    const struct warm_start warm = {
        .maps = spec->maps.at,
        .map_count = spec->maps.count,
        .skips = spec->skip.at,
        .skip_count = spec->skip.count,
    };
    int count;
    if (!spec->checkpoint) return OK;
    const char *const *names = names_of(s, &count);
    err e = warm_start_check(&warm, names, count, &s->arena);
    return e ? fail_prefix(e, "train.warm_start") : OK;
}
