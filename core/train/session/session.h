/* session.h - the computing side of a worker: what a replica is fed, and what is made of what it
 * computes.
 *
 * Life: open (data, graph, layout; everything that the spec may have wrong is told here, most of it
 * before rows are read), bind the
 * blocks of every ps (replica.h), then steps. A step is one push worth of work: it takes the next
 * batches of the worker's share of the stream (source.h), and leaves their loss with the caller and
 * the sum of their gradients, clipped and regularized as the spec says, in the bound blocks. Who
 * pushes them, and where new values come from, is not known here.
 *
 * An evaluation is a second replica beside the one that trains: another graph of the same model
 * (other batch size, dropout off) at the same values. It is made when it is first wanted. A session
 * that only evaluates has no ps and no second replica, and takes its values from a checkpoint.
 *
 * One thread calls. Nothing is allocated by a step.
 */
#ifndef CORE_TRAIN_SESSION_SESSION_H
#define CORE_TRAIN_SESSION_SESSION_H

#include "core/base/overlap.h"
#include "core/data/source.h"
#include "core/train/session/replica.h"
#include "core/train/session/rows.h"
#include "core/train/session/towers.h"
#include "core/train/spec/spec.h"

struct asked;  /* evaluation.c */
struct bundle; /* core/train/checkpoint/bundle/bundle.h */
struct bundle_entry;
struct grown;    /* core/train/checkpoint/grown.h */
struct name_map; /* core/train/checkpoint/shard.h */

/* Rows that somebody brings, a few at a time, as a server does (session_predict_rows) */
struct asked_rows {
    const char *name;             /* for messages */
    const struct column *columns; /* [column_count] as they are brought: labels first, at NULL */
    int column_count;
    struct strings feature_names; /* as a dataset has them */
    int64_t most;                 /* at a time */
};

/* Who brings averages of variables from the ps that keeps them (train.average_decay), with values
 * where there are none, to where gradients are bound: all floats of its block. ERR_PEER: they will
 * not come, and nothing comes of the evaluation. */
struct average_source {
    err (*bring)(void *context, int ps);
    void *context;
};

/* What else has to be done amid an evaluation: before each of its batches, and again and again
 * while that does not come (is_absent). ERR_PEER: something comes before it, and nothing comes of
 * the evaluation; ERR_TIMEOUT: rows have not come for too long. */
struct interlude {
    err (*play)(void *context, bool is_absent);
    void *context;
};

struct session_options {
    const struct spec *spec;
    struct device *device;
    int worker, workers, ps_count;
    int batches_per_push;  /* gradients summed into one push (replicas_to_aggregate > workers) */
    int batches_per_round; /* of all workers; 0: one of each */
    bool names_rows;       /* a push waits for the next batch that is known, to name its rows */
    bool is_handed_out;    /* it trains on what session_plan_batches says; else on its share */
    /* To evaluate or predict without any ps: no training data, no gradients, no steps; one ps in
     * the process, whatever the placement says; values come from session_restore. */
    bool only_evaluates;
    /* The blocks that will be bound are memory of the device, as in a single process; otherwise
     * they are the host's, and a device with memory of its own works on a mirror of them. */
    bool binds_device_memory;
    const struct exchange
        *exchange;           /* borrowed; NULL: values are there, gradients stay (replica.h) */
    enum parts_choice parts; /* with an exchange */
    const struct row_source *rows_from;         /* borrowed; where there are tables */
    const struct average_source *averages_from; /* the same; where the spec wants averages */
    enum number number, value_number; /* what gradients leave as, and values come (rounding.h) */
    struct interlude interlude;       /* optional */
    bool without_labels; /* predict only: data.eval needs no labels. With only_evaluates */
    bool feeds_rows;     /* the caller, one by one (session_say_next). With only_evaluates */
    /* Borrowed until it is open: instead of data.eval, which is not looked at. With
     * only_evaluates; NULL: none are */
    const struct asked_rows *asked;
    /* Borrowed: what it trains on, where another task reads the data; then nothing is evaluated
     * here. NULL: what the spec names */
    struct batch_source *remote_input;
    bool balances; /* "balanced" is the partitioner of a spec that names none (layout.h) */
    struct tower_devices towers; /* none: `device` computes all. With towers nothing is exchanged
                                    during a step */
};

/* By session_restore, for one that only evaluates; its tables lie in the checkpoint. */
struct restored {
    float *values;               /* the block; NULL: none */
    struct bundle *bundle;       /* borrowed */
    struct shard_source *tables; /* [tables] of those that do not grow */
    struct grown **grown;        /* [tables] NULL: it does not grow */
    void *window;                /* NULL: none */
    const struct fresh *fresh;   /* laid over it (fresh.h); NULL: nothing is */
    struct row_source source;
    const struct name_map *averages; /* [average_count] that values are read from */
    int average_count;
};

struct session_data {
    struct batch_source *train, *evaluation; /* NULL: none */
    struct columns_wanted wanted;            /* of data.train, by the model and the rest */
    const struct objects *train_columns;     /* of data.train, its labels among them */
    json_t *features; /* what they mean (core/train/spec/features.h), to be kept; NULL: as the chief
                         says */
};

