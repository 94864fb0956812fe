/* shard_inside.h - shared by writing and reading a shard: names, boxes. */
#ifndef CORE_TRAIN_CHECKPOINT_SHARD_INSIDE_H
#define CORE_TRAIN_CHECKPOINT_SHARD_INSIDE_H

#include "core/train/checkpoint/shard.h"

#define SHARD_GLOBAL_STEP "global_step"
/* Steps and pushes that a resumed run may have; larger numbers are damaged or forged. */
#define SHARD_COUNT_MAX (INT64_C(1) << 59)
#define SHARD_LEDGERS "dtrain/ledger/"
#define SHARD_LEDGER SHARD_LEDGERS "ps_%05d"
#define SHARD_COVERAGE SHARD_LEDGERS "rows"
#define SHARD_DATA_ORDER SHARD_LEDGERS "data"

struct bundle_shape shard_shape(const struct shape *);
/* The box of the slice within the whole variable. */
struct bundle_box shard_box(const struct slice *);
/* The slots of a slice */
const struct slot_names *shard_slots(const struct shard *, int slice);
const struct slot_names *shard_slots_of(const struct shard *, int optimizer);
/* "kernel" and "Adam" -> "kernel/Adam"; slot NULL: the name unchanged */
err shard_name(const char *variable, const char *slot, char ret[BUNDLE_NAME_MAX]);

/* The error, with advice on how to skip the variable in the spec, where it can be skipped. */
err shard_fail_or_skip(err, const struct warm_start *, bool is_there);

/* ERR_INPUT where a map cannot be applied. */
err shard_map_check(const struct warm_start *);

/* "users", 2 and "Adagrad" -> "users/part_2/Adagrad" */
err shard_part_name(const char *variable, int part, const char *slot, char ret[BUNDLE_NAME_MAX]);
/* How many such parts the checkpoint has; 0: none, because the table is stored whole, or grows. */
int shard_parts_there(const struct bundle *, const char *variable, const char *slot);
/* ERR_INPUT: they are not parts of a table of that shape, or one is missing. */
err shard_check_parts(const struct bundle *, const struct shard_source *,
                      const struct bundle_shape *);
/* Checks that all its elements are stored, and their checksums. */
err shard_check_source(struct bundle *, const struct shard_source *);
/* The row map of a variable whose rows have other numbers in the checkpoint; NULL: they do not. */
const struct row_map *shard_row_map(const struct warm_start *, const char *variable);
/* Reads those rows of the slice that the checkpoint has, one by one, numbered as in the slice; a
 * slice along another axis is read whole. */
err shard_read_mapped(struct bundle *, const struct shard_source *, const struct slice *,
                      const struct row_map *, const struct bundle_taker *);
/* Reads the slice's rows, numbered as in the slice, in any order. */
err shard_read_rows(struct bundle *, const struct shard_source *, const struct slice *,
                    const struct bundle_taker *);

/* Memory for a run of rows in all arrays of a table, freed by the caller. */
struct shard_rows {
    int64_t most; /* rows */
    float *memory, *at[1 + SLOTS_MAX];
};
err shard_rows_open(int arrays, int64_t width, struct shard_rows *ret);

/* Writes a table that grows. */
err shard_write_growing(struct bundle_writer *, const struct shard_table *,
                        const struct slot_names *);
/* slots: how many of its slots to read. step: the checkpoint's. */
err shard_read_growing(struct bundle *, const struct warm_start *, const struct shard_table *,
                       const struct slot_names *, int slots, int64_t step);

/* The keys of a growing table in a checkpoint, [ids, 3] */
enum { SHARD_KEY_ID, SHARD_KEY_SIGHTS, SHARD_KEY_USED, SHARD_KEY_COLUMNS };
/* "users", 2 and "keys" -> "users/part_00002/keys"; with a slot "users/Adagrad/part_..." */
err shard_growing_name(const char *variable, const char *slot, int part, const char *what,
                       char ret[BUNDLE_NAME_MAX]);
/* Whether the checkpoint has this variable as a growing table */
bool shard_grows_there(const struct bundle *, const char *variable);
/* The same in any form: whole, in parts, or growing */
bool shard_is_there(const struct bundle *, const char *variable);
struct key_state; /* variables/growing/growing.h */
/* ERR_INPUT: another type or shape; impossible numbers; or, in shard_next_key, a key not above the
 * last one (initially -1). */
err shard_check_keys(const struct bundle *, const struct bundle_entry *keys);
err shard_key_state(const struct bundle *, const struct bundle_entry *keys,
                    const int64_t row[SHARD_KEY_COLUMNS], struct key_state *ret);
err shard_next_key(const struct bundle *, const struct bundle_entry *keys,
                   const int64_t row[SHARD_KEY_COLUMNS], int64_t *last, struct key_state *ret);
/* Find the keys of a part of the slice's table, and its rows, whose number must match. *ret NULL:
 * no such part, which is ERR_INPUT for part 0. */
err shard_find_keys(struct bundle *, const struct slice *, int part,
                    const struct bundle_entry **ret);
err shard_find_rows(struct bundle *, const struct slice *, int part, int64_t rows,
                    const struct bundle_entry **ret);

err shard_read_step(struct bundle *, uint64_t *ret);

/* The ledger of this ps, derived from global_step and the bundle's ledgers. */
err shard_read_ledger(struct bundle *, struct shard *);
err shard_read_coverage(struct bundle *, struct shard *);

#endif
