/* best.h - the best checkpoints of a run by its own evaluations (train.keep_best), and at its end
 * the values of the best one (train.restore_best).
 *
 * A checkpoint and an evaluation belong together where both are of one global step, whichever comes
 * first: the hook `evaluation` asks for a checkpoint at the end of a step, and evaluates when the
 * next one begins, from the values that were saved.
 */
#ifndef CORE_TRAIN_HOOKS_BEST_H
#define CORE_TRAIN_HOOKS_BEST_H

#include "core/train/hooks/hook.h"

struct best;

/* *ret NULL: none are kept. ERR_INPUT: of the metric, or of what is kept there already. */
err best_open(const struct run_view *, struct best **ret);
void best_close(struct best *); /* NULL is fine */

/* ERR_INPUT: a run that starts over would find the best of another one. */
err best_begin(struct best *, const struct run_view *);
/* Of values that could not be saved. Returns whether they would be among the best. */
bool best_missed(struct best *, const struct run_view *, const struct evaluation *);
err best_saved(struct best *, const struct run_view *, const char *prefix);
/* The last one: restores, where that is wanted. */
err best_evaluated(struct best *, const struct run_view *, const struct evaluation *, bool is_last);

#endif
