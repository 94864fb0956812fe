/* session_inside.h - shared by the files of the session, and private to them. */
#ifndef CORE_TRAIN_SESSION_SESSION_INSIDE_H
#define CORE_TRAIN_SESSION_SESSION_INSIDE_H

#include "core/train/session/session.h"

err session_make_graph(const struct session *, int64_t batch, bool training, struct arena *,
                       struct graph **ret);
/* The random key of a variable's initial values */
uint64_t session_key(const struct session *, const struct param *);
/* Rows of an evaluation batch, given the rows of a training batch */
int64_t session_evaluation_batch(const struct session *, int64_t batch);
/* Room for the states of metrics, of a batch and of the evaluation set. ERR_MEMORY. */
err session_open_metrics(struct session *);
/* Keeps the metrics of the last step, before its batch goes. */
void session_keep_metrics(struct session *);
/* Whether sums of gradients are kept apart: clipping is done per batch, so the clipped gradients of
 * several batches need a place beside the gradient. */
bool session_keeps_sums(const struct session *);

/* ERR_MEMORY, with a table of what is needed, where the device says that its memory does not
 * suffice. */
err session_check_memory(struct session *);
err session_open_plan(struct session *);

/* How columns are changed before the graph reads them */
struct transform session_transform(const struct session *, const struct source_spec *);

/* Plans what overlaps in a step, given the hooks and what is bound now. */
void session_plan_overlap(struct session *);

void session_close_averages(struct session *); /* none is fine */
void session_close_asked(struct session *);    /* none is fine */
void session_close_restored(struct session *); /* none is fine */

/* ERR_INPUT: a pattern of train.warm_start matches no variable of the graph, none of their slots
 * and none of the optimizer's powers. */
err session_check_warm_start(struct session *);

#endif
