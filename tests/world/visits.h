/* visits.h - commands that somebody gives while a job runs: variables are read and changed, the job
 * is to have more or fewer tasks. */
#ifndef TESTS_WORLD_VISITS_H
#define TESTS_WORLD_VISITS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct cluster;
struct job_plan;
struct process;

enum { VISITS_MOST = 4 };

enum visit_kind {
    VISIT_LIST,
    VISIT_GET,   /* of a variable that is trained */
    VISIT_STEP,  /* of global_step */
    VISIT_ADD,   /* to a variable of its own */
    VISIT_SET,   /* one of its own */
    VISIT_TOUCH, /* adds nothing to a variable that is trained */
    VISIT_WATCH, /* a variable that is trained, for a while */
    VISIT_RATE,  /* the learning rate becomes what it is, and all begin again for it */
    VISIT_SCALE, /* the job */
    VISIT_KINDS
};

struct visit {
    enum visit_kind kind;
    uint64_t at_ns; /* from the start of the job */
    int ps, workers;
    int tries; /* of what is to be tried again later */
    struct process *process;
};

/* Few jobs have any; of those that can be resized some begin small. sets: all are of VISIT_RATE. */
void visits_draw(struct job_plan *, bool sets);
void visit_print(const struct visit *, FILE *);
bool visits_resize(const struct job_plan *);

void visits_begin(struct cluster *);
bool visits_have_ended(const struct cluster *);
void visits_check(const struct cluster *);

#endif
