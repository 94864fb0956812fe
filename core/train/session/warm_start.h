/* warm_start.h - what a run begins with of another one's checkpoint (train.warm_start), where the
 * model, its columns or their words have changed since.
 *
 * Rows of a table follow the words of its vocabulary column, and rows of a dense layer's kernel the
 * names of its inputs; what is new keeps its initial values. What was there is known by what the
 * run kept beside its checkpoint (core/train/spec/features.h, last_spec.h).
 */
#ifndef CORE_TRAIN_SESSION_WARM_START_H
#define CORE_TRAIN_SESSION_WARM_START_H

#include "core/train/checkpoint/shard.h"
#include "core/train/session/session.h"

/* What comes from where, where it is not all of a variable, in so many lines at most */
enum { WARM_LINES_MAX = 40 };
struct warm_start_plan {
    struct warm_start how;
    const char *lines[WARM_LINES_MAX];
    int line_count; /* of all, also those that found no room */
};

/* In the arena; names are the session's and the spec's. ERR_INPUT: a change that cannot be
 * followed, and what to do. */
err session_plan_warm_start(const struct session *, struct bundle *, struct arena *,
                            struct warm_start_plan *ret);
void warm_start_log(const struct warm_start_plan *, const char *prefix);

#endif
