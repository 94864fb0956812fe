/* table.h - a slice of a table: rows of a variable [rows, width] in the memory of one ps, of which
 * an update changes few.
 *
 * A row is created when it is first touched, with the values that the whole variable would have had
 * there from the beginning, and with the optimizer's initial slots. So results do not depend on
 * which rows exist, and those that do not take no memory.
 *
 * Rows are named by their index in the whole variable (with the partition strategy "mod": by their
 * number in the order of the parts, mod.h), ascending and each once. Arrays are in host memory, and
 * the device is the host's. Calls must come from one thread at a time.
 */
#ifndef CORE_TRAIN_VARIABLES_TABLE_H
#define CORE_TRAIN_VARIABLES_TABLE_H

#include "core/graph/op.h"
#include "core/train/variables/store.h"

struct table_description {
    const char *name;                      /* of the variable; borrowed */
    struct shape shape;                    /* of the whole variable: [rows, width] */
    int64_t start, length;                 /* the rows of this slice; length 0 is fine */
    const struct initializer *initializer; /* not one that needs the whole variable (is_whole) */
    const void *initializer_attributes;    /* borrowed */
    uint64_t key;                /* of the variable's initial values: random_key(seed, name) */
    const struct growth *growth; /* NULL: it does not grow; else rows are keys (growing/keys.h) and
                                    the shape is that of one row */
    int mod;                     /* slice.mod (layout.h) */
    struct regularizer penalty;  /* on all rows */
};

/* Describes a slice; borrows what both arguments point to. */
struct table_description table_describe(const struct slice *, const struct table_spec *);

struct table;
struct growing;

/* Reserves address space only. ERR_MEMORY: there is none; ERR_INPUT: the initializer fails, or an
 * optimizer that sweeps for a table that grows. The updater is copied; what it points to must
 * outlive the table. NULL: rows keep their values. */
err table_open(const struct table_description *, const struct updater *, struct device *,
               struct table **ret);
void table_close(struct table *);                    /* NULL is fine */
struct growing *table_growing(const struct table *); /* NULL: it does not grow */

/* Whether all of these rows are in the slice, ascending, each once: the only check of row numbers
 * in a peer's message. */
bool table_has(const struct table *, const int64_t *rows, int64_t count);
/* Reads rows, creating those that do not exist yet. ret: [count, width]. */
void table_gather(struct table *, const int64_t *rows, int64_t count, float *ret);
/* As table_gather, for callers that do not train: a table that grows gives zeros for missing
 * rows. */
void table_gather_made(struct table *, const int64_t *rows, int64_t count, float *ret);
/* One update; gradients: [count, width]. An optimizer that sweeps, or a penalty, changes all rows
 * of the slice, even with count 0. times: how often each row occurred, for a table with admit_by
 * occurrences; NULL: once. ERR_NUMBER names the row of a gradient that is not finite; then nothing
 * has changed. */
err table_apply(struct table *, const int64_t *rows, int64_t count, const float *gradients,
                const int64_t *times, const struct juncture *);

/* The gradients of a table that a worker pushes. */
struct row_gradients {
    const int64_t *rows;    /* [count], ascending, each once */
    const float *gradients; /* [count, width] */
    int64_t count;
    const int64_t *times; /* [count] how often each occurred; NULL: once */
};
/* Sets ret_rows to the rows that any of them names, ascending, and ret_gradients to scale * (the
 * sum of each row's gradients in the order of the list): the same bits however rows are cut into
 * slices. Both need room for the sum of all counts. Returns the number of rows. */
int64_t table_sum(const struct row_gradients *, int count, int64_t width, float scale,
                  int64_t *ret_rows, float *ret_gradients);
/* times[i], limited to 1 .. SIGHTS_MAX, as a worker may write to that memory at any time. NULL:
 * 1. */
static inline int64_t row_times(const int64_t *times, int64_t i)
{
    const int64_t said = times ? times[i] : 1;
    return said < 1 ? 1 : said < SIGHTS_MAX ? said : SIGHTS_MAX;
}
/* For the same rows: the sums of how often they occurred. */
void table_sum_times(const struct row_gradients *, int count, int64_t *ret);

/* For tables that do not grow; others: growing/growing.h.
 *
 * Copies rows first .. first + count - 1 from or to a checkpoint: array 0 has the values, 1 + i
 * slot i; of the width of the table. table_read creates no rows; table_write creates those that it
 * writes, cheapest with values first. */
void table_read(const struct table *, int array, int64_t first, int64_t count, float *ret);
void table_write(struct table *, int array, int64_t first, int64_t count, const float *);

/* From table_save_begin to table_save_end, table_save_read returns rows as they were at the
 * beginning, in any thread, while other threads gather and apply: a row that changes before it is
 * read is set aside, in the room of all tables of the save (aside.h), which must outlive it; if
 * that is full, the update waits for reads. Each row is read once, ascending, to ret
 * [arrays][count, width]. The reading thread must call table_save_over when it stops, at the end or
 * before. ERR_MEMORY of a read: the save has failed. */
struct aside_room;
void table_save_begin(struct table *, struct aside_room *);
err table_save_read(struct table *, int64_t first, int64_t count, float *const ret[]);
void table_save_over(struct table *);
void table_save_end(struct table *); /* also if no save has begun */

/* Records from now on which rows change, using at most bytes_max bytes. */
void table_note_changes(struct table *, int64_t bytes_max);
/* The rows that have changed and their present values, as for a caller that does not train, with
 * ids as in the data; for a table that grows, zeros for evicted rows. Recording starts over.
 * ERR_INPUT: changes were not recorded, or too many. To be freed with table_changes_free. */
struct table_changes {
    int64_t count;
    int64_t *ids; /* [count] each once, in no order */
    float *rows;  /* [count, width] */
};
err table_take_changes(struct table *, struct table_changes *ret);
void table_changes_free(struct table_changes *); /* a zeroed one is fine */
/* Allocates a list of the changed rows in ascending order of ids (by_key: of keys); of those with
 * one id, the later change is last. The caller frees it. ERR_MEMORY */
struct changed_row {
    int64_t id, at; /* at: its index in the changes */
};
err table_changes_in_order(const struct table_changes *, bool by_key, struct changed_row **ret);

int64_t table_made(const struct table *);            /* number of rows that exist */
int64_t table_bytes(const struct table *);           /* bytes of their values, slots and index */
int64_t table_id(const struct table *, int64_t row); /* the row's id in the data */

#endif
