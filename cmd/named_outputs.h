/* named_outputs.h - resolves the names of --outputs: heads, or raw outputs of nodes. */
#ifndef CMD_NAMED_OUTPUTS_H
#define CMD_NAMED_OUTPUTS_H

#include "core/base/arena.h"
#include "core/graph/graph.h"

struct named_output {
    bool is_head;
    int index; /* of the head, or of the node */
};

/* Splits --outputs=user,click */
err named_outputs_split(struct strings *, const char *flag, int max, struct arena *);
/* If a head and a node have the same name, the head is meant; an unnamed head is called by what it
 * outputs, as "probability". ERR_INPUT: no such name. */
err named_output_find(const struct graph *, const char *name, struct named_output *ret);

#endif
