/* interaction.h - shared by ops that read several vectors of each example. */
#ifndef CORE_OPS_INTERACTIONS_INTERACTION_H
#define CORE_OPS_INTERACTIONS_INTERACTION_H

#include "core/graph/op.h"

/* Checks the inputs: one of [batch, vectors, width] with two vectors or more, or several of [batch,
 * width]. ERR_INPUT. The op sets the output's shape. */
err interaction_infer(struct node *, struct arena *);

/* Arguments for the kernels; with gradients if the node has any. */
struct interaction interaction_of(const struct node *);

/* One input, and several; a single pair; widths around those of vector registers */
extern const struct op_case interaction_cases[];

#endif
