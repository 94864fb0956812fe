/* ascent.h - the order in which values go up to a device with memory of its own: that in which
 * nodes read them, in pieces that are worth a transfer each, so that the first nodes compute while
 * the values of the last are on their way. */
#ifndef CORE_TRAIN_SESSION_ASCENT_H
#define CORE_TRAIN_SESSION_ASCENT_H

#include "core/graph/graph.h"
#include "core/train/session/mirror.h"

struct ascent {
    struct device
        *device; /* borrowed; NULL: there is none, and values go up before the first node */
    struct rising {
        int ps;
        struct range range;
        int mark; /* that is set behind it, if it is the last of that number */
    } * pieces;
    int piece_count;
    struct mark **marks;
    int mark_count;
    int *of_node; /* [nodes of the graph]: the mark behind its values; -1: it has none */
};

/* Every float of every block is in one piece. Lists live in the arena. */
err ascent_open(const struct mirror *, const struct layout *, const struct graph *, struct arena *,
                struct ascent *ret);
void ascent_close(struct ascent *); /* a zeroed one is fine */

/* Queues all of it beside what is computed now; false: somebody's values are not pinned, and
 * nothing was done. */
bool ascent_begin(const struct ascent *, const struct mirror *);
/* What is queued next sees the values of that node. */
void ascent_follow(const struct ascent *, int node);

#endif
