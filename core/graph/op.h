/* op.h - ops, losses, metrics, initializers and regularizers.
 *
 * An op is described once, in core/ops/<name>.c, by a constant `op_<name>`: its help, its
 * attributes, its shape rule, forward, backward, and the cases that the tests run. It never asks
 * which device it runs on. To add one, write the file and put its name into core/ops/meson.build:
 * parsing, help, schema, the gradient tests and checkpoint names follow from the table.
 *
 * Life of a node: infer() once (shapes, parameters, saved memory); prepare() once per plan, when
 * the shapes are known but not the addresses (create library primitives here); forward and backward
 * every step; release().
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
    PARAMS_MAX = INPUTS_MAX + 8, /* one per input, and some more */
    SAVED_MAX = 4,
    NODES_MAX = 4 * INPUTS_MAX, /* several inputs of one op may become a node each */
    CASE_INPUTS_MAX = 8,
    NAMED_INPUTS_MAX = 4,
    MADE_MAX = 4,
};

/* A range of a variable's elements, by flat index, to be given initial values. */
struct initial {
    const struct shape *shape; /* of the whole variable */
    uint64_t key;
    int64_t first, count;
};

/* The value of element i does not depend on the range filled or on the placement. Fan-in and
 * fan-out, where used: inputs and outputs of one unit, times the spatial size of the kernel. */
struct initializer {
    struct object object;
    bool is_whole; /* elements depend on each other: fill only the whole shape, from element 0 */
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
/* Whether the regularizer of a node that shares another's variable, `of`, is none or the same */
static inline bool regularizer_is_within(const struct regularizer *r, const struct regularizer *of)
{
    return regularizer_is_none(r) || (r->l1 == of->l1 && r->l2 == of->l2);
}

enum { SIGHTS_MAX = 1 << 30 };

/* A table that grows: an id gets a row once it has been seen. */
struct growth {
    int64_t admit_after;       /* times that an id must be seen to get a row; SIGHTS_MAX at most */
    int64_t evict_after_steps; /* a row unused for this many steps is evicted; 0: never */
    int admit_by;              /* enum sights: what counts as seeing an id */
};
enum sights { SIGHTS_STEPS, SIGHTS_OCCURRENCES };
extern const char *const sights_names[];
static inline bool
growth_counts(const struct growth *growth) /* by occurrences, not steps; NULL: does not grow */
{
    return growth && growth->admit_by == SIGHTS_OCCURRENCES;
}

/* A variable as seen by the node that uses it. */
struct param {
    const char *name; /* "<node>/kernel" */
    struct shape shape;
    const struct initializer *initializer;
    const void *initializer_attributes;
    struct regularizer regularizer;
    /* For a table: a penalty on all rows. Whoever keeps the table adds its gradient at each update;
     * no loss includes it. */
    struct regularizer of_all_rows;
    /* Above 0: a moving average. No optimizer updates it: backward leaves a statistic b of the
     * batch in its gradient, and whoever keeps the value does value -= moving * (value - b). */
    float moving;
    /* The column of ids that name rows of this table. NULL: a dense variable. */
    const struct tensor *ids;
    const struct growth *growth; /* NULL: the shape gives the number of rows; else the table grows,
                                    and the shape is that of one row */
    int64_t held; /* a table: the most rows that are bound; 0: all that the shape gives */
    float *value, *gradient; /* set by the session; gradient is NULL when not training */
    /* Set by the session. leaves_amid: the gradient may be sent while the rest of it, or of the
     * node's, is computed. is_kept: the value has memory of its own, which stays valid then.
     * is_frozen: the gradient is not used. */
    bool leaves_amid, is_kept, is_frozen;
};

/* Floats bound to value and gradient */
int64_t param_floats(const struct param *);

/* An input that a node makes from each batch, on the host before it is loaded: numbers, or ids that
 * name rows of the node's first table. */
struct made_input {
    struct tensor tensor;
    bool is_whole; /* the same for all rows of a batch, and for all its parts */
};

struct node;
/* Called when the first `floats` of the gradient of the node's first param are complete, and those
 * of all its other params. */
typedef void finished_with(void *context, const struct node *, int64_t floats);

/* Params used by several nodes; their gradients are summed in the order of backward, from the last
 * node on. */
struct sharing {
    struct node *of;         /* the earlier node of the same op whose params it uses; NULL: none */
    const struct node *last; /* the last node that uses this node's params; NULL: none */
    int count;               /* how many other nodes use this node's params */
};

/* Inputs that a node makes from each batch. */
struct making {
    int count;
    struct made_input *inputs[MADE_MAX]; /* added by infer; follow other inputs */
    void *by;                            /* the op's own data for it; set by infer */
    const struct column *label;          /* description of the label that op->label_name names */
    int label_column;                    /* its index in the data's columns */
};

struct node {
    const struct op *op;
    const char *name;
    const void *attributes; /* the op's own struct */
    int index;              /* in graph->nodes */
    bool training;          /* false in an evaluation graph */
    bool carries; /* set by infer: it has a state that is carried from batch to batch (op->advance)
                   */
    bool holds_batch_rows; /* its tables hold only the rows that a batch names; ids are indices into
                              these */

