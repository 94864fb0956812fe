/* interaction.h - what ops share that read several vectors of each example. */
#ifndef CORE_OPS_INTERACTIONS_INTERACTION_H
#define CORE_OPS_INTERACTIONS_INTERACTION_H

#include "core/graph/op.h"

/* One input of [batch, vectors, width], two vectors or more, or several of [batch, width]. The
 * op sets the output's shape. */
err interaction_infer(struct node *, struct arena *);

/* What a kernel wants; gradients are in it where the node has any. */
struct interaction interaction_of(const struct node *);

/* Of one input and of several; a single pair; widths beside those of registers */
extern const struct op_case interaction_cases[];

#endif
