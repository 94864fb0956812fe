/* spec.h - what to train: the JSON file as one struct. */
#ifndef CORE_TRAIN_SPEC_SPEC_H
#define CORE_TRAIN_SPEC_SPEC_H

#include "core/data/data.h"
#include "core/graph/graph.h"
#include "core/train/variables/layout.h"
#include "core/train/variables/optimizer_list.h"

enum train_mode { MODE_ASYNC, MODE_SYNC };
/* Who reads the data: each worker its share, or the chief for all. */
enum replication { BETWEEN_GRAPH, IN_GRAPH };
enum corrupt_policy { CORRUPT_ERROR, CORRUPT_PREVIOUS };

struct warm_start_spec {
    const char *checkpoint; /* a folder or a prefix */
    json_t *map;            /* as written: [["old/x", "new/x"]] or [{"from", "to"}]; borrowed */
    struct objects maps;    /* parsed, of struct name_map (checkpoint/shard.h) */
    struct strings skip;
    bool slots;
    int absent;           /* enum warm_absent */
    json_t *vocabularies; /* {column: file with the words of that checkpoint}; NULL: none; borrowed
                           */
};
enum warm_absent { ABSENT_ERROR, ABSENT_INITIAL };

/* Devices that share a task's batches; count 0: a single one */
struct tower_spec {
    int count;
    struct strings devices; /* of each, as in device_choice.h; none: those of the task */
};

/* Publishing of changes since the last checkpoint, for servers
 * (core/train/checkpoint/publication.h) */
struct publish_spec {
    double every_secs; /* 0: not */
    const char *to;    /* NULL: checkpoint.dir */
};

struct checkpoint_spec {
    const char *dir;           /* NULL: nothing is saved */
    double every_secs;         /* 600 where neither is given; 0: not by time */
    int64_t every_steps;       /* 0: not by steps */
    int64_t keep_max;          /* 5; 0: all */
    double keep_every_n_hours; /* 10000 */
    int on_corrupt;            /* enum corrupt_policy */
    struct publish_spec publish;
};

struct summary_spec {
    const char *dir;     /* NULL: checkpoint.dir */
    int64_t every_steps; /* 100 where neither is given */
    double every_secs;
    int64_t log_step_count_steps; /* 100; 0: never */
};

struct evaluation_spec {
    int64_t every_steps; /* 0: only at the end */
    double every_secs;
    int64_t keep_best;       /* 0: none; the run keeps this many, by its own evaluations */
    const char *best_metric; /* NULL: best_metric_of() */
    bool restore_best;       /* requires keep_best >= 1 */
};

struct absence_spec {
    uint64_t worker_timeout_ms; /* 60 s: how long to wait for a lost worker */
    int64_t min_workers;        /* 1: with fewer the job ends */
    int64_t ps_replicas;        /* 0, or 1: every ps has a replica on another one */
};

struct train_spec {
    int mode;          /* enum train_mode; async by default */
    int64_t last_step; /* global steps. Exactly one of last_step, epochs, num_steps is given; the
                          others are 0 */
    double epochs;
    int64_t num_steps;             /* from the step where the run begins */
    bool daily;                    /* epochs are of these files alone (core/train/spec/day.h) */
    int64_t replicas_to_aggregate; /* sync: 0: the number of workers */
    int64_t max_staleness;         /* async: -1: unbounded */
    int wire, wire_values;         /* enum number: formats in which gradients and values are sent;
                                      float32 */
    int replication;               /* enum replication; BETWEEN_GRAPH by default */
    json_t *tower_list;            /* as written: 4, or ["gpu:0", "gpu:1"]; borrowed */
    struct tower_spec towers;      /* parsed */
    int64_t accumulate;            /* parts into which each batch is split; 1 */
    int64_t log_every_steps;       /* 100 */

    struct checkpoint_spec checkpoint;
    struct warm_start_spec warm_start; /* checkpoint NULL: none */
    struct strings freeze;             /* patterns */
    struct weight_decay weight_decay;
    struct average_spec average; /* decay 0: none */
    struct absence_spec absence;
    struct summary_spec summary;
    struct evaluation_spec evaluation;
    bool log_device_placement;
    struct objects hooks; /* of struct variant */
};

