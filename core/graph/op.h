/* op.h - what an op, a loss, a metric, an initializer and a regularizer are.
 *
 * An op is described once, in core/ops/<name>.c, by a constant `op_<name>`: what it is for, its
 * attributes, its shape rule, forward, backward, and the cases that the tests run. It never asks
 * which device it runs on. To add one, write the file and put its name into core/ops/meson.build:
 * parsing, help, schema, the gradient tests and checkpoint names follow from the table.
 *
 * Life of a node: infer() once (shapes, parameters, saved memory); prepare() once per plan, when
 * the shapes are known and the addresses are not (make library primitives here); forward and
 * backward every step; release().
 */
#ifndef CORE_GRAPH_OP_H
#define CORE_GRAPH_OP_H

#include "core/base/arena.h"
#include "core/base/fields/fields.h"
#include "core/graph/batch.h"
#include "core/graph/tensor.h"
#include "kernels/kernels.h"

enum {
    INPUTS_MAX = 4096,
    PARAMS_MAX = INPUTS_MAX + 8, /* one of an input, and some beside these */
    SAVED_MAX = 4,
    NODES_MAX = 4 * INPUTS_MAX, /* several inputs of one op become nodes of their own */
    CASE_INPUTS_MAX = 8,
    NAMED_INPUTS_MAX = 4,
    MADE_MAX = 4,
};

/* Some of the elements that a variable begins with, by their flat index. */
struct initial {
    const struct shape *shape; /* of the whole variable */
    uint64_t key;
    int64_t first, count;
};

/* Element i is the same whichever others are filled with it, and whatever the placement. Fans,
 * where it has such: inputs and outputs of one unit, times the elements of the kernel. */
struct initializer {
    struct object object;
    bool is_whole; /* no element without all others: fills from 0 the count of the shape only */
    err (*fill)(const void *attributes, const struct initial *, float *ret_values); /* [count] */
};
extern const struct kinds initializer_kinds;

struct regularizer { /* "kernel_regularizer": {"l1": 0.0, "l2": 0.004} : loss += l1 sum|w| + l2 sum
                      * w^2 (keras' l1_l2: l2 is not halved) */
    double l1, l2;
};
extern const struct object regularizer_object;
static inline bool regularizer_is_none(const struct regularizer *r)
{
    return !(r->l1 > 0 || r->l2 > 0);
}
/* Of what a node says of the variable of another: nothing, or the same */
static inline bool regularizer_is_within(const struct regularizer *r, const struct regularizer *of)
{
    return regularizer_is_none(r) || (r->l1 == of->l1 && r->l2 == of->l2);
}

enum { SIGHTS_MAX = 1 << 30 };

/* Of a table that grows: its rows are those of any ids that are seen. */
struct growth {
    int64_t admit_after;       /* times that an id is seen until it has a row; SIGHTS_MAX at most */
    int64_t evict_after_steps; /* a row that was not used for this many is evicted; 0: never */
    int admit_by;              /* enum sights: what a time is */
};
enum sights { SIGHTS_STEPS, SIGHTS_OCCURRENCES };
extern const char *const sights_names[];
static inline bool
growth_counts(const struct growth *growth) /* occurrences; NULL: it does not grow */
{
    return growth && growth->admit_by == SIGHTS_OCCURRENCES;
}

/* A variable as the node that uses it sees it. */
struct param {
    const char *name; /* "<node>/kernel" */
    struct shape shape;
    const struct initializer *initializer;
    const void *initializer_attributes;
    struct regularizer regularizer;
    /* Of a table: on all of its rows; whoever keeps it adds the gradient at each update, and no
     * loss has it. */
    struct regularizer of_all_rows;
    /* Above 0: no optimizer changes it. What backward leaves as its gradient is a number b of the
     * batch, and whoever keeps the value makes value -= (value - b) * moving of it. */
    float moving;
    /* A table: its rows are named by this column of ids. NULL: a dense variable. */
    const struct tensor *ids;
    const struct growth *growth; /* NULL: a table of as many rows as the shape says, which else is
                                    that of one row */
    int64_t held; /* a table: how many rows are bound at most; 0: all that the shape says */
    float *value, *gradient; /* bound by the session; gradient NULL when not training */
    /* By the session: the gradient may leave while the rest of it, or of its node, is computed; and
     * the value is its own, and stays then. Frozen: nobody wants the gradient. */
    bool leaves_amid, is_kept, is_frozen;
};

/* Of what is bound */
int64_t param_floats(const struct param *);

/* An input of a node that the host makes of each batch before it is loaded: numbers, or ids, which
 * name rows of the node's first table. */
