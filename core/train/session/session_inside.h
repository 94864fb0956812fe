/* session_inside.h - what the files of the session share. Nobody else includes this. */
#ifndef CORE_TRAIN_SESSION_SESSION_INSIDE_H
#define CORE_TRAIN_SESSION_SESSION_INSIDE_H

#include "core/train/session/session.h"

/* Memory of the device: zero. */
err session_allocate(const struct session *, int64_t floats, float **ret);

err session_make_graph(const struct session *, int64_t batch, bool training, struct arena *,
                       struct graph **ret);
/* Rows of an evaluation beside training batches of so many */
int64_t session_evaluation_batch(const struct session *, int64_t batch);
bool session_keeps_sums(const struct session *);

/* ERR_MEMORY, with a table, where the device says that it has too little for what comes next. */
err session_check_memory(struct session *);
err session_open_plan(struct session *);

/* Before the bound blocks are there. */
err session_open_mirror(struct session *);
/* Values to where the graph reads them, and gradients from where it writes them. */
void session_gather_values(struct session *);
void session_scatter_gradients(struct session *);
/* The same of one node, as soon as its gradients are finished, where the mirror lets them leave. */
void session_send_gradients(void *session, const struct node *);

/* The evaluation graph is there, with the values that are bound now; its data are at their
 * beginning. */
err session_open_evaluation(struct session *);

/* ERR_INPUT: a pattern of train.warm_start speaks of nothing that the graph's variables, their
 * slots and the optimizer's powers are called. */
err session_check_warm_start(struct session *);

/* The next rows of the evaluation set through the evaluation graph; 0: there are no more. */
err session_forward_evaluation(struct session *, int64_t *ret_rows);

#endif
