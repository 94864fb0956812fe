/* check.h - parts of `dtrain check`: output for other programs, memory, warm start. */
#ifndef CMD_CHECK_H
#define CMD_CHECK_H

#include <stdio.h>

#include "core/train/session/session.h"

enum graph_form { GRAPH_NONE, GRAPH_DOT, GRAPH_MERMAID };

/* Prints columns, nodes and the loss, each with its op and its output [batch, ...]. */
void check_print_graph(const struct graph *, enum graph_form, FILE *);

/* Bytes of memory that a ps needs, without growing tables. */
struct ps_memory {
    int64_t values, slots;
    int64_t windows_each, windows; /* of one worker, and of all: gradients, rows, and its values
                                      where rounds do not take every worker */
    int gradients_at_once; /* of workers on other hosts, received without a window of their own */
    int64_t save; /* extra while a checkpoint is written: a copy, and rows changed meanwhile */
};
/* *ret: [ps_count], malloc'ed. ERR_MEMORY. */
err check_memory(const struct spec *, const struct layout *, const struct rows *, int workers,
                 struct ps_memory **ret);

/* Bytes per row of a growing table, with slots and index */
int64_t check_row_bytes(const struct param *, const struct optimizers *);

/* If the run would begin with the checkpoint of train.warm_start: checks that it has the values
 * that are wanted. ERR_INPUT: it lacks some. */
err check_warm_start(const struct spec *, const struct session *);

/* Prints one JSON object to standard output. ERR_MEMORY. */
err check_print_json(const struct spec *, const struct session *, int ps_count, int workers);

#endif
