/* best.h - the best checkpoints of a run by its own evaluations (train.keep_best), and at its end
 * the values of the best one (train.restore_best).
 *
 * A checkpoint is paired with an evaluation of the same values: the hook `evaluation` asks for a
 * checkpoint at the end of a step, and evaluates when the next one begins, from the saved values
 * (exactly in synchronous training; else others may have pushed since). Checkpoints and evaluations
 * that happen to be of the same step are paired, too.
 */
#ifndef CORE_TRAIN_HOOKS_BEST_H
#define CORE_TRAIN_HOOKS_BEST_H

#include "core/train/hooks/hook.h"

struct best;

/* Index, for evaluation_value(), of the metric that decides. ERR_INPUT: the spec has none of that
 * name. */
err best_find_metric(const struct run_view *, int *ret);
/* *ret NULL: none are kept. ERR_INPUT: the metric, or the stored best.json. */
err best_open(const struct run_view *, struct best **ret);
void best_close(struct best *); /* NULL is fine */

/* ERR_INPUT: a run that starts over found the best checkpoints of another one. */
err best_adopted(struct best *, const struct run_view *, bool is_first);
void best_begun(struct best *, const struct run_view *); /* a requested checkpoint has begun */
/* For values that could not be saved: whether they would be among the best. */
bool best_missed(struct best *, const struct run_view *, const struct evaluation *);
err best_saved(struct best *, const struct run_view *, const char *prefix);
enum best_kind { BEST_OF_PAIR, BEST_ALONE, BEST_LAST };
/* BEST_OF_PAIR: of the requested checkpoint; BEST_ALONE: of other values; BEST_LAST: the last one:
 * restores the best values if the spec says so. */
err best_evaluated(struct best *, const struct run_view *, const struct evaluation *,
                   enum best_kind);

#endif
