/* named_outputs.c - see named_outputs.h. */
#include "cmd/named_outputs.h"

#include <string.h>

#include "core/base/fields/fields.h"

err named_outputs_split(struct strings *names, const char *flag, int max, struct arena *arena)
{
    struct strings split = {arena_array(arena, (size_t)max, sizeof *split.at), 0};
    for (int i = 0; i < names->count; i++)
        for (const char *at = names->at[i]; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
            const int length = (int)strcspn(at, ",");
            if (!length) return fail(ERR_INPUT, "%s=%.64s: an empty name", flag, names->at[i]);
            if (split.count == max) return fail(ERR_INPUT, "%s: more than %d names", flag, max);
            split.at[split.count++] = arena_format(arena, "%.*s", length, at);
        }
    *names = split;
    return OK;
}

/* "click", or for an unnamed head "probability" */
static const char *head_said(const struct head *head)
{
    const enum prediction predicts = head->loss.loss->predicts;
    if (head->name) return head->name;
    if (predicts == PREDICTS_NUMBER) return "values";
    if (predicts == PREDICTS_CLASS) return "probabilities";
    return shape_count_from(&head->loss.logits->shape, 1) > 1 ? "probabilities" : "probability";
}

/* Suggests the nearest name */
static err fail_output(const struct graph *graph, const char *name)
{
    const char *names[HEADS_MAX + NODES_MAX];
    int count = 0;
    for (int i = 0; i < graph->head_count; i++) names[count++] = head_said(&graph->heads[i]);
    for (int i = 0; i < graph->node_count; i++) names[count++] = graph->nodes[i].name;
    return fail(ERR_INPUT, "--outputs=%.64s: no head and no node has this name%s", name,
                suggest(name, names, count).text);
}

err named_output_find(const struct graph *graph, const char *name, struct named_output *ret)
{
    for (int i = 0; i < graph->head_count; i++)
        if (strcmp(head_said(&graph->heads[i]), name) == 0) {
            *ret = (struct named_output){true, i};
            return OK;
        }
    for (int i = 0; i < graph->node_count; i++)
        if (strcmp(graph->nodes[i].name, name) == 0) {
            *ret = (struct named_output){false, i};
            return OK;
        }
    return fail_output(graph, name);
}
