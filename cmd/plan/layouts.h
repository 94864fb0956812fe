/* layouts.h - estimates for a job with other numbers of ps and workers: memory per task, bytes and
 * time per step. */
#ifndef CMD_PLAN_LAYOUTS_H
#define CMD_PLAN_LAYOUTS_H

#include "cmd/check.h"
#include "cmd/plan/cost.h"
#include "cmd/planned.h"

struct hosts {
    double link_bytes_s, round_trip_s;
    double memory; /* limit per task, in bytes; 0: none */
    int count;     /* hosts that tasks share; 0: each task has its own */
    /* [named] hosts of the first tasks of a job; others repeat them. NULL: 0, 1, 2, ... */
    const int *at[JOB_COUNT];
    int named[JOB_COUNT];
};

/* Distinct rows of each table per batch: the mean of a few batches. */
struct named_rows {
    double *at; /* [variables]; 0: dense */
    int batches;
};
/* Reads the first batches of the training data. */
err named_rows_count(struct planned *, struct arena *, struct named_rows *ret);

/* The job's variables, laid out over this many ps */
struct over_ps {
    const struct planned *planned;
    struct layout *layout;
    struct rows rows;
    struct plan_bytes *bytes; /* [ps] per worker and step */
    struct arena arena;
};
/* ERR_INPUT: needs more ps. */
err over_ps_open(const struct planned *, const struct named_rows *, int ps, struct over_ps *ret);
void over_ps_close(struct over_ps *); /* a zeroed one is fine */

/* One layout; bytes of the ps that needs most memory */
struct sized {
    int ps, workers;
    double values, slots, windows, save; /* save: additional while a checkpoint is written */
    double worker;                       /* memory of a worker */
    double up, down;                     /* per worker and step */
    bool fits;
    struct plan_bytes fullest; /* between one worker and the ps with most traffic */
    struct plan_time time;
};
err over_ps_size(const struct over_ps *, int workers, const struct hosts *,
                 const struct plan_costs *, struct sized *ret);

/* 1, 2, 5, 10, ... */
int ladder_at(int index);

#endif
