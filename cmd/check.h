/* check.h - the forms in which `dtrain check` prints a plan for other programs. */
#ifndef CMD_CHECK_H
#define CMD_CHECK_H

#include <stdio.h>

#include "core/train/session/session.h"

enum graph_form { GRAPH_NONE, GRAPH_DOT, GRAPH_MERMAID };

/* Columns, nodes and the loss, each with its op and its output [batch, ...]. */
void check_print_graph(const struct graph *, enum graph_form, FILE *);

/* One object on standard output. ERR_MEMORY. */
err check_print_json(const struct spec *, const struct session *, int ps_count, int workers);

#endif
