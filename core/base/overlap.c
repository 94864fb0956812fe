/* overlap.c - see overlap.h. */
#include "core/base/overlap.h"

#include <stdio.h>

/* In asynchronous training gradients that leave early delay the values that another worker waits
 * for: two workers that were in step get out of it. So the gradients of one node are not cut then.
 */
unsigned overlap_of_step(const struct overlap_step *s)
{
    const bool travels = !s->is_alone && s->parts != PARTS_NEVER && !s->has_towers;
    const bool exchanges = travels && !s->is_mirrored;
    const bool can_leave = exchanges ? !s->is_looked_at : s->is_mirrored && s->mirror_lets_leave;
    const bool is_simple = !s->sums_batches && !s->has_rows && !s->has_inlet;
    unsigned plan = 0;
    if (exchanges) plan |= OVERLAP_FORWARD;
    if (exchanges && s->is_sync) plan |= OVERLAP_WITHIN_NODE;
    if (exchanges && is_simple && s->knows_next_batch) plan |= OVERLAP_SPECULATE;
    if (can_leave && !s->clips && !s->has_towers) plan |= OVERLAP_BACKWARD;
    if (plan & OVERLAP_BACKWARD && s->is_mirrored && travels && !s->is_looked_at)
        plan |= OVERLAP_ONWARD;
    return plan;
}

/* A gradient that comes in parts would occupy the window lent to it for as long as its worker
 * computes; in rounds of all workers windows are lent in an order that allows for that (ps_pool.c).
 */
unsigned overlap_of_rounds(const struct overlap_rounds *r)
{
    unsigned plan = 0;
    const bool can = r->takes_all && !r->lends && r->can_undo && !r->is_looked_at;
    if (can && r->is_wanted) plan |= OVERLAP_ADVANCE;
    if (r->lends && !r->takes_all) plan |= OVERLAP_WHOLE_PUSHES;
    return plan;
}

/* Within one host parts cost work and gain nothing, unless they help a worker on another host
 * (ADVANCE). And if all workers are on other hosts and are answered one after another, sending
 * values in parts would delay them for all. */
unsigned overlap_of_link(const struct overlap_link *l)
{
    unsigned plan = 0;
    const bool carries = l->parts != PARTS_NEVER && !l->shares_memory;
    const bool is_cut = carries && (l->parts == PARTS_ALWAYS || !l->is_near);
    const bool helps = l->rounds & OVERLAP_ADVANCE;
    if (is_cut) plan |= OVERLAP_IN_PARTS;
    if ((is_cut || helps) && !(l->rounds & OVERLAP_WHOLE_PUSHES)) plan |= OVERLAP_GRADIENTS;
    if (is_cut || helps) plan |= OVERLAP_VALUES;
    if (is_cut && (l->is_sync || !l->all_are_far)) plan |= OVERLAP_REST;
    return plan;
}

const char *overlap_text(unsigned plan, char ret[OVERLAP_TEXT_MAX])
{
    static const char *const words[OVERLAP_BITS] = {
        "values during forward",
        "gradients during backward",
        "gradients within a node",
        "speculative forward",
        "values before a round ends",
        "whole pushes",
        "parts in any order",
        "parts of pushes",
        "parts of values",
        "values behind their message",
        "gradients onward as they come from the device",
    };
    int used = 0;
    ret[0] = '\0';
    for (int i = 0; i < OVERLAP_BITS; i++)
        if (plan & 1u << i)
            used += snprintf(ret + used, (size_t)(OVERLAP_TEXT_MAX - used), "%s%s",
                             used ? ", " : "", words[i]);
    return used ? ret : "nothing";
}
