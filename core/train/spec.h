/* spec.h - what to train: the JSON file as one struct. */
#ifndef CORE_TRAIN_SPEC_H
#define CORE_TRAIN_SPEC_H

#include "core/data/data.h"
#include "core/graph/graph.h"
#include "core/train/layout.h"
#include "core/train/optimizer.h"

enum train_mode { MODE_ASYNC, MODE_SYNC };

struct train_spec {
    int mode;          /* enum train_mode; async by default */
    int64_t last_step; /* global steps; 0: from epochs. Exactly one of the two is given */
    double epochs;     /* 0: from last_step */
    int64_t replicas_to_aggregate; /* sync: 0: the number of workers */
    int64_t max_staleness;         /* async: -1: unbounded */
    int64_t log_every_steps;       /* 100 */
};

struct spec {
    const char *name;
    int64_t seed;
    struct data_spec data;
    struct model_spec model; /* spec keys "model", "loss", "metrics" */
    struct optimizer_spec optimizer;
    struct placement_spec placement;
    struct train_spec train;

    const char *directory; /* relative paths of data are relative to it */
    json_t *json;          /* the whole spec after overrides; owned */
    char fingerprint[17];  /* 16 hex digits: of everything that must be equal in all tasks */
    struct arena arena;
};
extern const struct object spec_object;

struct spec_options {
    const char *path;         /* "-": standard input */
    struct strings overrides; /* --set path=value */
    const char *data_dir;     /* NULL: the spec's own folder */
    int64_t seed;             /* -1: the spec's */
};

err spec_load(const struct spec_options *,
              struct spec *ret); /* text: "spec.json: model[2].units: ..." */
void spec_free(struct spec *);

/* Gradients that go into one global step. */
int64_t spec_replicas(const struct spec *, int workers);

/* Global steps that the run takes: last_step, or epochs over rows with this many examples per
 * global step. */
int64_t spec_last_step(const struct spec *, int64_t train_rows, int workers);

#endif
