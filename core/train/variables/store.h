/* store.h - the variables of one ps: one block of values, and the optimizers' state. */
#ifndef CORE_TRAIN_VARIABLES_STORE_H
#define CORE_TRAIN_VARIABLES_STORE_H

#include "core/base/range.h"
#include "core/train/variables/optimizer_list.h"

/* One of the optimizers, as used in the run */
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
    double rate_factor;             /* factor of all learning rates */
    const struct section *sections; /* [section_count]; none: one for the whole block */
    int section_count;
    struct section whole;
    int64_t floats; /* a multiple of 16 */
    float *values;  /* [floats], borrowed: the memory that workers see */
    /* Slots of the updater with the most, and the average; floats of others do not use all of
     * them */
    int slot_count;
    float *slots[BLOCK_SLOTS_MAX];
    struct average_spec average;
    float *scratch; /* on a device with memory of its own: a tile of summed gradients */
    int power_count;
    float powers[ALL_POWERS_MAX]; /* in the order of the updaters */
    /* Number types of gradients, and of snapshots; float32 unless the owner changes them */
    enum number number, shown;
    uint64_t version;                    /* updates applied */
    struct range advanced[ADVANCED_MAX]; /* ranges that already have the values of the next version;
                                            ascending, with gaps between them */
    int advanced_count;
    float *sum; /* sum of the folded gradients; NULL until the first */
    bool has_sum;
    float *kept[1 + BLOCK_SLOTS_MAX]; /* values and slots of these ranges before they advanced; NULL
                                         until one advances */
};

/* sections: borrowed; needed if several optimizers update the block. values: the caller's device
 * memory of at least `floats` floats, zeroed, aligned to 64 bytes, outlives the store.
 * ERR_MEMORY */
err store_open(const struct optimizers *, const struct section *, int section_count,
               struct device *, int64_t floats, float *values, struct store *ret);
/* The juncture of an updater for an update at this global step. */
struct juncture store_juncture(const struct store *, int updater, int64_t step);
/* Bytes for one tile of summed gradients; 0 on a device without memory of its own. */
size_t store_scratch_bytes(const struct device *, int64_t floats);
/* Array 0 has the values, array 1 + i slot i. */
float *store_array(const struct store *, int array);
void store_close(struct store *);
void store_reset(
    struct store *); /* sets slots and powers to initial values and version to 0; values stay */
void store_begin_averages(struct store *); /* sets averages to the values, if there are averages */
/* Copies the block to ret, on the device, for an evaluation: averages, or values where there are
 * none. */
void store_show_averages(const struct store *, float *ret);

/* One update with scale * (folded gradients + gradients[0] + gradients[1] + ...), summed in this
 * order; count may be 0 if some were folded. step: the global step before the increment (for the
 * schedule). snapshot: NULL, or memory of `floats` numbers of type `shown`, which receives the new
 * values (written tile by tile while they are in cache). ERR_NUMBER: the sum is not finite. No such
 * number has gone into values or slots then, but these belong to no version any more: some of them
 * have advanced. */
err store_apply(struct store *store, const void *const gradients[], int count, float scale,
                int64_t step, void *snapshot);

/* Adds gradients to a sum kept by the store: store_apply with the remaining gradients then has the
 * effect of applying all, these first. Takes as much memory as values the first time; ERR_MEMORY:
 * nothing has changed; ERR_NUMBER: their sum is not finite, and is dropped. Only on a device
 * without memory of its own. */
err store_fold(struct store *, const void *const gradients[], int count);
void store_unfold(struct store *); /* drops folded gradients */

/* Does the part of an update for these floats, none of which has advanced: store_apply, with the
 * same arguments, then does the rest, and checks only the rest of the gradients. At most
 * ADVANCED_MAX separate ranges. Takes as much memory as values and slots the first time;
 * ERR_MEMORY: nothing has changed; ERR_NUMBER: as in store_apply, until store_take_back. Only on a
 * device without memory of its own. */
err store_advance(struct store *, const void *const gradients[], int count, float scale,
                  int64_t step, struct range, void *snapshot);
/* Undoes all store_advance: values, slots and the snapshot are again those of the version. */
void store_take_back(struct store *, void *snapshot);
/* Copies all values to a snapshot. */
void store_show(const struct store *, void *snapshot);

#endif