struct made_input {
    struct tensor tensor;
    bool is_whole; /* the same for all rows of a batch, and all parts of one */
};

struct node;
/* Of a node's gradients those of its first param's first `floats` are complete, and of all others.
 */
typedef void finished_with(void *context, const struct node *, int64_t floats);

/* Of params by several nodes, whose gradients are summed in the order of backward: of the last node
 * first. */
struct sharing {
    struct node *of;         /* an earlier node of the same op, whose params it uses; NULL: none */
    const struct node *last; /* the last one that uses this one's; NULL: nobody does */
    int count;               /* how many do, beside itself */
};

/* Of inputs that are made of each batch. */
struct making {
    int count;
    struct made_input *inputs[MADE_MAX]; /* added by infer; behind the others, as far as the graph
                                            is concerned */
    void *by;                            /* what the op keeps for it; from infer */
    const struct column *label;          /* op->label_name: as the data describe it */
    int label_column;                    /* of the data */
};

struct node {
    const struct op *op;
    const char *name;
    const void *attributes; /* the op's own struct */
    int index;              /* in graph->nodes */
    bool training;          /* false in an evaluation graph */
    bool carries;           /* set by infer: from batch to batch (op->advance) */
    bool holds_batch_rows;  /* of tables: those that a batch names, and its ids count among them */

    int input_count;
    const struct tensor **input; /* [input_count] outputs of earlier nodes, or columns */
    bool *add; /* [input_count] set by the plan: add to input[i]->gradient instead of overwriting it
                */
    int named[NAMED_INPUTS_MAX]; /* which input an attribute of op->named_inputs names; 0: none */

    struct making making;

    int param_count, param_room;
    struct param *param; /* [param_count] its own, or those of the node that it shares them with */
    bool add_params;     /* set by the plan: add to param gradients, of another batch or node */
    struct {
        finished_with *call; /* set by the plan, while backward runs; NULL: nobody asks */
        void *context;
    } finished;
    struct sharing sharing;

    struct tensor output;
    bool is_view; /* set by infer: output is input[0]'s memory under another shape; forward and
                     backward are not called */

    struct tensor saved[SAVED_MAX]; /* infer sets shape (rank 0 and no name: unused); kept from
                                       forward to backward */
    uint64_t key;         /* of the node's random draws (dropout): random_key(seed, name) */
    const uint64_t *draw; /* which draw this is, in the device's memory: set by the plan */
    int64_t first_row;    /* which row of the whole batch the first one is: draws are per row */

    void *state; /* from prepare */
};

/* How many nodes leave gradients in its params: itself, and those that share them. */
int node_param_users(const struct node *);

/* For backward, which has more to do: how much of the first param's gradient is complete, from its
 * front, beside all of the others'. The values there are not read again, unless they are kept. */
void node_tell_finished(const struct node *, int64_t floats);

/* The input that named_inputs[k] names; NULL: none. */
static inline const struct tensor *node_named(const struct node *node, int k)
{
    return node->named[k] ? node->input[node->named[k]] : NULL;
}

/* For infer: adds a parameter (its name without "<node>/"). ERR_INPUT when its shape is too large.
 */
err node_add_param(struct node *, struct arena *, const struct param *);
/* The same, with the initial values that a spec says. */
err node_add_initialized(struct node *, struct arena *, const struct param *,
                         const struct variant *initializer);
/* For infer: adds an input that op->make fills. */
err node_add_made(struct node *, struct arena *, const char *name, enum dtype, const struct shape *,
                  bool is_whole);
/* One without attributes of its own, as "zeros" */
struct variant initializer_named(const char *name);

struct op_case {            /* what the tests run an op with; attributes NULL ends a list */
    const char *attributes; /* JSON, without "op" */
    int input_count;
    struct shape input[CASE_INPUTS_MAX];
    int64_t buckets; /* ops that read ids: these are below it */
    bool is_weighted;
    bool is_positive; /* its inputs are above 0 */
};

struct op {
    struct object object; /* name, summary, fields, size of attributes */
    int inputs_min, inputs_max;
    /* Attributes that name one more input each, a node or a column of numbers, as {"mask": NAME};
     * ends with NULL. They come behind those of "inputs", which inputs_min and inputs_max are
     * about. NULL: none */
    const char *const *named_inputs;
    int named_ids; /* this many of these, the first ones, name columns of ids, and get them as they
                      are */
    /* The attribute that names one of several labels (null: the only one), of which op->make reads
     * the classes. NULL: it reads none */
    const char *label_name;
    /* Optional: the name of the node whose params are shared, NULL: none. Ids that name rows of one
     * table are looked up together. */
    const char *(*shared_name)(const void *attributes);
    bool reads_ids;                 /* inputs are columns of ids; of other ops none is */
    bool ids_as_are;                /* and they are no places in a table of the node's */
    bool reads_input, reads_output; /* does backward read input values, the output value? (buffers
                                       live accordingly) */

