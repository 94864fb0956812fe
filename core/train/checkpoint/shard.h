/* shard.h - what one ps writes to and reads from a checkpoint: its slices of the variables, their
 * slots, the optimizers' powers, the global step, and the ledger.
 *
 * Names are TensorFlow's: the variable's own, <variable>/Adam and so on for slots, beta1_power for
 * powers, global_step (int64). A slice of a partitioned variable is written under the full name.
 * The ledger of ps K is the int64 tensor dtrain/ledger/ps_KKKKK of shape [workers, 3]: columns
 * received, taken, and the step that the last one taken was meant for
 * (core/cluster/role/ps_role.h). dtrain/ledger/rows, int64 [41], is ps 0's coverage of the rows of
 * the data (core/cluster/role/coverage.h); dtrain/ledger/data, int64 [n], identifies these data and
 * their order (core/cluster/description/setup.h), and lists the batches that are in no values,
 * where ps 0 hands batches out (core/cluster/role/batch_queue.h). TensorFlow ignores all of them.
 *
 * If the ids of a table are dealt to N parts in turn (variables/mod.h), each part is a tensor of
 * its own, like a list of variables that TensorFlow looks up with partition_strategy "mod":
 * <variable>/part_K [rows of the part, width], <variable>/part_K/<slot>.
 *
 * Part K of a growing table holds some of the ids: <variable>/part_KKKKK/keys, int64 [n, 3]: an id,
 * how often it was seen (0: it has a row), and the step that used it last, ordered by key
 * (variables/growing/keys.h). <variable>/part_KKKKK/rows [m, width] has the rows of the ids that
 * have one, in the same order, <variable>/<slot>/part_KKKKK/rows the slots.
 */
#ifndef CORE_TRAIN_CHECKPOINT_SHARD_H
#define CORE_TRAIN_CHECKPOINT_SHARD_H

#include "core/train/checkpoint/bundle/bundle.h"
#include "core/train/variables/layout.h"
#include "core/train/variables/optimizer_list.h"
#include "core/train/variables/table.h"

enum { LEDGER_COLUMNS = 3, COVERAGE_COLUMNS = 41, DATA_NUMBERS_MAX = 1 << 17 };

/* The slots of a variable that one optimizer updates */
struct slot_names {
    int count;
    const char *at[BLOCK_SLOTS_MAX]; /* "Adam", "Adam_1" */
    bool is_averaged; /* dense variables also have an average, whose name follows those of the slots
                       */
};

/* A table of the ps */
struct shard_table {
    const struct slice *slice;
    int optimizer; /* the optimizer whose slots it has */
    struct table *rows;
};

/* The state of a ps, in memory that the caller owns; shard_read fills it. */
struct shard {
    int ps, ps_count;
    const struct slice *slices;
    int slice_count;
    float *values;                 /* the block */
    int slot_count;                /* blocks; a slice may have fewer slots */
    float *slots[BLOCK_SLOTS_MAX]; /* blocks */
    struct slot_names slot_names[OPTIMIZERS_MAX];
    const int *optimizer_of; /* [slice_count] index in slot_names; NULL: 0 for all */
    /* Written, in any thread, as they were when table_save_begin was called. */
    const struct shard_table *tables;
    int table_count;
    int power_count;
    const char *power_names[ALL_POWERS_MAX];
    float powers[ALL_POWERS_MAX];
    bool owns_powers;     /* write: this ps holds the variable whose name sorts first */
    uint64_t global_step; /* written by ps 0, read by every ps */
    int workers;
    int64_t *ledger;     /* [workers, LEDGER_COLUMNS] */
    int64_t *coverage;   /* [COVERAGE_COLUMNS] NULL: not this ps, or not wanted. Zeros: none */
    const int64_t *data; /* write: [data_count]; NULL: not this ps */
    int data_count;
};

/* Fills in the names of slots and powers. */
void shard_name_state(struct shard *, const struct optimizers *);

/* Writes a bundle of one shard at prefix. */
err shard_write(const struct shard *, const char *prefix);

