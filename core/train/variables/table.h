/* table.h - a slice of a table: rows of a variable [rows, width] in the memory of one ps, of which
 * an update touches few.
 *
 * A row is made when it is first touched: its values are those that the whole variable would have
 * had there from the beginning, its slots begin as the optimizer has them. So it shows nowhere
 * which rows are made, and those that are not take no memory.
 *
 * Rows are named by their index in the whole variable, ascending and each once; where its ids go to
 * parts by turns, by that in the order of the parts (mod.h). Numbers are the host's, and so is the
 * device that works on them. One thread at a time calls.
 */
#ifndef CORE_TRAIN_VARIABLES_TABLE_H
#define CORE_TRAIN_VARIABLES_TABLE_H

#include "core/graph/op.h"
#include "core/train/variables/store.h"

struct table_description {
    const char *name;                      /* of the variable; borrowed */
    struct shape shape;                    /* of the whole variable: [rows, width] */
    int64_t start, length;                 /* the rows that are here; length 0 is fine */
    const struct initializer *initializer; /* not one that needs the whole variable (is_whole) */
    const void *initializer_attributes;    /* borrowed */
    uint64_t key;                /* of the variable's initial values: random_key(seed, name) */
    const struct growth *growth; /* NULL: it does not grow; else rows are keys then (growing/keys.h)
                                    and the shape is that of one */
    int mod;                     /* as the slice has it */
    struct regularizer penalty;  /* on all rows */
};

/* Describes a slice; borrows what both arguments point to. */
struct table_description table_describe(const struct slice *, const struct table_spec *);

struct table;
struct growing;

/* Takes address space only. ERR_MEMORY: there is none; ERR_INPUT: the initializer refuses, or an
 * optimizer that sweeps is to update a table that grows.
 * The updater is copied; what it points to outlives the table. NULL: rows keep their values. */
err table_open(const struct table_description *, const struct updater *, struct device *,
               struct table **ret);
void table_close(struct table *);                    /* NULL is fine */
struct growing *table_growing(const struct table *); /* NULL: it does not grow */

/* Whether all of these rows are in the slice, ascending, each once: the only check between a peer's
 * message and memory. */
bool table_has(const struct table *, const int64_t *rows, int64_t count);
/* Reads rows, making those that are not made yet. ret: [count, width]. */
void table_gather(struct table *, const int64_t *rows, int64_t count, float *ret);
/* As table_gather, for callers that do not train: zeros where a table that grows has no row. */
void table_gather_made(struct table *, const int64_t *rows, int64_t count, float *ret);
/* One update; gradients: [count, width]. An optimizer that sweeps, or a penalty, changes all rows
 * of the slice, also with count 0. times: how often each row occurred, for a table that grows by
 * that; NULL: once. ERR_NUMBER names the row of a gradient that is not finite; nothing has changed
 * then. */
err table_apply(struct table *, const int64_t *rows, int64_t count, const float *gradients,
                const int64_t *times, const struct juncture *);

/* What a worker pushes of a table. */
struct row_gradients {
    const int64_t *rows;    /* [count], ascending, each once */
    const float *gradients; /* [count, width] */
    int64_t count;
    const int64_t *times; /* [count] how often each occurred; NULL: once */
};
/* The rows that any of them names, ascending, each with scale * (the sum of its gradients in the
 * order of the list): the same bits however rows are cut into slices. ret_rows and ret_gradients
 * have room for the sum of all counts. Returns how many there are. */
int64_t table_sum(const struct row_gradients *, int count, int64_t width, float scale,
                  int64_t *ret_rows, float *ret_gradients);
/* times[i], at least 1; a worker may still write the memory that it is in. NULL: 1. */
static inline int64_t row_times(const int64_t *times, int64_t i)
{
    const int64_t said = times ? times[i] : 1;
    return said < 1 ? 1 : said < SIGHTS_MAX ? said : SIGHTS_MAX;
}
/* The sums of how often the rows occurred, for the same rows. */
void table_sum_times(const struct row_gradients *, int count, int64_t *ret);

/* What follows is for tables that do not grow; for others there is growing/growing.h.
 *
 * Rows first .. first + count - 1 for a checkpoint: array 0 are the values, 1 + i is slot i; of the
 * width of the table. Reading makes none; what is written is made, cheapest with values first. */
void table_read(const struct table *, int array, int64_t first, int64_t count, float *ret);
void table_write(struct table *, int array, int64_t first, int64_t count, const float *);

/* From now on until table_save_end, table_save_read gives rows as they are now, in any thread,
 * while the others gather and apply: a row that is about to change and was not read yet is set
 * aside first, in the room of all tables of the save (aside.h), which outlives it; who applies
 * waits for some to be read where that is used up. Each is read once, ascending, to ret
 * [arrays][count, width]. Who stops reading, at the end or before, says so in the same thread:
 * table_save_over. ERR_MEMORY of a reading: the save is lost. */
struct aside_room;
void table_save_begin(struct table *, struct aside_room *);
err table_save_read(struct table *, int64_t first, int64_t count, float *const ret[]);
void table_save_over(struct table *);
void table_save_end(struct table *); /* nothing begun is fine */

/* Notes from now on which rows change, beginning with none: as many as take up to bytes_max. */
void table_note_changes(struct table *, int64_t bytes_max);
/* The rows that have changed, as a caller that does not train sees them now, by the ids of the
 * data: for a table that grows, zeros for rows that were evicted. The notes begin anew. ERR_INPUT:
 * it is not known which rows changed, as nothing was noted, or too many have. Freed by
 * table_changes_free. */
struct table_changes {
    int64_t count;
    int64_t *ids; /* [count] each once, in no order */
    float *rows;  /* [count, width] */
};
err table_take_changes(struct table *, struct table_changes *ret);
void table_changes_free(struct table_changes *); /* a zeroed one is fine */
/* Changed rows in ascending order of ids (of a table that grows: of keys); of those with one id,
 * the later change last. To be freed. */
struct changed_row {
    int64_t id, at; /* at: its index in the changes */
};
err table_changes_in_order(const struct table_changes *, bool by_key, struct changed_row **ret);

int64_t table_made(const struct table *);  /* rows */
int64_t table_bytes(const struct table *); /* bytes of their values and slots, with their index */
int64_t table_id(const struct table *, int64_t row); /* the row's id in the data */

#endif