    err (*infer)(struct node *,
                 struct arena *); /* inputs are there; set output.shape, params, saved; ERR_INPUT */
    err (*prepare)(struct node *, struct device *); /* optional */
    /* Bytes of the device that prepare() will take; optional: none. */
    size_t (*prepared_bytes)(const struct node *, struct device *);
    void (*release)(struct node *, struct device *); /* optional */
    void (*forward)(const struct node *, struct device *);
    /* From output.gradient (which it may overwrite) to every input gradient that is not NULL
     * (honouring add[i]) and every param gradient (honouring add_params). */
    void (*backward)(const struct node *, struct device *);

    /* Of nodes that have made inputs: fills them for the rows of a batch as the data have it; draw
     * numbers its random draws. at: [made_count] the host's memory. */
    void (*make)(const struct node *, const struct batch *, uint64_t draw, void *const *at);

    /* Of nodes that carry something over from batch to batch: before the first forward pass of a
     * batch, which follows the one before, or is fresh. A batch may pass more than once. */
    void (*advance)(const struct node *, struct device *, bool is_fresh);

    const struct op_case *cases;
};
extern const struct kinds
    op_kinds; /* every op; descriptor is the struct op. Made from core/ops/meson.build */

/* Common part of a model entry of the spec: {"op": "dense", "name": "hidden1", "inputs": ["flat"],
 * ...} */
struct node_spec {
    struct variant op;
    const char *name;       /* NULL: the op's name, with _1, _2 ... where taken */
    struct strings inputs;  /* none: the node before */
    const char *weights_of; /* a node whose params it uses for its own; NULL: none */
    const char *place;      /* where it is written, for messages; NULL: model[index] */
};
extern const struct object node_spec_object;
/* "model[3]", or where in a block */
const char *node_place(const struct node_spec *nodes, int index, struct arena *);

struct loss_spec {
    struct variant loss;
    int reduction; /* enum loss_reduction */
};
extern const struct object loss_spec_object;

/* Of the losses of a batch: SUM_BY_NONZERO_WEIGHTS or SUM of tf.losses */
enum loss_reduction { REDUCTION_MEAN, REDUCTION_SUM };

/* The last step of a graph, one of them for each head: losses per row, their mean or sum, and the
 * gradient that backward starts from. */
struct loss_node {
    const struct loss *loss;
    const void *attributes;
    enum loss_reduction reduction;
    float factor;                /* of it in the sum that is trained */
    const struct tensor *logits; /* output of a node */
    /* Where another head's loss has the same logits and comes before: the gradient of this one lies
     * here until it is added. Set by the plan; gradient NULL: nowhere */
    struct tensor apart;
    struct tensor labels; /* dtype and shape set by infer; value set from the batch */
    /* Where the logits have answers of their own, which are `labels` then: what the data have,
     * which nobody looks at here; no name: the logits have none */
    struct tensor given;
    struct tensor weights; /* [batch, 1] what each row counts; no name: 1. Set by the graph,
                              value from the batch */
    bool weighs_classes;   /* set by infer */
    float *losses;         /* [batch] */
    const float *scale;    /* of the gradient: one float of the device, from the plan */
    struct loss_counts {
        double counted; /* divisor of the mean of all rows */
        int64_t labels; /* of classes: how many the rows have, those that are none left out */
    } counts;           /* of the batch; set by the plan with it */
    void *state;        /* from prepare; NULL: none */
};

/* What a loss takes a node's output for; metrics depend on it. */
enum prediction {
    PREDICTS_CLASS,       /* logits [batch, ..., classes], labels int32 [batch, ...] */
    PREDICTS_LOGIT,       /* one logit per label of 0 or 1: true above 0 */
    PREDICTS_PROBABILITY, /* the same after a sigmoid: true above one half */
    PREDICTS_NUMBER,      /* regression */
};

/* Which numbers a loss takes for labels. All of a data set are held to it when it is opened. */
enum label_rule {
    LABELS_ANY,     /* every finite number */
    LABELS_SHARES,  /* from 0 (no) to 1 (yes) */
    LABELS_CLASSES, /* whole numbers from 0, below the number of logits; where an example has
                       several, a negative one is none */
};

