/* check.h - the forms in which `dtrain check` prints a plan for other programs. */
#ifndef CMD_CHECK_H
#define CMD_CHECK_H

#include <stdio.h>

#include "core/train/session/session.h"

enum graph_form { GRAPH_NONE, GRAPH_DOT, GRAPH_MERMAID };

/* Columns, nodes and the loss, each with its op and its output [batch, ...]. */
void check_print_graph(const struct graph *, enum graph_form, FILE *);

/* Bytes that a ps needs; of tables that grow, none. */
struct ps_memory {
    int64_t values, slots;
    int64_t windows_each, windows; /* of one worker, and of all: gradients, rows, and its values
                                      where rounds do not take every worker */
    int gradients_at_once;         /* of workers on other hosts, which have no window meanwhile */
    int64_t save; /* more while a checkpoint is written: a copy, and what tables change meanwhile */
};
/* [ps_count], malloc'ed. ERR_MEMORY. */
err check_memory(const struct spec *, const struct layout *, const struct rows *, int workers,
                 struct ps_memory **ret);

/* Of a table that grows, with slots and index */
int64_t check_row_bytes(const struct param *, const struct optimizers *);

/* Whether the checkpoint of train.warm_start, where the run would begin with it, has the values
 * that it wants. ERR_INPUT. */
err check_warm_start(const struct spec *, const struct session *);

/* One object on standard output. ERR_MEMORY. */
err check_print_json(const struct spec *, const struct session *, int ps_count, int workers);

#endif
