/* ascent.h - the order in which values are copied to a device with memory of its own: the order in
 * which nodes read them, in pieces that are each worth a transfer, so that the first nodes compute
 * while the values of the last are still being copied. */
#ifndef CORE_TRAIN_SESSION_ASCENT_H
#define CORE_TRAIN_SESSION_ASCENT_H

#include "core/graph/graph.h"
#include "core/train/session/mirror.h"

struct ascent {
    struct device *device; /* borrowed; NULL: not used, all is copied before the first node runs */
    struct rising {
        int ps;
        struct range range;
        int mark; /* set after this piece, if it is the last one with that mark */
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

/* Queues the copies of all pieces beside what is computed now. false: some values are not pinned,
 * and nothing was done. */
bool ascent_begin(const struct ascent *, const struct mirror *);
/* Work queued after this call sees the values of that node. */
void ascent_follow(const struct ascent *, int node);

#endif
