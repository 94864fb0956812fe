/* store.h - the parameters of one ps: one block of values, and the optimizer's state beside it. */
#ifndef CORE_TRAIN_VARIABLES_STORE_H
#define CORE_TRAIN_VARIABLES_STORE_H

#include "core/base/range.h"
#include "core/train/variables/optimizer_list.h"

/* One of the optimizers, as the run uses it */
struct updater {
    const struct optimizer *optimizer;
    const void *attributes;
    const struct schedule_spec *learning_rate;
    int form, slot_count; /* of its rule; the average is the slot after them */
    int first_power;
    double decay; /* of a table: the rate of its weight decay */
};

enum { ADVANCED_MAX = 64 };

struct store {
    struct device *device;
    struct updater updaters[OPTIMIZERS_MAX];
    int updater_count;
    double rate_factor;             /* times the learning rate of each */
    const struct section *sections; /* [section_count]; none: the first updater has the block */
    int section_count;
    struct section whole;
    int64_t floats; /* a multiple of 16 */
    float *values;  /* [floats], borrowed: the memory that workers see */
    /* Of the updater with the most, and the average: the floats of others leave the rest unused */
    int slot_count;
    float *slots[BLOCK_SLOTS_MAX];
    struct average_spec average;
    float *scratch; /* where the device has memory of its own: a tile of summed gradients */
    int power_count;
    float powers[ALL_POWERS_MAX]; /* in the order of the updaters */
    /* Of gradients, and of snapshots; float32 where the owner sets nothing else */
    enum number number, shown;
    uint64_t version;                    /* updates applied */
    struct range advanced[ADVANCED_MAX]; /* ranges that have the values of the next version already;
                                            ascending, apart from each other */
    int advanced_count;
    float *sum; /* sum of the gradients that were folded; NULL until the first */
    bool has_sum;
    float *kept[1 + BLOCK_SLOTS_MAX]; /* the earlier values and slots of these ranges; NULL until
                                         one advances */
};

/* sections: of a block that is updated by several; borrowed. values: the caller's memory of the
 * device, of at least floats floats, zeroed, aligned to 64, outlives the store. */
err store_open(const struct optimizers *, const struct section *, int section_count,
               struct device *, int64_t floats, float *values, struct store *ret);
/* The juncture of one of the updaters before an update at this global step. */
struct juncture store_juncture(const struct store *, int updater, int64_t step);
/* Bytes for one tile of summed gradients; 0 on a device without memory of its own. */
size_t store_scratch_bytes(const struct device *, int64_t floats);
/* Array 0 has the values, array 1 + i slot i. */
float *store_array(const struct store *, int array);
void store_close(struct store *);
void store_reset(
    struct store *); /* slots and powers to their initial values, version 0; values stay */
void store_begin_averages(struct store *); /* sets averages to the values, where there are any */
/* Copies the whole block to ret, on the device, as an evaluation wants it: averages, and values
 * where there are none. */
void store_show_averages(const struct store *, float *ret);

/* One update with scale * (gradients[0] + gradients[1] + ...), summed in this order, behind those
 * that were folded (then there may be none). step: the global step before the increment (for the
 * schedule). snapshot: NULL, or memory of `floats` such numbers as are shown, which receives the
 * new values (written tile by tile while they are in cache). ERR_NUMBER: the sum is not finite. No
 * number that is not has gone into values or slots then, but they are of no version any more: some
 * of them have advanced. */
err store_apply(struct store *store, const void *const gradients[], int count, float scale,
                int64_t step, void *snapshot);

/* Adds gradients to a sum beside the store: the next store_apply, with the gradients that are left,
 * does what it would do with all, these first. Takes as much memory as values the first time;
 * ERR_MEMORY: nothing has changed; ERR_NUMBER: their sum is not finite, and is dropped. Only on a
 * device without memory of its own. */
err store_fold(struct store *, const void *const gradients[], int count);
void store_unfold(struct store *); /* drops folded gradients */

/* Does the part of an update that concerns these floats, none of which has advanced: store_apply,
 * with the same arguments, does the rest then, and checks only the rest of the gradients. At most
 * ADVANCED_MAX ranges may be apart from each other. Takes as much memory as values and slots the
 * first time; ERR_MEMORY: nothing has changed; ERR_NUMBER: as in store_apply, until it is taken
 * back. Only on a device without memory of its own. */
err store_advance(struct store *, const void *const gradients[], int count, float scale,
                  int64_t step, struct range, void *snapshot);
/* Takes back what has advanced: values, slots and the snapshot are those of the version again. */
void store_take_back(struct store *, void *snapshot);
/* Copies all values to a snapshot. */
void store_show(const struct store *, void *snapshot);

#endif
