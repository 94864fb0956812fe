/* session_inside.h - what the files of the session share. Nobody else includes this. */
#ifndef CORE_TRAIN_SESSION_SESSION_INSIDE_H
#define CORE_TRAIN_SESSION_SESSION_INSIDE_H

#include "core/train/session/session.h"

err session_make_graph(const struct session *, int64_t batch, bool training, struct arena *,
                       struct graph **ret);
/* Of a variable's initial values */
uint64_t session_key(const struct session *, const struct param *);
/* Rows of an evaluation beside training batches of so many */
int64_t session_evaluation_batch(const struct session *, int64_t batch);
/* Room for the states of metrics, of a batch and of the evaluation set. ERR_MEMORY. */
err session_open_metrics(struct session *);
/* Before the batch that they are of goes. */
void session_keep_metrics(struct session *);
/* Clipping is of each batch's gradient, so sums of several need a place beside it. */
bool session_keeps_sums(const struct session *);

/* ERR_MEMORY, with a table, where the device says that it has too little for what comes next. */
err session_check_memory(struct session *);
err session_open_plan(struct session *);

/* What becomes of columns before the graph reads them */
struct transform session_transform(const struct session *, const struct source_spec *);

/* As hooks and what is bound are now. */
void session_plan_overlap(struct session *);

void session_close_averages(struct session *); /* none is fine */
void session_close_asked(struct session *);    /* none is fine */
void session_close_restored(struct session *); /* none is fine */

/* ERR_INPUT: a pattern of train.warm_start speaks of nothing that the graph's variables, their
 * slots and the optimizer's powers are called. */
err session_check_warm_start(struct session *);

#endif
