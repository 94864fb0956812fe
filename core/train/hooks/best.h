/* best.h - the best checkpoints of a run by its own evaluations (train.keep_best), and at its end
 * the values of the best one (train.restore_best).
 *
 * A checkpoint and an evaluation belong together where one was asked for because of the other: the
 * hook `evaluation` asks for a checkpoint at the end of a step, and evaluates when the next one
 * begins, from the values that are saved (synchronously just these; else others may have pushed
 * since). So do two that happen to be of one step.
 */
#ifndef CORE_TRAIN_HOOKS_BEST_H
#define CORE_TRAIN_HOOKS_BEST_H

#include "core/train/hooks/hook.h"

struct best;

/* Index for evaluation_value() of the number by which they are the best. ERR_INPUT: the spec has
 * none of that name. */
err best_find_metric(const struct run_view *, int *ret);
/* *ret NULL: none are kept. ERR_INPUT: of the metric, or of what is kept there already. */
err best_open(const struct run_view *, struct best **ret);
void best_close(struct best *); /* NULL is fine */

/* ERR_INPUT: a run that starts over would find the best of another one. */
err best_adopted(struct best *, const struct run_view *, bool is_first);
void best_begun(struct best *, const struct run_view *); /* a checkpoint that was asked for */
/* Of values that could not be saved: whether they would be among the best. */
bool best_missed(struct best *, const struct run_view *, const struct evaluation *);
err best_saved(struct best *, const struct run_view *, const char *prefix);
enum best_kind { BEST_OF_PAIR, BEST_ALONE, BEST_LAST };
/* Of the checkpoint that was asked for, of any other values, or of the last ones: then it restores,
 * where that is wanted. */
err best_evaluated(struct best *, const struct run_view *, const struct evaluation *,
                   enum best_kind);

#endif
