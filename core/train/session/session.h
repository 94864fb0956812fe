/* session.h - the computing side of a worker: what a replica is fed, and what happens to its
 * results.
 *
 * Life: open (data, graph, layout; reports all errors of the spec, most of them before rows are
 * read), bind the blocks of every ps (replica.h), then steps. A step is the work of one push: it
 * takes the next batches of the worker's share of the stream (source.h), returns their loss, and
 * leaves the sum of their gradients, clipped and regularized as the spec says, in the bound blocks.
 * Pushing them and fetching new values is done elsewhere.
 *
 * An evaluation is a second replica beside the one that trains: another graph of the same model
 * (other batch size, dropout off) with the same values, created on first use. A session that only
 * evaluates has no ps and no second replica, and takes its values from a checkpoint.
 *
 * One thread calls. A step allocates nothing.
 */
#ifndef CORE_TRAIN_SESSION_SESSION_H
#define CORE_TRAIN_SESSION_SESSION_H

#include "core/base/overlap.h"
#include "core/data/source.h"
#include "core/train/session/replica.h"
#include "core/train/session/rows.h"
#include "core/train/session/towers.h"
#include "core/train/spec/spec.h"

struct asked_nodes; /* evaluation.c */
struct bundle;      /* core/train/checkpoint/bundle/bundle.h */
struct bundle_entry;
struct grown;    /* core/train/checkpoint/grown.h */
struct name_map; /* core/train/checkpoint/shard.h */

/* Rows that a caller passes in, a few at a time, as a server does (session_predict_rows) */
struct asked_rows {
    const char *name;             /* for messages */
    const struct column *columns; /* [column_count] the caller's columns: labels first, with `at`
                                     NULL */
    int column_count;
    struct strings feature_names; /* names of features, as in a dataset */
    int64_t most;                 /* rows at a time, at most */
};

/* Fetches averages of variables (train.average_decay) from the ps that keeps them, and values where
 * a variable has none, to where gradients are bound: all floats of its block. ERR_PEER: they will
 * not come, and the evaluation is given up. */
struct average_source {
    err (*bring)(void *context, int ps);
    void *context;
};

/* Called during an evaluation: before each of its batches, and repeatedly while rows for one are
 * awaited (is_absent). ERR_PEER: something else comes first, and the evaluation is abandoned;
 * ERR_TIMEOUT: rows have not come for too long. */
struct interlude {
    err (*play)(void *context, bool is_absent);
    void *context;
};

struct session_options {
    const struct spec *spec;
    struct device *device;
    int worker, workers, ps_count;
    int batches_per_push;  /* gradients summed into one push (replicas_to_aggregate > workers) */
    int batches_per_round; /* of all workers together; 0: one of each worker */
    bool names_rows;       /* a push waits until the next batch is known, to name its rows */
    bool is_handed_out;    /* it trains on the batches that session_plan_batches says; else on its
                              share */
    /* To evaluate or predict without any ps: no training data, no gradients, no steps; a single ps
     * within the process, whatever the placement says; values come from session_restore. */
    bool only_evaluates;
    /* The blocks that will be bound are memory of the device, as in a single process; otherwise
     * they are the host's, and a device with memory of its own works on a mirror of them. */
    bool binds_device_memory;
    const struct exchange
        *exchange;           /* borrowed; NULL: values are there, gradients stay (replica.h) */
    enum parts_choice parts; /* with an exchange */
    const struct row_source *rows_from;         /* borrowed; where there are tables */
    const struct average_source *averages_from; /* the same; where the spec wants averages */
    enum number number, value_number; /* in which gradients leave and values arrive (rounding.h) */
    struct interlude interlude;       /* optional */
    bool without_labels; /* predict only: data.eval needs no labels. Only with only_evaluates */
    bool feeds_rows; /* the caller does, one by one (session_say_next). Only with only_evaluates */
    /* Borrowed until the session is open: these rows take the place of data.eval, which is not
     * read. Only with only_evaluates; NULL: there are none */
    const struct asked_rows *asked;
    /* Borrowed: the batches that it trains on, where another task reads the data; then nothing is
     * evaluated here. NULL: the data that the spec names */
    struct batch_source *remote_input;
    bool balances; /* the partitioner of a spec that names none is "balanced" (layout.h) */
    struct tower_devices towers; /* none: `device` computes everything. With towers nothing is
                                    exchanged during a step */
};