    int input_count;
    const struct tensor **input; /* [input_count] outputs of earlier nodes, or columns */
    bool *add; /* [input_count] set by the plan: add to input[i]->gradient instead of overwriting it
                */
    int named[NAMED_INPUTS_MAX]; /* index of the input that each of op->named_inputs names; 0: none
                                  */

    struct making making;

    int param_count, param_room;
    struct param *param; /* [param_count] its own, or those of sharing.of */
    bool add_params; /* set by the plan: add to the param gradients, which another batch or node has
                        written */
    struct {
        finished_with *call; /* set by the plan, while backward runs; NULL: no calls wanted */
        void *context;
    } finished;
    struct sharing sharing;

    struct tensor output;
    bool is_view; /* set by infer: output is input[0]'s memory with another shape; forward and
                     backward are not called */

    struct tensor saved[SAVED_MAX]; /* infer sets the shape (rank 0 and no name: unused); kept from
                                       forward to backward */
    uint64_t key;         /* of the node's random draws (dropout): random_key(seed, name) */
    const uint64_t *draw; /* this pass's draw, in device memory: set by the plan */
    int64_t first_row;    /* index in the whole batch of its first row: draws are per row */

    void *state; /* set by prepare */
};

/* How many nodes add gradients to its params: itself, and those that share them. */
int node_param_users(const struct node *);

/* For backward to call before it is done: the first `floats` of the first param's gradient are
 * complete, and all of the others'. Values there are not read again, unless is_kept. */
void node_tell_finished(const struct node *, int64_t floats);

/* The input that op->named_inputs[k] names; NULL: none. */
static inline const struct tensor *node_named(const struct node *node, int k)
{
    return node->named[k] ? node->input[node->named[k]] : NULL;
}

/* For infer: adds a parameter (its name without "<node>/"). ERR_INPUT when its shape is too large.
 */
err node_add_param(struct node *, struct arena *, const struct param *);
/* The same, with the initializer from a spec. */
err node_add_initialized(struct node *, struct arena *, const struct param *,
                         const struct variant *initializer);
/* For infer: adds an input that op->make fills. */
err node_add_made(struct node *, struct arena *, const char *name, enum dtype, const struct shape *,
                  bool is_whole);
/* An initializer without attributes, such as "zeros" */
struct variant initializer_named(const char *name);

struct op_case {            /* a case that the tests run an op with; attributes NULL ends a list */
    const char *attributes; /* JSON, without "op" */
    int input_count;
    struct shape input[CASE_INPUTS_MAX];
    int64_t buckets; /* ops that read ids: ids are below it */
    bool is_weighted;
    bool is_positive; /* inputs must be above 0 */
};

struct op {
    struct object object; /* name, summary, fields, size of attributes */
    int inputs_min, inputs_max;
    /* Attributes that each name one more input, a node or a numeric column, as {"mask": NAME}; ends
     * with NULL. These come behind "inputs", which alone inputs_min and inputs_max count. NULL:
     * none */
    const char *const *named_inputs;
    int named_ids; /* the first of these, this many, name columns of ids, and get the ids as they
                      are in the data */
    /* The attribute that names a label (null: the only one) whose classes op->make reads. NULL: it
     * reads none */
    const char *label_name;
    /* Optional: returns the name of the node whose params are shared, or NULL: none. Ids of several
     * nodes that name rows of one table are looked up together. */
    const char *(*shared_name)(const void *attributes);
    bool reads_ids;  /* inputs are columns of ids; other ops accept none */
    bool ids_as_are; /* the ids are used as they are, not to look up rows of a table */
    bool reads_input, reads_output; /* whether backward reads the input values, and the output value
                                       (buffers are kept accordingly) */