struct spec {
    const char *name;
    int64_t seed;
    json_t *definitions, *blocks; /* NULL: already expanded */
    struct data_spec data;
    struct model_spec model;         /* spec keys "model", "heads" or "loss" and "metrics" */
    struct optimizer_spec optimizer; /* as written: kind NULL if there is a list */
    struct objects optimizer_list;   /* as written, of struct optimizer_spec: empty if there is one
                                        optimizer */
    struct optimizers optimizers;    /* of either form */
    struct placement_spec placement;
    struct train_spec train;
    const char *device; /* "auto": device_choice.h */
    int precision;      /* enum precision (kernels.h) */

    const char *source;    /* for messages: file name, or "standard input" */
    const char *directory; /* relative paths of data are relative to it */
    json_t *json;          /* the whole spec after overrides; owned */
    char fingerprint[17];  /* 16 hex digits: of everything that must be equal in all tasks */
    char as_written[17];   /* the same, without statistics of the data (spec_measure) */
    /* The meaning of features (core/train/spec/features.h), of this spec and of the checkpoint;
     * owned; NULL: unknown */
    json_t *features, *kept_features;
    struct strings feature_names; /* of the checkpoint; empty: unknown */
    bool accepts_changed_features, trains_nothing;
    struct arena arena;
};
extern const struct object spec_object;
/* The kinds of "model" entries: the ops, and those that stand for several nodes (mlp, whose
 * descriptor is NULL: a loaded spec has none left). */
extern const struct kinds node_kinds;
extern const struct object repeat_object, block_object;
extern const char *const precision_names[]; /* of enum precision; ends with NULL */
extern const char *const number_names[];    /* of enum number; ends with NULL */

struct spec_options {
    const char *path;         /* "-": standard input */
    struct strings overrides; /* --set path=value */
    const char *data_dir;     /* NULL: the spec's own folder */
    int64_t seed;             /* -1: the spec's */
    bool trains_nothing;      /* hooks then need no folder */
    bool accepts_changed_features;
};

err spec_load(const struct spec_options *,
              struct spec *ret); /* text: "spec.json: model[2].units: ..." */
void spec_free(struct spec *);

/* For predictions, after spec_measure: drops weights of rows, metrics, and columns that no node
 * reads, so that rows may come without their cells. */
void spec_leave_measures(struct spec *);

/* Statistics of the training data that the spec needs: means and deviations of "standardize"
 * columns, and the words of labels. They become part of the spec and of its fingerprint, by which
 * tasks know that theirs are equal. Taken from this folder if it has a checkpoint, else computed by
 * reading the data. folder: NULL: none. is_restored: only stored ones may be used. Once, before the
 * data are opened. Also describes the meaning of features, and compares it with the stored one.
 * Call spec_take_kept first; ERR_IO: storage failed, and the call may be repeated. */
err spec_take_kept(struct spec *, const char *folder, bool is_restored);
err spec_measure(struct spec *);
/* For a task without data: another task sends its statistics, as JSON. New reference; ERR_MEMORY.
 */
err spec_tell_measured(const struct spec *, json_t **ret);
err spec_take_measured(struct spec *, json_t *);
/* Stores them in the folder, with the meaning of features, as the open data say (session.h).
 * ERR_IO. */
err spec_keep_measured(const struct spec *, const json_t *features, const char *folder);

/* The meaning of features of the checkpoints in a folder (features.h); NULL: not stored. New
 * reference. ERR_INPUT, ERR_IO: unreadable. */
err spec_read_features(const char *folder, json_t **ret);

/* Copies stored statistics from one folder to another, if there are any. */
err spec_copy_measured(const char *from, const char *to);

/* Adds to the error why the data of a section could not be read: its name and where to get them.
 * Returns e. */
err spec_fail_data(const struct spec *, const char *section, err e);

/* Indented JSON for display, without secrets of URLs. Freed with free(). NULL: out of memory. */
char *spec_text(const struct spec *);

bool spec_is_in_graph(const struct spec *); /* the chief reads the data for all workers */
bool spec_hands_out(const struct spec *);   /* workers get batches as they ask for them */

/* Gradients per global step. */
int64_t spec_replicas(const struct spec *, int workers);

/* Where the run ends: last_step, or epochs over rows with this many examples per global step, or
 * num_steps, to which the caller adds the step where the run begins. */
int64_t spec_last_step(const struct spec *, int64_t train_rows, int workers);
double spec_steps_per_epoch(const struct spec *, int64_t train_rows, int workers);
int64_t spec_steps_of(const struct spec *, double rows, int workers); /* global steps that this many
                                                                         rows last */

#endif