/* Values from session_restore, for a session that only evaluates; rows of tables stay in the
 * checkpoint. */
struct restored {
    float *values;               /* the block; NULL: none */
    struct bundle *bundle;       /* borrowed */
    struct shard_source *tables; /* [tables] where the rows of tables that do not grow are */
    struct grown **grown;        /* [tables] NULL: it does not grow */
    void *window;                /* NULL: none */
    const struct fresh *fresh;   /* newer values that replace them (fresh.h); NULL: none */
    struct row_source source;
    const struct name_map *averages; /* [average_count] that are read instead of values */
    int average_count;
};

struct session_data {
    struct batch_source *train, *evaluation; /* NULL: none */
    struct columns_wanted wanted; /* of data.train: read by the model and the rest of the spec */
    const struct objects *train_columns; /* of data.train, its labels among them */
    json_t *features; /* meaning of features (core/train/spec/features.h), to be stored; NULL: the
                         chief has it */
};

/* The evaluation beside training; made by the first one. */
struct session_evaluation {
    struct replica replica;
    float **averages; /* [ps_count] blocks that it computes with; NULL: it uses the values of the
                         session */
    struct prepared batch;     /* prepared for the replica that evaluates */
    double *metrics;           /* [metrics] results of the last evaluation */
    float **curves;            /* [metrics] curves of the last evaluation */
    struct asked_nodes *asked; /* made by session_predict_rows; NULL: not used yet */
};

/* What is fed to the plan of a step. */
struct step_input {
    uint64_t planned;   /* where batches are handed out: all batches before this one are known */
    uint64_t batches;   /* index of the next one in this worker's share of the stream */
    struct batch batch; /* the batch that towers share */
    uint64_t draw;
    int64_t last_rows; /* rows of the batch in the plan */
    int64_t sent_rows; /* rows of the next batch, which is being sent to the device, or is in the
                          plan because it is speculated on; 0: there is none */
};

struct clipping {
    bool is_on;
    float **gradients; /* [variables] scratch: session_list_gradients */
    int64_t *sizes;
    double norm; /* norm of the gradients of the last step, where clipping computed it */
};

struct step_metrics {
    double *states; /* of all metrics, for a batch or the whole evaluation set */
    double *last;   /* [metrics] of the last step, if has_last: its batch may be gone */
    bool has_last;
};

struct session {
    struct session_options options;
    struct arena arena;
    struct layout *layout; /* of the variables over the ps */
    struct session_data data;
    struct replica replica; /* the one that trains; with only_evaluates the one that evaluates */
    struct towers towers;   /* compute the batches of training, instead of the replica */
    bool accumulates;       /* there is one tower, which computes each batch in pieces */
    struct session_evaluation evaluation;
    struct graph *graph; /* of the first replica or tower: what the model is */
    struct rows rows;    /* of tables, where batches train */
    size_t free_bytes;   /* of the device before anything was taken; SIZE_MAX: it does not say */

    struct trace *trace; /* borrowed: session_watch */
    struct {
        uint64_t data_ns;  /* time that steps have waited for batches */
        uint64_t examples; /* rows that steps have taken */
    } taken;

    struct step_input fed;

