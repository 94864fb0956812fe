/* optimizer_list.h - the optimizers of a run: which one updates which variable, and their common
 * settings. A variable is updated by the first optimizer whose pattern matches its name. */
#ifndef CORE_TRAIN_VARIABLES_OPTIMIZER_LIST_H
#define CORE_TRAIN_VARIABLES_OPTIMIZER_LIST_H

#include "core/train/variables/layout.h"
#include "core/train/variables/optimizer.h"

enum {
    OPTIMIZER_NONE = -1,
    OPTIMIZERS_MAX = 16,
    BLOCK_SLOTS_MAX = SLOTS_MAX + 1, /* in a block, besides values: slots, average */
    ALL_POWERS_MAX = OPTIMIZERS_MAX * POWERS_MAX,
    PATTERNS_MAX = 1024
};

/* Variables whose name matches a pattern of `match`, and none of `except`, lose rate * learning
 * rate of every value before each update; rate 0: none. As weight_decay and
 * exclude_from_weight_decay of tf.keras.optimizers: it is not part of the gradient, and in tables
 * only those rows decay that the optimizer changes. */
struct weight_decay {
    double rate;
    struct strings match, except;
};
extern const struct object weight_decay_object;

/* Every dense variable with an optimizer gets a moving average in addition to its slots, as
 * tf.train.ExponentialMovingAverage: it begins at the variable's first value, and each update adds
 * (value - average) * (1 - d). d is `decay`, or with num_updates min(decay, (1 + n) / (10 + n)),
 * where n is the global step after the update. decay 0: no averages. */
struct average_spec {
    double decay;
    bool num_updates;
};
#define AVERAGE_SLOT "ExponentialMovingAverage" /* its name in a checkpoint: NAME/... */
float average_share(const struct average_spec *, int64_t step); /* 1 - d of the update at step */

struct optimizers {
    const struct optimizer_spec *at; /* borrowed */
    struct strings frozen;           /* patterns of variables that are not trained; borrowed */
    struct weight_decay decay;       /* borrowed */
    struct average_spec average;
    int count;
    int slot_count;     /* slots of the optimizer with the most, including the average */
    double rate_factor; /* factor of all learning rates; 0: no factor */
    int power_count;    /* powers of all optimizers, one optimizer after the other */
    const char *power_names[ALL_POWERS_MAX]; /* of a second "beta1_power": "beta1_power_1" */
};

/* A range of a block that one optimizer updates: from the end of the previous section to `end`, in
 * floats. */
struct section {
    int optimizer; /* OPTIMIZER_NONE: the floats are moving averages, or frozen */
    float moving;  /* share by which each update moves them to the batch's statistics; 0: frozen */
    int64_t end;
    double decay; /* rate of the weight decay of its floats */
};

/* At most OPTIMIZERS_MAX; names go to the arena. */
struct optimizers optimizers_make(const struct optimizer_spec *, int count, struct arena *);
/* Adds a slot for averages, if the spec asks for them. */
void optimizers_keep_average(struct optimizers *, const struct average_spec *);
/* Index of the optimizer that updates the variable; OPTIMIZER_NONE: none, as it is a moving average
 * or frozen, or no pattern matches. */
int optimizers_find(const struct optimizers *, const char *variable, float moving);
bool optimizers_freeze(const struct optimizers *, const char *variable);
double optimizers_decay(const struct optimizers *, const char *variable); /* its rate; 0: none */
/* ERR_INPUT: a variable without an optimizer, a pattern that gets no variable, or an optimizer that
 * sweeps for a table that grows. */
err optimizers_check(const struct optimizers *, const struct variable *, int count, struct arena *);
/* Where in the spec the first optimizer is that counts epochs of the training data, as text; NULL:
 * none does. */
enum { OPTIMIZER_TEXT_MAX = 64 };
const char *optimizers_with_epochs(const struct optimizers *, char text[OPTIMIZER_TEXT_MAX]);
/* Converts their epochs to steps (schedule.h). ERR_INPUT: steps_per_epoch is 0, or the steps are
 * too many. */
err optimizers_count_epochs(const struct optimizers *, double steps_per_epoch);
/* The powers before the first update: [power_count] */
void optimizers_powers(const struct optimizers *, float *ret);

/* Sets *ret to the optimizer of each slice, in the arena. ERR_INPUT: a slice without an optimizer
 * that is neither a moving average nor frozen. */
err optimizers_of_slices(const struct optimizers *, const struct slice *, int count, struct arena *,
                         const int **ret);
/* The sections of a block that consists of the slices. Returns how many. */
int sections_make(const struct optimizers *, const struct slice *, const int *optimizer_of,
                  int count, int64_t floats, struct arena *, const struct section **ret);
/* How many floats come before the frozen ones at the end, at least LAYOUT_ALIGN (layout.h:
 * moved_floats) */
int64_t sections_moved(const struct section *, int count, int64_t floats);

/* "adagrad", "ftrl, adagrad", in the arena */
const char *optimizers_text(const struct optimizers *, struct arena *);

#endif