struct loss {
    struct object object;
    enum prediction predicts;
    bool is_each; /* of classes: each one is a yes or no of its own */
    enum label_rule labels;
    err (*infer)(struct loss_node *, struct arena *);    /* may replace attributes by its own */
    err (*prepare)(struct loss_node *, struct device *); /* optional; once per plan, as a node's */
    size_t (*prepared_bytes)(const struct loss_node *, struct device *); /* optional, as a node's */
    void (*release)(struct loss_node *, struct device *);                /* optional */
    /* rows <= batch count. Fills losses[rows]; where logits->gradient is not NULL also the gradient
     * of the sum of the rows' losses times node->scale. It may be recorded, and looks at no label.
     */
    void (*forward)(const struct loss_node *, struct device *, int64_t rows);
    /* Divisor of the mean of some rows, whose labels lie in the host's memory: rows, or what
     * SUM_BY_NONZERO_WEIGHTS and several columns make of it */
    double (*weight)(const struct loss_node *, const void *labels, int64_t rows);
    const struct op_case *cases; /* input[0]: logits */
};
extern const struct kinds loss_kinds;

/* The tensor that the data's labels go to */
static inline const struct tensor *loss_given(const struct loss_node *node)
{
    return node->given.name ? &node->given : &node->labels;
}

/* Of a batch as the host has it, before it goes to the device; weights: NULL where all count 1 */
struct loss_counts loss_count(const struct loss_node *, const void *labels, const float *weights,
                              int64_t rows);
/* Of a gradient: the factor over the divisor of the mean, or the factor. All weights 0: no
 * gradient. */
float loss_scale(const struct loss_node *, const struct loss_counts *);
/* The loss of a node with the weights of its rows: losses and gradient */
void loss_forward(const struct loss_node *, struct device *, int64_t rows);
/* What the sum of the batch's losses is divided by: the divisor of the mean, or 1 */
double loss_divisor(const struct loss_node *);
bool loss_is_weighted(const struct loss_node *);
/* Of rows first .. first + rows - 1, on the host; 1 where there are none */
void loss_row_weights(const struct loss_node *, struct device *, int64_t first, int64_t rows,
                      float *ret);

struct metric_node {
    const struct metric *metric;
    const void *attributes;
    const char *name;             /* "accuracy"; infer may change it: "in_top_5" */
    const struct loss_node *loss; /* logits and labels */
    /* metric->group_name: the ids [batch, 1] of the group that each row is of; set by the graph,
     * value from the batch */
    struct tensor groups;
};

/* Which of two results of a metric is the better one. */
enum better { BETTER_LESS, BETTER_MORE, BETTER_NEAR_ONE };
/* Equal is not better, and NaN neither. */
bool better_is(enum better, double value, double than);

/* A metric has a state of doubles, zero at first: the batches of an evaluation add to it one after
 * the other, and the result comes of it at the end. */
struct metric {
    struct object object;
    enum better better;
    /* The attribute that names a column of ids, one of each row, by which rows are of groups. NULL:
     * it has none */
    const char *group_name;
    err (*infer)(struct metric_node *, struct arena *);
    /* Doubles of the state for at most this many rows; NULL: 2. */
    int64_t (*state_count)(const struct metric_node *, int64_t rows);
    void (*update)(const struct metric_node *, struct device *, int64_t rows, double *state);
    /* It may spoil the state. NULL: the first over the second, or 0 where that is 0. */
    double (*result)(const struct metric_node *, double *state);
    /* Optional: how many thresholds its curve has, 0: none; and for each of them, before result(),
     * rows of enum pr_row. */
    int (*thresholds)(const struct metric_node *);
    void (*curve)(const struct metric_node *, const double *state, float *ret);
};

/* A curve of precision and recall by thresholds, as TensorBoard's page of them has it:
 * [PR_ROWS, thresholds] */
enum pr_row {
    PR_YES_ABOVE,
    PR_NO_ABOVE,
    PR_NO_BELOW,
    PR_YES_BELOW,
    PR_PRECISION,
    PR_RECALL,
    PR_ROWS
};

/* A metric may have no result, whatever the model says. That is a NaN which tells why, and no other
 * value has; who looks for the best passes over it. */
enum undefined { ALL_LABELS_ARE_0 = 1, ALL_LABELS_ARE_1, ALL_WEIGHTS_ARE_0, NO_GROUP_HAS_BOTH };
double metric_undefined(enum undefined);
const char *metric_undefined_text(double); /* "all labels are 0"; NULL: it is a result */
extern const struct kinds metric_kinds;

int64_t metric_state_count(const struct metric_node *, int64_t rows);
double metric_result(const struct metric_node *, double *state);

#endif
