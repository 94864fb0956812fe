/* optimizer_list.h - the optimizers of a run: which one updates which variable, and what they have
 * all together. The first whose pattern matches a variable's name has it. */
#ifndef CORE_TRAIN_VARIABLES_OPTIMIZER_LIST_H
#define CORE_TRAIN_VARIABLES_OPTIMIZER_LIST_H

#include "core/train/variables/layout.h"
#include "core/train/variables/optimizer.h"

enum {
    OPTIMIZER_NONE = -1,
    OPTIMIZERS_MAX = 16,
    BLOCK_SLOTS_MAX = SLOTS_MAX + 1, /* beside values of a block: slots, and an average */
    ALL_POWERS_MAX = OPTIMIZERS_MAX * POWERS_MAX,
    PATTERNS_MAX = 1024
};

/* Of variables that one of the patterns `match` names, and none of `except`, each update first
 * takes rate * (the learning rate) of every value; with rate 0 there is none. As
 * tf.keras.optimizers do with weight_decay and exclude_from_weight_decay: it is no part of the
 * gradient, and of a table those rows decay that the optimizer changes. */
struct weight_decay {
    double rate;
    struct strings match, except;
};
extern const struct object weight_decay_object;

/* Every dense variable that an optimizer has gets an average, beside its slots, as
 * tf.train.ExponentialMovingAverage keeps one: it begins at the variable's first value, and after
 * each update moves by (value - average) * (1 - d). d is the decay, or with num_updates
 * min(decay, (1 + n) / (10 + n)), n being the global step after the update. decay 0: there are
 * none.
 */
struct average_spec {
    double decay;
    bool num_updates;
};
#define AVERAGE_SLOT "ExponentialMovingAverage" /* as a checkpoint has it: NAME/... */
float average_share(const struct average_spec *, int64_t step); /* 1 - d of the update at step */

struct optimizers {
    const struct optimizer_spec *at; /* borrowed */
    struct strings frozen;           /* patterns of variables that keep their values; borrowed */
    struct weight_decay decay;       /* borrowed */
    struct average_spec average;
    int count;
    int slot_count;     /* slots of the optimizer that has the most, counting the average */
    double rate_factor; /* what rates of schedules are multiplied by; 0: nothing */
    int power_count;    /* powers of all optimizers, one optimizer after the other */
    const char *power_names[ALL_POWERS_MAX]; /* of a second "beta1_power": "beta1_power_1" */
};

/* The floats of a block from the end of the section before up to `end`, which one optimizer
 * updates. */
struct section {
    int optimizer; /* OPTIMIZER_NONE: statistics of each batch move its floats by the share `moving`
                    */
    float moving;  /* 0: they are frozen */
    int64_t end;
    double decay; /* rate of the weight decay of its floats */
};

/* At most OPTIMIZERS_MAX; names go to the arena. */
struct optimizers optimizers_make(const struct optimizer_spec *, int count, struct arena *);
/* Keeps averages from now on, if the spec asks for them: one slot more. */
void optimizers_keep_average(struct optimizers *, const struct average_spec *);
/* Index of the optimizer that updates the variable; OPTIMIZER_NONE: none does, as its values move
 * or are frozen, or no pattern matches. */
int optimizers_find(const struct optimizers *, const char *variable, float moving);
bool optimizers_freeze(const struct optimizers *, const char *variable);
double optimizers_decay(const struct optimizers *, const char *variable); /* its rate; 0: none */
/* ERR_INPUT: a variable that no optimizer has, a pattern that no variable is left for, or a table
 * that grows and one that sweeps. */
err optimizers_check(const struct optimizers *, const struct variable *, int count, struct arena *);
/* The place in the spec of the first optimizer that counts epochs of the training data, as text;
 * NULL: none does. */
enum { OPTIMIZER_TEXT_MAX = 64 };
const char *optimizers_with_epochs(const struct optimizers *, char text[OPTIMIZER_TEXT_MAX]);
/* Converts what they count in epochs to steps (schedule.h). ERR_INPUT: steps_per_epoch is 0, or too
 * many. */
err optimizers_count_epochs(const struct optimizers *, double steps_per_epoch);
/* The powers before the first update: [power_count] */
void optimizers_powers(const struct optimizers *, float *ret);

/* The optimizer of each slice, in the arena. ERR_INPUT: a slice that none has, and whose values
 * neither move nor are frozen. */
err optimizers_of_slices(const struct optimizers *, const struct slice *, int count, struct arena *,
                         const int **ret);
/* The sections of a block that consists of the slices. Returns how many. */
int sections_make(const struct optimizers *, const struct slice *, const int *optimizer_of,
                  int count, int64_t floats, struct arena *, const struct section **ret);
/* The floats before the frozen ones at the end, at least LAYOUT_ALIGN (layout.h: moved_floats) */
int64_t sections_moved(const struct section *, int count, int64_t floats);

/* "adagrad", "ftrl, adagrad", in the arena */
const char *optimizers_text(const struct optimizers *, struct arena *);

#endif
