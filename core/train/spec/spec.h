/* spec.h - what to train: the JSON file as one struct. */
#ifndef CORE_TRAIN_SPEC_SPEC_H
#define CORE_TRAIN_SPEC_SPEC_H

#include "core/data/data.h"
#include "core/graph/graph.h"
#include "core/train/variables/layout.h"
#include "core/train/variables/optimizer_list.h"

enum train_mode { MODE_ASYNC, MODE_SYNC };
/* Who reads the data: each worker its own share, or the chief all of them. */
enum replication { BETWEEN_GRAPH, IN_GRAPH };
enum corrupt_policy { CORRUPT_ERROR, CORRUPT_PREVIOUS };

struct warm_start_spec {
    const char *checkpoint; /* a folder or a prefix */
    json_t *map;            /* as it stands: [["old/x", "new/x"]] or [{"from", "to"}]; borrowed */
    struct objects maps;    /* the same, of struct name_map (checkpoint/shard.h) */
    struct strings skip;
    bool slots;
    int absent;           /* enum warm_absent */
    json_t *vocabularies; /* {column: file with its words there}; NULL: none; borrowed */
};
enum warm_absent { ABSENT_ERROR, ABSENT_INITIAL };

/* What computes a task's batches together; count 0: one device does. */
struct tower_spec {
    int count;
    struct strings devices; /* of each, as device_choice.h has them; none: those of the task */
};

/* What changed since the last checkpoint, for servers (core/train/checkpoint/publication.h) */
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
    int64_t keep_best;       /* 0: none; the run itself keeps this many, by its own evaluations */
    const char *best_metric; /* NULL: best_metric_of() */
    bool restore_best;       /* keep_best is 1 or more then */
};

struct absence_spec {
    uint64_t worker_timeout_ms; /* 60 s: how long a lost worker is waited for */
    int64_t min_workers;        /* 1: with fewer the job ends */
    int64_t ps_replicas;        /* 0, or 1: what a ps holds is held by another one, too */
};

struct train_spec {
    int mode;          /* enum train_mode; async by default */
    int64_t last_step; /* global steps. Exactly one of these three is given, the others are 0 */
    double epochs;
    int64_t num_steps;             /* from where the run begins */
    bool daily;                    /* epochs are of these files alone (core/train/spec/day.h) */
    int64_t replicas_to_aggregate; /* sync: 0: the number of workers */
    int64_t max_staleness;         /* async: -1: unbounded */
    int wire, wire_values;         /* enum number: what gradients travel as, and values; float32 */
    int replication;               /* enum replication; between graphs by default */
    json_t *tower_list;            /* as it stands: 4, or ["gpu:0", "gpu:1"]; borrowed */
    struct tower_spec towers;      /* the same */
    int64_t accumulate;            /* batches as written that are one batch of the data, 1 */
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
    json_t *definitions, *blocks; /* NULL: they stand where they are used */
    struct data_spec data;
    struct model_spec model;         /* spec keys "model", "heads" or "loss" and "metrics" */
    struct optimizer_spec optimizer; /* as written: kind NULL, or the only one */
    struct objects optimizer_list;   /* as written: none, or of struct optimizer_spec */
    struct optimizers optimizers;    /* whichever was written */
    struct placement_spec placement;
    struct train_spec train;
    const char *device; /* "auto": device_choice.h */
    int precision;      /* enum precision (kernels.h) */

    const char *source;    /* for messages: the file, or "standard input" */
    const char *directory; /* relative paths of data are relative to it */
    json_t *json;          /* the whole spec after overrides; owned */
    char fingerprint[17];  /* 16 hex digits: of everything that must be equal in all tasks */
    char as_written[17];   /* the same, without what was measured of the data (spec_measure) */
    /* What features mean (core/train/spec/features.h), here and by the checkpoint; owned; NULL: not
     * known */
    json_t *features, *kept_features;
    struct strings feature_names; /* by the checkpoint; none: not known */
    bool accepts_changed_features, trains_nothing;
    struct arena arena;
};
extern const struct object spec_object;
/* What "model" has: the ops, and what stands for several nodes of them (mlp, whose descriptor is
 * NULL: there are none left in a spec that is loaded). */
extern const struct kinds node_kinds;
extern const struct object repeat_object, block_object;
extern const char *const precision_names[]; /* of enum precision; ends with NULL */
extern const char *const number_names[];    /* of enum number; ends with NULL */

struct spec_options {
    const char *path;         /* "-": standard input */
    struct strings overrides; /* --set path=value */
    const char *data_dir;     /* NULL: the spec's own folder */
    int64_t seed;             /* -1: the spec's */
    bool trains_nothing;      /* so that no hook wants a folder */
    bool accepts_changed_features;
};

err spec_load(const struct spec_options *,
              struct spec *ret); /* text: "spec.json: model[2].units: ..." */
void spec_free(struct spec *);

/* For predictions, of a measured spec: without weights of rows and metrics, and without the columns
 * that no node reads, of which rows need no cell then. */
void spec_leave_measures(struct spec *);

/* What the spec leaves to the training data, means and deviations of columns that say "standardize"
 * and the words that labels are, becomes part of it and of its fingerprint, by which tasks know
 * that they have the same: what was kept in this folder, where it has a checkpoint; else what the
 * data say, which are read for it. folder: NULL: none. is_restored: only what was kept there will
 * do. Once, before the data are opened. What features mean is described, and compared with what was
 * kept. First what was kept; ERR_IO: storage failed, which may be asked again. */
err spec_take_kept(struct spec *, const char *folder, bool is_restored);
err spec_measure(struct spec *);
/* The same of a task that has no data: as another one tells, in JSON. New reference; ERR_MEMORY. */
err spec_tell_measured(const struct spec *, json_t **ret);
err spec_take_measured(struct spec *, json_t *);
/* Keeps it there, with what features mean, as the open data say (session.h). ERR_IO. */
err spec_keep_measured(const struct spec *, const json_t *features, const char *folder);

/* What features mean of the checkpoints in a folder (features.h); NULL: nothing is kept there. New
 * reference. ERR_INPUT, ERR_IO: it cannot be read. */
err spec_read_features(const char *folder, json_t **ret);

/* What is kept in one folder, to another, if there is anything. */
err spec_copy_measured(const char *from, const char *to);

/* Why the data of a section could not be read, with its name and where they can be had. Returns e.
 */
err spec_fail_data(const struct spec *, const char *section, err e);

/* As indented JSON, to be looked at: URLs without their secrets. Freed with free(). NULL: no
 * memory.
 */
char *spec_text(const struct spec *);

bool spec_is_in_graph(const struct spec *); /* the chief reads the data for all workers */
bool spec_hands_out(const struct spec *);   /* workers take batches as they come to them */

/* Gradients that go into one global step. */
int64_t spec_replicas(const struct spec *, int workers);

/* Where the run ends: last_step, or epochs over rows with this many examples per global step, or
 * num_steps, to which the step where the run begins is to be added. */
int64_t spec_last_step(const struct spec *, int64_t train_rows, int workers);
double spec_steps_per_epoch(const struct spec *, int64_t train_rows, int workers);
int64_t spec_steps_of(const struct spec *, double rows, int workers); /* that this many rows make */

#endif
