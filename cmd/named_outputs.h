/* named_outputs.h - what --outputs names: heads, and nodes as they are. */
#ifndef CMD_NAMED_OUTPUTS_H
#define CMD_NAMED_OUTPUTS_H

#include "core/base/arena.h"
#include "core/graph/graph.h"

struct named_output {
    bool is_head;
    int index; /* of the head, or of the node */
};

/* --outputs=user,click as two words */
err named_outputs_split(struct strings *, const char *flag, int max, struct arena *);
/* Where a head and a node have one name, the head is meant: of the unnamed head "probability" or
 * what else is said. ERR_INPUT: there is none. */
err named_output_find(const struct graph *, const char *name, struct named_output *ret);

#endif
