/* graph.h - a model: nodes in the order in which they run, made from the spec.
 *
 * The same spec gives several graphs: one for training steps, one for evaluation (other batch size,
 * dropout off). They share the parameters' values, whose addresses the session sets.
 */
#ifndef CORE_GRAPH_GRAPH_H
#define CORE_GRAPH_GRAPH_H

#include "core/graph/batch.h"
#include "core/graph/op.h"

enum {
    GRAPH_INPUTS_MAX = 2 * COLUMNS_MAX,
    HEADS_MAX = 32,
    METRICS_MAX = 32,        /* per head */
    GRAPH_METRICS_MAX = 240, /* of all heads, including their losses */
    HEAD_NAME_MAX = 64,
};

/* A loss with its predictions and labels */
struct head_spec {
    const char *name;                 /* NULL: the only head, made from "loss" and "metrics" */
    const char *logits, *probability; /* a node's name; both NULL: the last node */
    const char *label;                /* NULL: the only one */
    struct loss_spec loss;
    const char *row_weight; /* column of row weights for this head; NULL: that of the graph */
    double weight;          /* factor of its loss in the sum that training minimizes */
    struct objects metrics; /* of struct variant */
};
extern const struct object head_spec_object;

struct model_spec {
    struct objects nodes;   /* of struct node_spec */
    struct objects heads;   /* of struct head_spec; none: `loss` and `metrics` are the only head */
    struct loss_spec loss;  /* loss.kind NULL: `heads` is used */
    struct objects metrics; /* of struct variant */
};

/* ERR_INPUT: both heads and loss, or neither; a bad or duplicate name; settings that exclude each
 * other. */
err heads_check(const struct model_spec *);
/* Array of struct head_spec: the listed ones, or one made from `loss` and `metrics` */
struct objects heads_listed(const struct model_spec *, struct arena *);

struct graph_options {
    const struct column *columns; /* of the batches that will be fed */
    int column_count;
    int64_t batch;     /* rows */
    int64_t first_row; /* index in the whole batch of this graph's first row, where several graphs
                          share a batch: random draws are per row */
    bool training;
    /* Tables hold only the rows that a batch names: ids are fed as indices into these. */
    bool holds_batch_rows;
    const char *weight; /* numeric column of row weights; NULL: 1 */
    uint64_t seed;
};

/* A column of the batch as the graph reads it: a tensor whose value points to the column, and which
 * gets no gradient. Those that nodes read are [batch, ...] of float32 or, of ids, int64. */
struct graph_input {
    struct tensor *tensor;
    int column; /* its index in the batches that the graph is fed */
    int source; /* its index in the data's columns: the same, unless `shared`, `is_raw` or `maker`
                 */
    int lookup; /* ids: index of the first input that is looked up together with this one */
    bool of_nodes; /* nodes read it, all rows of the graph's batch: missing ones are zeros, or no
                      ids. false: only losses or metrics do, and only the rows that came. */
    /* With holds_batch_rows: the ids are indices into the rows of a table of this node, which other
     * columns name too. Such a column lies behind those of the data. NULL: the table is not
     * shared. */
    const struct node *shared;
    int table; /* index of the table in its params */
    /* Ids as they are in the data, even with holds_batch_rows: they are not looked up. Where
     * another input reads the same column looked up, these lie in a column behind those of the
     * data. */
    bool is_raw;
    /* The node that makes this input from each batch, on the host: its column lies behind those of
     * the data, and `source` is the column that it is made from. NULL: a column of the data */
    const struct node *maker;
    int made;      /* index in the node's making.inputs */
    bool is_whole; /* the same for all rows */
};

struct head {
    const char *name; /* NULL: the only head */
    struct loss_node loss;
};

struct graph {
    int64_t batch;
    bool training;
    struct graph_input *inputs; /* [input_count] */
    int input_count, input_room;
    int column_count; /* of the batches that it is fed, including those behind the data's */
    int node_count;
    struct node *nodes;
    int param_count;
    struct param **params; /* of all nodes, in creation order */
    struct head *heads;    /* at least one; their losses are summed */
    int head_count;
    int metric_count;
    struct metric_node *metrics; /* of all heads: "auc", or "auc/NAME" if the head has a name */
    int64_t param_floats;
    /* Indices of nodes whose outputs are kept to the end of a pass, as logits are. Set before a
     * plan is opened. */
    const int *kept;
    int kept_count;
};

/* Everything is allocated in the arena. ERR_INPUT; the text names the node: model[2] (dense
 * "hidden"): ... */
err graph_make(const struct model_spec *, const struct graph_options *, struct arena *,
               struct graph **ret);

/* Where a head is in the spec, for messages: loss (log_loss), or heads[1] (log_loss "buy") */
const char *head_place(const struct head *, const struct graph *, struct arena *);

/* Fills the inputs that nodes make from a batch (op->make). at: [input_count] host memory of each
 * input; draw: number of the random draws */
void graph_make_inputs(const struct graph *, const struct batch *, uint64_t draw, void *const *at);

/* Index in graph->params of the node's first param: params are listed node by node. */
int graph_first_param(const struct graph *, const struct node *);

/* Index of the input that the tensor is; -1: it is a node's output. */
int graph_input_of(const struct graph *, const struct tensor *);

/* Index of the first input that reads the same column of the data. */
int graph_input_shown(const struct graph *, int input);

/* Sum of the regularization terms of all params at their current values. graph_add_regularization
 * adds those of `count` params from index `first` on to *total: the same bits, however the params
 * are split into such calls. */
double graph_regularization(const struct graph *, struct device *);
void graph_add_regularization(const struct graph *, int first, int count, struct device *,
                              double *total);
bool graph_has_regularizers(const struct graph *);

#endif
