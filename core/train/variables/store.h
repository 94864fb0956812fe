/* store.h - the parameters of one ps: one block of values, and the optimizer's state beside it. */
#ifndef CORE_TRAIN_VARIABLES_STORE_H
#define CORE_TRAIN_VARIABLES_STORE_H

#include "core/base/range.h"
#include "core/train/variables/optimizer_list.h"

/* One of the optimizers, as it is set */
struct updater {
    const struct optimizer *optimizer;
    const void *attributes;
    const struct schedule_spec *learning_rate;
    int form, slot_count; /* of its rule; the average is the slot behind them */
    int first_power;
    double decay; /* of a table: rate of its weight decay */
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
    struct range advanced[ADVANCED_MAX]; /* of the next version already; in order, apart */
    int advanced_count;
    float *sum; /* of gradients that were folded; NULL until the first */
    bool has_sum;
    float
        *kept[1 + BLOCK_SLOTS_MAX]; /* what those values and slots were; NULL until one advances */
};

/* sections: of a block that is updated by several; borrowed. values: the caller's memory of the
 * device, of at least floats floats, zeroed, aligned to 64, outlives the store. */
err store_open(const struct optimizers *, const struct section *, int section_count,
               struct device *, int64_t floats, float *values, struct store *ret);
/* Where the run stands for one of the updaters, before an update at this global step. */
struct juncture store_juncture(const struct store *, int updater, int64_t step);
/* What that takes of the device beside slots; nothing where updates run in the first caches. */
size_t store_scratch_bytes(const struct device *, int64_t floats);
/* Array 0 are the values, array 1 + i is slot i. */
float *store_array(const struct store *, int array);
void store_close(struct store *);
void store_reset(
    struct store *); /* slots and powers to their initial values, version 0; values stay */
void store_begin_averages(struct store *); /* at the values; nothing where there are none */
/* The whole block to ret, of the device, as who evaluates wants it: averages, and the values of
 * which there are none. */
void store_show_averages(const struct store *, float *ret);

/* One update with scale * (gradients[0] + gradients[1] + ...), summed in this order, behind those
 * that were folded (then there may be none). step: the global step before the increment (for the
 * schedule). snapshot: NULL, or memory of `floats` such numbers as are shown, which receives the
 * new values (written tile by tile while they are in cache). ERR_NUMBER: the sum is not finite. No
 * number that is not has gone into values or slots then, but they are of no version any more: some
 * of them have advanced. */
err store_apply(struct store *store, const void *const gradients[], int count, float scale,
                int64_t step, void *snapshot);

/* These gradients need not be there any more: store_apply of those that are left does what it would
 * do with all, these first. Takes as much memory as values the first time; ERR_MEMORY: nothing has
 * changed; ERR_NUMBER: their sum is not finite, and is none any more. Of a device that has no
 * memory of its own. */
err store_fold(struct store *, const void *const gradients[], int count);
void store_unfold(struct store *); /* there are no such gradients */

/* Of the update that store_apply would do with the same arguments, what concerns these floats, none
 * of which has advanced: store_apply does the rest then, and looks at the rest of the gradients
 * only. There are at most ADVANCED_MAX ranges apart from each other. Takes as much memory as values
 * and slots the first time; ERR_MEMORY: nothing has changed; ERR_NUMBER: as there, until it is
 * taken back. Of a device that has no memory of its own. */
err store_advance(struct store *, const void *const gradients[], int count, float scale,
                  int64_t step, struct range, void *snapshot);
/* Values and slots are those of the version again, and the snapshot as well. */
void store_take_back(struct store *, void *snapshot);
/* All values to a snapshot. */
void store_show(const struct store *, void *snapshot);

#endif