    /* collected */
    struct clipping clip;
    int *optimizer_of; /* [variables] index in the spec's list */
    float **kept;      /* [variables] sums of clipped gradients; NULL: not needed */
    bool has_left;     /* gradients of the last step left while backward continued */
    bool regularized;
    unsigned overlap;   /* the plan of a step (core/base/overlap.h) */
    bool is_watched;    /* a hook looks at values between a step and its push */
    bool tolerates_nan; /* a loss that is not finite is reported as any other (the nan hook) */
    struct step_metrics metrics;

    struct restored restored;
    uint64_t said; /* number of the last batch of session_say_next and session_predict_rows */
};

/* ERR_INPUT names the spec and what is wrong with it or its data; ERR_MEMORY comes with a table
 * where the device has too little. */
err session_open(const struct session_options *, struct session *ret);
void session_close(struct session *); /* a zeroed one is fine */

/* The layout that the same session would have over this many ps, in the arena. ERR_INPUT:
 * placement.pins names others. */
err session_spread(const struct session *, int ps_count, struct arena *, struct layout **ret,
                   struct rows *ret_rows);
/* The bytes of its device that the session takes until its end, where it does not bind memory of
 * the device. */
err session_memory(const struct session *, size_t *ret);

/* Another worker's share of the stream, in stored order: for the task that reads for that worker.
 * It borrows the session. */
struct session_share {
    struct batch_source *source;
    bool reads[COLUMNS_MAX]; /* columns that somebody looks at */
};
err session_open_share(const struct session *, int worker, struct session_share *ret);

/* values: as they come */
void session_bind(struct session *, int ps, void *values, float *gradients);
void session_unbind(struct session *, int ps); /* the blocks are gone: no step until others come */

/* Binds a ps' window of rows, the host's memory; after session_bind. is_apart: see rows.h */
void session_bind_rows(struct session *, int ps, void *window, bool is_apart);

/* Writes the initial values of all dense variables on the ps into a block of its layout (gaps zero)
 * in the host's memory. */
err session_initial_values(struct session *, int ps, float *ret_block);

/* Copies a block in the host's memory to where gradients are bound, which may be the device's
 * memory, and back. Values are sent this way to a ps that has none. */
void session_put_gradients(struct session *, int ps, const float *block);
void session_get_gradients(struct session *, int ps, float *ret_block);
err session_put_initial_values(struct session *, int ps);

/* One push worth of work: takes the next batch(es), and leaves the gradients in the bound blocks.
 * ret_loss: mean over the batches, regularization included. ERR_NUMBER when it is not finite,
 * unless that is tolerated. */
err session_step(struct session *, double *ret_loss);

/* Between steps: runs the forward pass of the next one as far as values are there, even though they
 * are not yet final (exchange.is_there); called again, it continues. The step that follows has the
 * same bits as without it. Nothing happens where there is no such exchange, the next batch is not
 * ready, or a step is more than one batch on one device. true: something was computed. */
bool session_speculate(struct session *);
/* Drops what was speculated: the step starts over, with the same batch. */
void session_forget_speculation(struct session *);

/* After a step: the gradients to push are where they are bound, and stay unchanged until the next
 * step; for tables, the fronts of the windows of rows also name the rows of the next batch. Must be
 * called before a push of gradients that leave as other numbers than float32. */
err session_hand_over(struct session *);
/* Drops rounding residuals: later gradients belong to other values. */
void session_forget_residual(struct session *);

/* The spans of a step go to the trace from now on; NULL: nowhere. */
void session_watch(struct session *, struct trace *);

/* The plan of a step: for the whole batch, or for the first tower's part. */
const struct plan *session_plan(const struct session *);

/* After a step: fails with the error of a loss that is not a number, which names the variable that
 * caused it. */
err session_fail_loss(const struct session *, double loss);

/* Writes where each variable's gradient lies on the device, and its floats, into clip_gradients and
 * clip_sizes. optimizer: only variables of this one; -1: of any. Returns how many. */
int session_list_gradients(const struct session *, int optimizer);

/* Sets the gradients to push to zero: such an update keeps finite values finite. */
void session_clear_gradients(struct session *);