/* How to restore from another run (train.warm_start). */
struct name_map {
    const char *from, *to; /* "old/_*" -> "new/_*" without the underscores: at most one star each,
                              for any text */
};
/* For a matrix whose rows have other numbers in the checkpoint: `count` rows from `to` on are
 * restored from the rows from `from` on; all others keep their initial values. Sorted by `to`. */
struct row_run {
    int64_t to, from, count;
};
enum { ROW_RUNS_MAX = 1 << 18 };
struct row_map {
    const char *variable; /* here */
    int64_t rows;         /* in the checkpoint */
    const struct row_run *runs;
    int run_count;
    bool is_square; /* dense variables: the same map applies to columns */
};
struct warm_start {
    const struct name_map *maps; /* the first one whose `to` matches a wanted name applies */
    int map_count;
    const char *const *skips; /* patterns (fnmatch) of wanted names that keep initial values */
    int skip_count;
    bool slots;    /* slots and powers too */
    bool can_skip; /* error messages may suggest to skip by a key of train.warm_start */
    const struct row_map *rows;
    int row_count;
};

/* ERR_INPUT: the `to` of a map, or a skip, matches none of these names, and is most likely
 * misspelt; the text suggests the nearest. The arena is for temporary memory. */
err warm_start_check(const struct warm_start *, const char *const *names, int count,
                     struct arena *);

/* Fills values, slots, powers, global_step, ledger and coverage from the bundle, whoever wrote it
 * and however variables were partitioned. warm NULL: all of them must exist, except this ps'
 * ledger: a bundle with another number of ps, or TensorFlow's, gives a derived one: the largest
 * counts of the other ledgers, else every worker at global_step. With warm: global_step and ledger
 * stay 0, skipped variables and their slots stay unchanged, and without warm->slots all slots and
 * powers do; averages stay in any case. ERR_INPUT names the missing variable and the nearest
 * existing name, or both shapes if they differ. */
err shard_read(struct bundle *, const struct warm_start *warm, struct shard *);

/* The name in the checkpoint of `variable` (slot NULL) or of its slot. */
err shard_map(const struct warm_start *, const char *variable, const char *slot,
              char ret[BUNDLE_NAME_MAX]);
/* Whether the variable or slot of this name keeps its initial values. */
bool shard_map_skips(const struct warm_start *, const char *wanted);

/* How many rows the variable, a matrix or a table, has in the checkpoint; 0: it is something else
 * there, or a table that grows; -1: it is not there. */
int64_t shard_rows_there(struct bundle *, const struct warm_start *, const char *variable);

/* Whether the values of these slices are there, of their type and shape. ERR_INPUT as above. */
err shard_check_values(const struct bundle *, const struct warm_start *, const struct slice *,
                       int count);

/* The ledger of one ps as it was written; in the arena. *ret NULL: there is none. ERR_INPUT. */
err shard_stored_ledger(struct bundle *, struct arena *, int ps, int64_t **ret, int *ret_workers);

/* What was written as `data`; *ret in the arena. If there is none: *ret_count 0. ERR_INPUT. */
err shard_read_data(struct bundle *, struct arena *, const int64_t **ret, int *ret_count);

/* Where a variable's values, or those of its slots, are: in an entry, or of a table whose ids went
 * to parts by turns in one for each part. */
struct shard_source {
    const struct bundle_entry *entry; /* NULL: parts */
    char variable[BUNDLE_NAME_MAX];   /* that has the parts */
    const char *slot;                 /* NULL: values; borrowed */
    int parts;                        /* 0: there is nothing to be read */
};
/* The values of the slice's variable, of its type and shape, hold against their checksums.
 * ERR_INPUT as above. */
err shard_find_values(struct bundle *, const struct slice *, struct shard_source *ret);
/* Of a table, by ascending ids, to ret [count, width]; like bundle_pick_rows. */
err shard_pick_rows(struct bundle *, const struct shard_source *, const int64_t *ids, int64_t count,
                    int64_t width, float *ret);

/* Like shard_read, for the tables only. */
err shard_read_tables(struct bundle *, const struct warm_start *warm, const struct shard *);

/* Like shard_read, for blocks of values and slots in device memory; on a device with memory of its
 * own, skipped variables become 0. */
err shard_read_on(struct device *, int64_t block_floats, struct bundle *, const struct warm_start *,
                  struct shard *);

#endif