/* Beside training; made by the first evaluation. */
struct session_evaluation {
    struct replica replica;
    float **averages;      /* [ps_count] blocks that it computes with; NULL: with the session's */
    struct prepared batch; /* of the replica that evaluates */
    double *metrics;       /* [metrics] of the last one */
    float **curves;        /* [metrics] the same */
    struct asked *asked;   /* by session_predict_rows; NULL: nothing has been */
};

/* What the plan of a step is given. */
struct step_input {
    uint64_t planned;   /* where batches are handed out: those before this one are known */
    uint64_t batches;   /* index of the next one in this worker's share of the stream */
    struct batch batch; /* that towers share */
    uint64_t draw;
    int64_t last_rows; /* of the batch in the plan */
    int64_t sent_rows; /* of the next one, which is on its way to the device, or in the plan as what
                          is speculated is of it; 0: it is not */
};

struct clipping {
    bool is_on;
    float **gradients; /* [variables] scratch: session_list_gradients */
    int64_t *sizes;
    double norm; /* of the gradients of the last step, where clipping computed it */
};

struct step_metrics {
    double *states; /* of all metrics, for a batch or the whole evaluation set */
    double *last;   /* [metrics] of the last step, where has_last: its batch may be gone */
    bool has_last;
};

struct session {
    struct session_options options;
    struct arena arena;
    struct layout *layout; /* of the variables over the ps */
    struct session_data data;
    struct replica replica; /* trains; with only_evaluates it evaluates */
    struct towers towers;   /* compute what is trained on, instead of the replica */
    bool accumulates;       /* towers: one, which computes each batch in pieces */
    struct session_evaluation evaluation;
    struct graph *graph; /* the first one's: what the model is */
    struct rows rows;    /* of tables, where batches train */
    size_t free_bytes;   /* of the device before anything was taken; SIZE_MAX: it does not say */

    struct trace *trace; /* borrowed: session_watch */
    struct {
        uint64_t data_ns;  /* that steps have waited for batches */
        uint64_t examples; /* rows that steps have taken */
    } taken;

    struct step_input fed;

    /* collected */
    struct clipping clip;
    int *optimizer_of; /* [variables] index in the spec's list */
    float **kept;      /* [variables] sums of clipped gradients; NULL: not needed */
    bool has_left;     /* the gradients of the last step, while backward went on */
    bool regularized;
    unsigned overlap;   /* the plan of a step (core/base/overlap.h) */
    bool is_watched;    /* a hook looks at values between a step and its push */
    bool tolerates_nan; /* a loss that is not finite is reported as any other (the nan hook) */
    struct step_metrics metrics;

    struct restored restored;
    uint64_t said; /* by session_say_next and session_predict_rows: the number of the last batch */
};

/* ERR_INPUT names the spec and what is wrong with it or its data; ERR_MEMORY comes with a table
 * where the device has too little. */
err session_open(const struct session_options *, struct session *ret);
void session_close(struct session *); /* a zeroed one is fine */

/* What the same session would have over so many ps, in the arena. ERR_INPUT: placement.pins names
 * others. */
err session_spread(const struct session *, int ps_count, struct arena *, struct layout **ret,
                   struct rows *ret_rows);
/* Bytes that it takes of its device until its end, where values are not bound to the device's. */
err session_memory(const struct session *, size_t *ret);

/* Another worker's share of the stream, as it is stored: for who reads for it. It borrows the
 * session. */
struct session_share {
    struct batch_source *source;
    bool reads[COLUMNS_MAX]; /* columns that somebody looks at */
};
err session_open_share(const struct session *, int worker, struct session_share *ret);

/* values: as they come */
void session_bind(struct session *, int ps, void *values, float *gradients);
void session_unbind(struct session *, int ps); /* the blocks are gone: no step until others come */

/* The window of rows of a ps, the host's memory; after session_bind. is_apart: rows.h */
void session_bind_rows(struct session *, int ps, void *window, bool is_apart);

/* The initial values of everything dense that lives on the ps, into a block of its layout (gaps
 * zero) in the host's memory. */
err session_initial_values(struct session *, int ps, float *ret_block);

/* A block in the host's memory to where gradients are bound, which may be the device's, and from
 * there. Values travel so to a ps that has none. */
void session_put_gradients(struct session *, int ps, const float *block);
void session_get_gradients(struct session *, int ps, float *ret_block);
err session_put_initial_values(struct session *, int ps);

/* One push worth of work: next batch(es), loss and gradients into the bound blocks. ret_loss: mean
 * over the batches, regularization included. ERR_NUMBER when it is not finite, unless that is
 * tolerated. */
err session_step(struct session *, double *ret_loss);

/* Between steps: the forward pass of the next one, as far as values are there that are not yet sure
 * (exchange.is_there); again, it continues from there. Nothing can be seen of it before the step,
 * which is the same to the bit. Nothing happens where there is no such exchange, the next batch
 * does not lie ready, or a step is more than a batch on one device. true: something was done. */
