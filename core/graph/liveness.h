/* liveness.h - which buffers a step needs, and when.
 *
 * Time: node i of n runs forward at i, the loss at n, node i backward at 2n - i. A view is no node
 * of its own here: whatever is said about it is said about its root, the node (or the input) whose
 * memory it shows.
 */
#ifndef CORE_GRAPH_LIVENESS_H
#define CORE_GRAPH_LIVENESS_H

#include "core/graph/graph.h"
#include "core/graph/packing.h"

enum buffer_role { ROLE_VALUE, ROLE_GRADIENT, ROLE_SAVED, ROLE_LOSSES, ROLE_INPUT };

struct use {
    enum buffer_role role;
    struct tensor *tensor; /* whose buffer it is; NULL for LOSSES */
    int head;              /* of LOSSES: whose */
};

/* The buffers of a graph: buffer[i] is what use[i] says. */
struct liveness {
    int count;
    struct packed_buffer *buffer;
    struct use *use;
    struct packed_buffer **order; /* room for packing_place */
};

/* Takes memory, so ERR_MEMORY; graph itself is not changed. */
err liveness_open(struct graph *, struct liveness *ret);
void liveness_close(struct liveness *);

/* Sets node->add: what runs first in backward overwrites an input's gradient, all others add. */
err liveness_mark_adds(struct graph *);

#endif
