/* shard.h - what one ps puts into a checkpoint, and takes out of one: its slices of the variables,
 * their slots, the optimizer's powers, the global step, and the ledger.
 *
 * Names are TensorFlow's: the variable's own, <variable>/Adam and so on for slots, beta1_power for
 * powers, global_step (int64). A slice of a partitioned variable is written under the full name.
 * The ledger of ps K is the int64 tensor dtrain/ledger/ps_KKKKK of shape [workers, 3]: columns
 * received, taken, and the step that the last one taken was meant for
 * (core/cluster/role/ps_role.h). dtrain/ledger/rows, int64 [41], is what ps 0 has counted of the
 * rows of the data (core/cluster/role/coverage.h); dtrain/ledger/data, int64 [n], which data these
 * are and in which order (core/cluster/description/setup.h), and which of their batches are in no
 * values, where they are handed out (core/cluster/role/batch_queue.h). TensorFlow passes over all
 * of them.
 *
 * Of a table whose ids go to N parts by turns (variables/mod.h) each part is a tensor by itself, as
 * of a list of variables that TensorFlow looks up with partition_strategy "mod":
 * <variable>/part_K [rows of the part, width], <variable>/part_K/<slot>.
 *
 * Of a table that grows, part K holds some of the ids: <variable>/part_KKKKK/keys, int64 [n, 3]: an
 * id, how often it was seen (0: it has a row), and the step that used it last; in the order of
 * their keys (variables/growing/keys.h). <variable>/part_KKKKK/rows [m, width] has the rows of
 * those that have one, in the same order, <variable>/<slot>/part_KKKKK/rows the slots.
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
    bool is_averaged; /* a dense variable also has an average, named after the slots */
};

/* A table of the ps */
struct shard_table {
    const struct slice *slice;
    int optimizer; /* the optimizer whose slots it has */
    struct table *rows;
};

/* State of a ps, in memory that the caller owns. Read: filled in. */
struct shard {
    int ps, ps_count;
    const struct slice *slices;
    int slice_count;
    float *values;                 /* the block */
    int slot_count;                /* blocks; a slice may have fewer slots */
    float *slots[BLOCK_SLOTS_MAX]; /* blocks */
    struct slot_names slot_names[OPTIMIZERS_MAX];
    const int *optimizer_of; /* [slice_count] whose names; NULL: all the first one's */
    /* Written as they were when table_save_begin was called, by any thread. */
    const struct shard_table *tables;
    int table_count;
    int power_count;
    const char *power_names[ALL_POWERS_MAX];
    float powers[ALL_POWERS_MAX];
    bool owns_powers;     /* write: this ps holds the variable of the smallest name */
    uint64_t global_step; /* ps 0 writes it; every ps reads it */
    int workers;
    int64_t *ledger;     /* [workers, LEDGER_COLUMNS] */
    int64_t *coverage;   /* [COVERAGE_COLUMNS] NULL: not of this ps, or not wanted. Zeros: none */
    const int64_t *data; /* write: [data_count]; NULL: not of this ps */
    int data_count;
};

/* Names slots and powers as the optimizers do. */
void shard_name_state(struct shard *, const struct optimizers *);

/* Writes a bundle of one shard at prefix. */
err shard_write(const struct shard *, const char *prefix);

/* What is restored from another run, and how (train.warm_start). */
struct name_map {
    const char *from, *to; /* "old/_*" -> "new/_*" without the underscores: at most one star each,
                              what it stands for is carried over */
};
/* For a matrix whose rows are elsewhere in the checkpoint: rows `to` and on, `count` of them, are
 * rows `from` and on there; all others keep their initial values. In the order of `to`. */
struct row_run {
    int64_t to, from, count;
};
enum { ROW_RUNS_MAX = 1 << 18 };
struct row_map {
    const char *variable; /* here */
    int64_t rows;         /* that it has there */
    const struct row_run *runs;
    int run_count;
    bool is_square; /* of a dense variable: columns are where rows are, here and there */
};
struct warm_start {
    const struct name_map *maps; /* the first whose `to` matches a wanted name applies */
    int map_count;
    const char *const *skips; /* patterns (fnmatch) of wanted names that keep initial values */
    int skip_count;
    bool slots;    /* slots and powers too */
    bool can_skip; /* by a key of train.warm_start, which errors tell of */
    const struct row_map *rows;
    int row_count;
};

/* ERR_INPUT: a map's `to` or a skip that matches none of these names, most likely misspelt; the
 * text has the nearest. The arena is for temporary memory. */
err warm_start_check(const struct warm_start *, const char *const *names, int count,
                     struct arena *);

/* Fills values, slots, powers, global_step, ledger and coverage from the bundle, whoever wrote it
 * and however it was cut. warm NULL: everything must be there (a bundle without this ps' ledger -
 * another number of ps, or TensorFlow's - gives a ledger derived from what is there: of another ps'
 * ledger the largest counts, else every worker at global_step). warm given: global_step and ledger
 * stay 0, skipped variables and their slots are left as they are, and without warm->slots all slots
 * and powers are left; averages are left in any case. ERR_INPUT names the variable that is absent
 * and the nearest name that is there, or both shapes where they differ. */
err shard_read(struct bundle *, const struct warm_start *warm, struct shard *);

/* The name in the checkpoint of what is wanted here as `variable` (slot NULL) or as its slot. */
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
/* Of a table, by ids, which ascend, to ret [count, width]: as bundle_pick_rows. */
err shard_pick_rows(struct bundle *, const struct shard_source *, const int64_t *ids, int64_t count,
                    int64_t width, float *ret);

/* As shard_read, for the tables alone. */
err shard_read_tables(struct bundle *, const struct warm_start *warm, const struct shard *);

/* As shard_read, for values and slots in blocks in the memory of a device; what is skipped becomes
 * 0 where that is not the host's. */
err shard_read_on(struct device *, int64_t block_floats, struct bundle *, const struct warm_start *,
                  struct shard *);

#endif