/* Moves to batch number `batch` of this worker's share of the stream (source.h): where an earlier
 * incarnation of this worker, or a checkpoint, left off. Does nothing where it is there already;
 * after an error it is where it was. */
err session_seek(struct session *, uint64_t batch);
/* Says which batches of the data the numbers from `first` on are: see core/data/source.h. ERR_INPUT
 */
err session_plan_batches(struct session *, uint64_t first, const uint64_t *ranges, int count);

/* How many batches the next step takes from the source, not counting one that was taken ahead. */
int session_wants_batches(const struct session *);
/* How many batches must be awaited before a step can begin without waiting, or compute its first
 * ones without waiting; 0: none. */
int session_lacks_batches(const struct session *);

/* Metric i of the graph, for the last batch of the last step. */
double session_metric(struct session *, int metric);

struct evaluation {
    int64_t rows;
    double loss;          /* mean loss, without regularization */
    double *metrics;      /* [graph->metric_count], in the arena of the session */
    float *const *curves; /* likewise; NULL for a metric that has none (core/graph/op.h) */
};
/* Evaluates the evaluation set with the bound values; rows 0 when the spec has none. ERR_PEER: rows
 * of tables did not come, or something else must be done first (interlude). */
err session_evaluate(struct session *, struct evaluation *ret);

/* With only_evaluates: takes the values of all variables from a checkpoint, dtrain's or
 * TensorFlow's, however it is partitioned; called again, from the next checkpoint. Rows of tables
 * are read when a batch names them, so the checkpoint stays open and must not change until the next
 * call. ERR_INPUT names the variable that is absent and the nearest name that is there, or both
 * shapes. */
err session_restore(struct session *, struct bundle *);

/* Whether a prediction of this many numbers implies a class (one of exclusive classes, or a single
 * label), and which. */
bool prediction_has_class(enum prediction, int64_t columns);
int64_t prediction_class(enum prediction, const float *row, int64_t columns);

/* The predictions of each head for rows first .. first + rows - 1 of the evaluation set, in the
 * form that its loss uses (its loss->predicts): a probability per class, or per label, or numbers.
 */
enum { PREDICTED_NODES_MAX = 64 };
struct predictions {
    int64_t first, rows;
    struct predicted {
        int64_t columns;
        const float *at;            /* [rows, columns]: valid during the call */
    } heads[HEADS_MAX],             /* [graph->head_count] */
        nodes[PREDICTED_NODES_MAX]; /* outputs of the nodes that the taker names, unchanged */
};
struct prediction_taker {
    err (*take)(void *context, const struct predictions *);
    void *context;
    const int *nodes; /* [node_count] of the graph, by index; with only_evaluates */
    int node_count;
    bool has_no_heads; /* only nodes are looked at */
};
/* Predicts in stored order, batch by batch, with the bound values. */
err session_predict(struct session *, const struct prediction_taker *);

/* With asked: predicts rows in columns as they were described; columns that no node reads may be at
 * NULL. Few rows take little time: there are graphs of several sizes, each made when it is first
 * needed. The predictions are valid until the next call. ERR_INPUT: the model has no predictions.
 */
err session_predict_rows(struct session *, const struct column *columns, int64_t rows,
                         struct predictions *ret);
/* Whether any node reads the column. */
bool session_reads_column(const struct session *, int column);

/* With only_evaluates and feeds_rows: describes a model that predicts for each position of a row of
 * ids what follows. ERR_INPUT: the model is not of this kind. */
struct text_model {
    int64_t time, classes;
};
err session_text_model(const struct session *, struct text_model *ret);
/* Predicts what follows `count` ids, at most the length of a row, with states that begin at zero.
 * The rest of the row is id 0, which a model sees whose positions see later ones. */
err session_say_next(struct session *, const int64_t *ids, int64_t count, float *ret_logits);

#endif