bool session_speculate(struct session *);
/* Nothing is speculated any more: the step starts over, with the same batch. */
void session_forget_speculation(struct session *);

/* After a step: what is to be pushed is where it is bound, and stays as it is until the next one;
 * of tables, in the fronts of the windows of rows, the rows of the next batch are named with it.
 * It may not be pushed before, where it leaves as other numbers than float32. */
err session_hand_over(struct session *);
/* A rounding error that later gradients were to make up for is none of theirs any more. */
void session_forget_residual(struct session *);

/* What is done in a step goes to the trace from now on; NULL: nowhere. */
void session_watch(struct session *, struct trace *);

/* The plan of a step: of all of it, or of the first tower's part. */
const struct plan *session_plan(const struct session *);

/* After a step: the error of a loss that is no number, which names the variable it comes from. */
err session_fail_loss(const struct session *, double loss);

/* Writes where each variable's gradient lies on the device, and its floats, into clip_gradients and
 * clip_sizes. optimizer: of whose variables; -1: of all that have one. Returns how many. */
int session_list_gradients(const struct session *, int optimizer);

/* What would be pushed becomes zero: an update by it keeps numbers where numbers are. */
void session_clear_gradients(struct session *);

/* The next batch that this worker takes is number `batch` of its share of the stream (source.h):
 * where another life of this worker, or a checkpoint, left off. Nothing happens where it stands
 * there already; after an error it stands where it stood. */
err session_seek(struct session *, uint64_t batch);
/* Which batches of the data the numbers from `first` on are: core/data/source.h. ERR_INPUT */
err session_plan_batches(struct session *, uint64_t first, const uint64_t *ranges, int count);

/* How many batches the next step takes of the source: not one that was taken ahead. */
int session_wants_batches(const struct session *);
/* How many batches must be awaited before a step need not wait, or not for its first ones; 0: none.
 */
int session_lacks_batches(const struct session *);

/* Of the last batch of the last step: metric i of the graph. */
double session_metric(struct session *, int metric);

struct evaluation {
    int64_t rows;
    double loss;          /* mean, without regularization */
    double *metrics;      /* [graph->metric_count], in the arena of the session */
    float *const *curves; /* the same; of a metric that has none, NULL (core/graph/op.h) */
};
/* The evaluation set at the bound values; rows 0 when the spec has none. ERR_PEER: rows of
 * tables did not come, or something else is to be done first (interlude). */
err session_evaluate(struct session *, struct evaluation *ret);

/* With only_evaluates: the values of all variables from a checkpoint, dtrain's or TensorFlow's,
 * however it is cut; again with the next one. Of tables rows are read when a batch names them: the
 * checkpoint stays open and as it is until the next one comes. ERR_INPUT names the variable that is
 * absent and the nearest name that is there, or both shapes. */
err session_restore(struct session *, struct bundle *);

/* Whether a row of so many numbers says a class, as of labels that exclude each other or one alone,
 * and which. */
bool prediction_has_class(enum prediction, int64_t columns);
int64_t prediction_class(enum prediction, const float *row, int64_t columns);

/* What each head says of rows first .. first + rows - 1 of the evaluation set, as its loss takes it
 * (its loss->predicts): a probability per class, or of each label, or numbers. */
enum { PREDICTED_NODES_MAX = 64 };
struct predictions {
    int64_t first, rows;
    struct predicted {
        int64_t columns;
        const float *at;            /* [rows, columns]: valid during the call */
    } heads[HEADS_MAX],             /* [graph->head_count] */
        nodes[PREDICTED_NODES_MAX]; /* that the taker names, as they are */
};
struct prediction_taker {
    err (*take)(void *context, const struct predictions *);
    void *context;
    const int *nodes; /* [node_count] of the graph, by index; with only_evaluates */
    int node_count;
    bool has_no_heads; /* only nodes are looked at */
};
/* In stored order, batch by batch, at the bound values. */
err session_predict(struct session *, const struct prediction_taker *);

/* With asked: the predictions of rows in columns as they were described; those that no node reads
 * may be at NULL. A few rows take little time: there are graphs of several sizes, each made when it
 * is first wanted. They are valid until the next call. ERR_INPUT: the model has no predictions. */
err session_predict_rows(struct session *, const struct column *columns, int64_t rows,
                         struct predictions *ret);
/* Whether nodes read the column. */
bool session_reads_column(const struct session *, int column);

/* With only_evaluates and feeds_rows, of a model that says for each place of a row of ids what
 * comes behind it: ERR_INPUT, it is none. */
struct text_model {
    int64_t time, classes;
};
err session_text_model(const struct session *, struct text_model *ret);
/* What comes behind `count` ids, of which a row has as many at most, begun with states of zero. The
 * rest of the row is id 0: a model whose places see what is behind them sees that. */
err session_say_next(struct session *, const int64_t *ids, int64_t count, float *ret_logits);

#endif
