/* session_inside.h - what the files of the session share. Nobody else includes this. */
#ifndef CORE_TRAIN_SESSION_INSIDE_H
#define CORE_TRAIN_SESSION_INSIDE_H

#include "core/train/session.h"

/* The stream of training batches of this worker from batch `first` on. Labels have been checked. */
err session_open_pipeline(const struct session *, uint64_t first, struct pipeline **ret);

/* Memory of the device: zero. */
err session_allocate(const struct session *, int64_t floats, float **ret);

/* The evaluation graph is there, with the values that are bound now. */
err session_open_evaluation(struct session *);

/* ERR_INPUT: a pattern of train.warm_start speaks of nothing that the graph's variables, their slots
 * and the optimizer's powers are called. */
err session_check_warm_start(struct session *);

/* The next rows of the evaluation set through the evaluation graph. Returns how many. */
int64_t session_forward_evaluation(struct session *, int64_t first);

#endif
