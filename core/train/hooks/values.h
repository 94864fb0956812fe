/* values.h - shared by hooks: the numbers of a step and of an evaluation by name, and attributes of
 * which exactly one is given. */
#ifndef CORE_TRAIN_HOOKS_VALUES_H
#define CORE_TRAIN_HOOKS_VALUES_H

#include "core/train/hooks/hook.h"

enum { HOOK_VALUES_MAX = GRAPH_METRICS_MAX + 8 };

/* Of the last own step: global_step, gradient_norm, learning_rate, loss, push_seconds, staleness,
 * then the metrics. Returns how many. */
int hook_value_names(const struct run_view *, const char *ret_names[HOOK_VALUES_MAX]);
double hook_value(const struct run_view *, int index);

/* In COMPUTED only: the norm of gradients before clipping, from clipping or computed here. */
double hook_gradient_norm(const struct run_view *);

/* Of an evaluation: loss, then the metrics. */
int evaluation_names(const struct session *, const char *ret_names[HOOK_VALUES_MAX]);
double evaluation_value(const struct evaluation *, int index);
enum better evaluation_better(const struct session *, int index);

/* Writes them as scalars, and for each head the curve of its first metric that has one, as
 * "auc/pr_curve" or "auc/NAME/pr_curve"; flushes. */
err evaluation_record(const struct session *, const struct evaluation *, struct events *,
                      double wall_s, uint64_t step);

/* ERR_NUMBER: its loss is NaN or infinite; as the last evaluation it fails the run. */
err evaluation_check(const struct evaluation *);

enum { VALUE_TEXT_MAX = 32, EVALUATION_TEXT_MAX = 1024 };
/* For display: "0.0553", "23.1042", "152346", "4.2e+10", "1.23e-05", "nan", "undefined: all labels
 * are 0" */
const char *value_text(double, char text[VALUE_TEXT_MAX]);
/* "step 2000, test loss 0.0553, test accuracy 0.9838 (4000 examples)", truncated to fit; set:
 * "test". */
const char *evaluation_text(const struct session *, const struct evaluation *, uint64_t step,
                            const char *set, char text[EVALUATION_TEXT_MAX]);

/* The index of a name; ERR_INPUT names the nearest: `values[2]: unknown value "los" ...` with path
 * "values[2]" and noun "value". */
struct name_list {
    const char *const *at;
    int count;
    const char *path, *noun;
};
err hook_name_find(const struct name_list *, const char *name, int *ret);

/* ERR_INPUT unless exactly one is above zero. */
struct every {
    const char *secs_name, *steps_name;
    double secs;
    int64_t steps;
};
err hook_check_every(const struct every *);

#endif
