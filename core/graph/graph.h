/* graph.h - a model: nodes in the order in which they run, made from the spec.
 *
 * The same spec gives several graphs: one for training steps, one for evaluation (other batch size,
 * dropout off). They share the values of the parameters, which are bound from outside.
 */
#ifndef CORE_GRAPH_GRAPH_H
#define CORE_GRAPH_GRAPH_H

#include "core/graph/batch.h"
#include "core/graph/op.h"

enum {
    GRAPH_INPUTS_MAX = 2 * COLUMNS_MAX,
    HEADS_MAX = 32,
    METRICS_MAX = 32,        /* of a head */
    GRAPH_METRICS_MAX = 240, /* of all heads, their losses among them */
    HEAD_NAME_MAX = 64,
};

/* What a loss looks at, and with which label */
struct head_spec {
    const char *name;                 /* NULL: of the one that "loss" and "metrics" are */
    const char *logits, *probability; /* a node; both NULL: the last one */
    const char *label;                /* NULL: the only one */
    struct loss_spec loss;
    const char *row_weight; /* the column that says what a row counts here; NULL: as everywhere */
    double weight;          /* of its loss in the sum that is trained */
    struct objects metrics; /* of struct variant */
};
extern const struct object head_spec_object;

struct model_spec {
    struct objects nodes;   /* of struct node_spec */
    struct objects heads;   /* of struct head_spec; none: the two below are one */
    struct loss_spec loss;  /* loss.kind NULL: heads are listed */
    struct objects metrics; /* of struct variant */
};

/* ERR_INPUT: heads and loss, or none; names that are taken. */
err heads_check(const struct model_spec *);
/* Of struct head_spec, one at least */
struct objects heads_listed(const struct model_spec *, struct arena *);

struct graph_options {
    const struct column *columns; /* that batches will have */
    int column_count;
    int64_t batch;     /* rows */
    int64_t first_row; /* of a batch of which others have the rest: random draws are per row */
    bool training;
    /* Tables hold the rows that a batch names, no more: ids are fed as places among them. */
    bool holds_batch_rows;
    const char *weight; /* the column of numbers that says what a row counts; NULL: 1 */
    uint64_t seed;
};

/* A column of the batch as the graph reads it: a tensor whose value is set from there, and whose
 * gradient nobody wants. Those that nodes read are [batch, ...] of float or, of ids, int64. */
struct graph_input {
    struct tensor *tensor;
    int column;    /* which one of the batches that the graph is fed */
    int source;    /* which one of the data's: the same, unless it is shared */
    int lookup;    /* ids: the first input whose ids are looked up together with these */
    bool of_nodes; /* nodes read it, all rows of the graph's batch: those that are missing are
                      zeros, or no ids. Else the loss does, and only rows that came. */
    /* Where a graph holds the rows of batches: places in a table of this node, which other
     * columns name, too. Their column lies behind those of the data. NULL: the table is not shared.
     */
    const struct node *shared;
    int table; /* which of its params */
    /* Ids as the column has them, where a graph holds the rows of batches, too: nothing is looked
     * up. Theirs is a column behind those of the data. */
    bool is_raw;
    /* Made on the host of each batch, by this node: its column lies behind those of the data, whose
     * `source` is what it is made of. NULL: it is a column of the data */
    const struct node *maker;
    int made;      /* which of the node's */
    bool is_whole; /* the same for all rows */
};

struct head {
    const char *name; /* NULL: it is the only one */
    struct loss_node loss;
};

struct graph {
    int64_t batch;
    bool training;
    struct graph_input *inputs; /* [input_count] */
    int input_count, input_room;
    int column_count; /* of the batches that it is fed */
    int node_count;
    struct node *nodes;
    int param_count;
    struct param **params; /* of all nodes, in creation order */
    struct head *heads;    /* one at least; their losses are summed */
    int head_count;
    int metric_count;
    struct metric_node *metrics; /* of all heads, "auc", or "auc/NAME" of one with a name */
    int64_t param_floats;
    /* Nodes whose outputs stay to the end of a pass, as logits do; by index. Set before a plan is
     * opened. */
    const int *kept;
    int kept_count;
};

/* Everything lives in the arena. ERR_INPUT names the node: model[2] (dense "hidden"): ... */
err graph_make(const struct model_spec *, const struct graph_options *, struct arena *,
               struct graph **ret);

/* For messages: loss (log_loss), or heads[1] (log_loss "buy") */
const char *head_place(const struct head *, const struct graph *, struct arena *);

/* Fills what nodes make of the batch, each into its input's place of at[input_count]. */
void graph_make_inputs(const struct graph *, const struct batch *, uint64_t draw, void *const *at);

/* Index in `params` of the node's first one: they are listed node by node. */
int graph_first_param(const struct graph *, const struct node *);

/* Which of the graph's inputs the tensor is; -1: it is the output of a node. */
int graph_input_of(const struct graph *, const struct tensor *);

/* The first of those that show the same column of the data. */
int graph_input_shown(const struct graph *, int input);

/* Sum over params of the regularizers' terms at the current values; or those of some params, in the
 * order of the list, are added to what is there: the same to the bit, whatever the parts. */
double graph_regularization(const struct graph *, struct device *);
void graph_add_regularization(const struct graph *, int first, int count, struct device *,
                              double *total);
bool graph_has_regularizers(const struct graph *);

#endif
