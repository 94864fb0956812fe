/* liveness.h - which buffers a step needs, and when.
 *
 * Time: of n nodes, node i runs forward at i, the loss at n, node i backward at 2n - i. A view has
 * no lifetime of its own here: uses of it count as uses of its root, the node (or the input) whose
 * memory it shows.
 */
#ifndef CORE_GRAPH_LIVENESS_H
#define CORE_GRAPH_LIVENESS_H

#include "core/graph/graph.h"
#include "core/graph/packing.h"

enum buffer_role { ROLE_VALUE, ROLE_GRADIENT, ROLE_SAVED, ROLE_LOSSES, ROLE_INPUT };

struct use {
    enum buffer_role role;
    struct tensor *tensor; /* the tensor that gets the buffer; NULL for ROLE_LOSSES */
    int head;              /* index of the head, for ROLE_LOSSES */
};

/* The buffers of a graph: buffer[i] is for use[i]. */
struct liveness {
    int count;
    struct packed_buffer *buffer;
    struct use *use;
    struct packed_buffer **order; /* scratch memory for packing_place */
};

/* ERR_MEMORY. Of the graph only loss_node.apart is set. */
err liveness_open(struct graph *, struct liveness *ret);
void liveness_close(struct liveness *);

/* Sets node->add: the first node in backward to reach an input's gradient overwrites it, later ones
 * add. ERR_MEMORY */
err liveness_mark_adds(struct graph *);

#endif