    err (*infer)(struct node *,
                 struct arena *); /* inputs are set; sets output.shape, params, saved; ERR_INPUT */
    err (*prepare)(struct node *, struct device *); /* optional */
    /* Optional: bytes of device memory that prepare() will take. */
    size_t (*prepared_bytes)(const struct node *, struct device *);
    void (*release)(struct node *, struct device *); /* optional */
    void (*forward)(const struct node *, struct device *);
    /* From output.gradient (which it may overwrite) computes every input gradient that is not NULL
     * (respecting add[i]) and every param gradient (respecting add_params). */
    void (*backward)(const struct node *, struct device *);

    /* For nodes with made inputs: fills them from a batch as it is in the data; draw is the number
     * of the random draws. at: [making.count] host memory */
    void (*make)(const struct node *, const struct batch *, uint64_t draw, void *const *at);

    /* For nodes with `carries`: called before the first forward pass of each batch. is_fresh: it
     * does not continue the batch before. A batch may pass more than once. */
    void (*advance)(const struct node *, struct device *, bool is_fresh);

    const struct op_case *cases;
};
extern const struct kinds
    op_kinds; /* every op; descriptor is the struct op. Generated from core/ops/meson.build */

/* Common part of a model entry of the spec: {"op": "dense", "name": "hidden1", "inputs": ["flat"],
 * ...} */
struct node_spec {
    struct variant op;
    const char *name;       /* NULL: the op's name, with _1, _2 ... if that is taken */
    struct strings inputs;  /* none: the previous node */
    const char *weights_of; /* the node whose params it shares; NULL: none */
    const char *place;      /* where in the spec it is, for messages; NULL: model[index] */
};
extern const struct object node_spec_object;
/* "model[3]", or node_spec.place */
const char *node_place(const struct node_spec *nodes, int index, struct arena *);

struct loss_spec {
    struct variant loss;
    int reduction; /* enum loss_reduction */
};
extern const struct object loss_spec_object;

/* How the losses of a batch are combined: tf.losses' SUM_BY_NONZERO_WEIGHTS, or SUM */
enum loss_reduction { REDUCTION_MEAN, REDUCTION_SUM };

/* The end of a graph, one per head: losses of the rows, their mean or sum, and the gradient that
 * backward starts from. */
struct loss_node {
    const struct loss *loss;
    const void *attributes;
    enum loss_reduction reduction;
    float factor;                /* of this loss in the sum that training minimizes */
    const struct tensor *logits; /* output of a node */
    /* If an earlier head has the same logits, the gradient of this loss is computed here, and then
     * added to that of the logits. Set by the plan; gradient NULL: not needed */
    struct tensor apart;
    struct tensor labels; /* dtype and shape set by infer; value set from the batch */
    /* If the logits have `answers`, these are `labels`, and `given` gets the data's label column,
     * which the loss itself does not read; no name: no such logits */
    struct tensor given;
    struct tensor weights; /* [batch, 1] weight of each row; no name: 1. Set by the graph, value
                              from the batch */
    bool weighs_classes;   /* set by infer */
    float *losses;         /* [batch] */
    const float *scale;    /* of the gradient: one float in device memory, set by the plan */
    struct loss_counts {
        double counted; /* divisor of the mean over all rows */
        int64_t labels; /* of classes: how many labels the rows have, not counting negative ones */
    } counts;           /* of the loaded batch; set by the plan */
    void *state;        /* set by prepare; NULL: none */
};

/* How a loss interprets its predictions; metrics depend on it. */
enum prediction {
    PREDICTS_CLASS,       /* logits [batch, ..., classes], labels int32 [batch, ...] */
    PREDICTS_LOGIT,       /* one logit per label of 0 or 1: true above 0 */
    PREDICTS_PROBABILITY, /* a probability per label: true above one half */
    PREDICTS_NUMBER,      /* regression */
};

/* Which numbers are valid labels. All of a data set are checked when it is opened. */
enum label_rule {
    LABELS_ANY,     /* any finite number */
    LABELS_SHARES,  /* from 0 (no) to 1 (yes) */
    LABELS_CLASSES, /* integers from 0 to the number of logits - 1; where an example has several
                       labels, a negative one means none */
};

struct loss {
    struct object object;
    enum prediction predicts;
    bool is_each; /* each class is a yes or no of its own */
    enum label_rule labels;
    err (*infer)(struct loss_node *, struct arena *);    /* may replace `attributes` */
    err (*prepare)(struct loss_node *, struct device *); /* optional; once per plan */
    size_t (*prepared_bytes)(const struct loss_node *, struct device *); /* optional, as a node's */
    void (*release)(struct loss_node *, struct device *);                /* optional */
    /* rows: at most the graph's batch. Fills losses[rows]; if logits->gradient is not NULL, also
     * that, with the gradient of the sum of the rows' losses times node->scale. It may be recorded,
     * so it must not read labels on the host. */
    void (*forward)(const struct loss_node *, struct device *, int64_t rows);
    /* Divisor of the mean over these rows, whose labels are in host memory: rows, or what
     * SUM_BY_NONZERO_WEIGHTS makes of several labels per row */
    double (*weight)(const struct loss_node *, const void *labels, int64_t rows);
    const struct op_case *cases; /* input[0]: logits */
};
extern const struct kinds loss_kinds;

/* The tensor that is fed with the data's labels */
static inline const struct tensor *loss_given(const struct loss_node *node)
{
    return node->given.name ? &node->given : &node->labels;
}

/* Counts a batch in host memory, before it goes to the device; weights: NULL: all 1 */
struct loss_counts loss_count(const struct loss_node *, const void *labels, const float *weights,
                              int64_t rows);
/* Scale of the gradient: factor / divisor for a mean (0 if all weights are 0), factor for a sum. */
float loss_scale(const struct loss_node *, const struct loss_counts *);
/* Computes losses and gradient, with the weights of rows */
void loss_forward(const struct loss_node *, struct device *, int64_t rows);
/* What the sum of the batch's losses is divided by: the divisor of the mean, or 1 for a sum */
double loss_divisor(const struct loss_node *);
bool loss_is_weighted(const struct loss_node *);
/* Copies the weights of rows first .. first + rows - 1 to the host; 1 if there are no weights */
void loss_row_weights(const struct loss_node *, struct device *, int64_t first, int64_t rows,
                      float *ret);

struct metric_node {
    const struct metric *metric;
    const void *attributes;
    const char *name;             /* "accuracy"; infer may change it: "in_top_5" */
    const struct loss_node *loss; /* logits and labels */
    /* For metric->group_name: ids [batch, 1] that say which group each row belongs to; set by the
     * graph, value from the batch */
    struct tensor groups;
};

/* Which results of a metric are better. */
enum better { BETTER_LESS, BETTER_MORE, BETTER_NEAR_ONE };
/* false if equal, or if `value` is NaN. */
bool better_is(enum better, double value, double than);

/* A metric keeps a state of doubles, zero at first: the batches of an evaluation add to it one
 * after the other, and the result is computed from it at the end. */
struct metric {
    struct object object;
    enum better better;
    /* The attribute that names a column of ids, one per row, which divides the rows into groups.
     * NULL: no such attribute */
    const char *group_name;
    err (*infer)(struct metric_node *, struct arena *);
    /* Number of doubles in the state for at most this many rows; NULL: 2. */
    int64_t (*state_count)(const struct metric_node *, int64_t rows);
    void (*update)(const struct metric_node *, struct device *, int64_t rows, double *state);
    /* May overwrite the state. NULL: state[0] / state[1], or 0 if state[1] is 0. */
    double (*result)(const struct metric_node *, double *state);
    /* Optional. thresholds: number of points of its curve, 0: none. curve: fills ret[PR_ROWS,
     * thresholds], called before result(). */
    int (*thresholds)(const struct metric_node *);
    void (*curve)(const struct metric_node *, const double *state, float *ret);
};

/* Rows of a precision-recall curve, [PR_ROWS, thresholds], as TensorBoard's PR curves plugin reads
 * them */
enum pr_row {
    PR_YES_ABOVE,
    PR_NO_ABOVE,
    PR_NO_BELOW,
    PR_YES_BELOW,
    PR_PRECISION,
    PR_RECALL,
    PR_ROWS
};

/* A metric may be undefined, whatever the model predicts. The result is then a NaN that encodes why
 * and that no computation yields; searches for the best result skip it. */
enum undefined { ALL_LABELS_ARE_0 = 1, ALL_LABELS_ARE_1, ALL_WEIGHTS_ARE_0, NO_GROUP_HAS_BOTH };
double metric_undefined(enum undefined);
const char *metric_undefined_text(double); /* "all labels are 0"; NULL: the value is a result */
extern const struct kinds metric_kinds;

int64_t metric_state_count(const struct metric_node *, int64_t rows);
double metric_result(const struct metric_node *, double *state);

#endif
