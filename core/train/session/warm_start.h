/* warm_start.h - what a run takes from another run's checkpoint (train.warm_start), if the model,
 * its columns or their words have changed since.
 *
 * Rows of a table follow the words of its vocabulary column, and rows of a dense layer's kernel the
 * names of its inputs; new rows keep their initial values. The other run's words and names come
 * from what it stored beside its checkpoint (core/train/spec/features.h, last_spec.h).
 */
#ifndef CORE_TRAIN_SESSION_WARM_START_H
#define CORE_TRAIN_SESSION_WARM_START_H

#include "core/train/checkpoint/shard.h"
#include "core/train/session/session.h"

/* Log lines that say what is taken from where, for variables that are taken only in part; at most
 * this many */
enum { WARM_LINES_MAX = 40 };
struct warm_start_plan {
    struct warm_start how;
    const char *lines[WARM_LINES_MAX];
    int line_count; /* number of all lines, including those that did not fit */
};

/* Plans the warm start, in the arena; names belong to the session and the spec. ERR_INPUT: a change
 * that cannot be followed, and what to do. */
err session_plan_warm_start(const struct session *, struct bundle *, struct arena *,
                            struct warm_start_plan *ret);
void warm_start_log(const struct warm_start_plan *, const char *prefix);

#endif
