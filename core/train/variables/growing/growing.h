/* growing.h - a slice of a table that grows: rows of keys (keys.h), each created when its key has
 * been seen often enough and evicted when it has not been used for long.
 *
 * A key is seen when an update names it: once per update, or as often as it occurred there (struct
 * growth). The update that sees it for the admit_after-th time creates its row, and applies the
 * gradient if the worker had read the initial value; gradients before that are dropped. A step that
 * reads a key without a row gets the initial value if its update will create the row, else zeros.
 * Callers that do not train get zeros for it. So reading changes nothing, and the state of a table
 * depends only on its updates.
 *
 * Idle time is measured in periods, of a hundredth of evict_after_steps: a row is evicted with the
 * first update of a period, at most two periods late; its key then counts as never seen.
 *
 * The initial value of a row depends only on the random key of the variable and the row's key;
 * initializers see a variable of one row.
 */
#ifndef CORE_TRAIN_VARIABLES_GROWING_GROWING_H
#define CORE_TRAIN_VARIABLES_GROWING_GROWING_H

#include "core/train/variables/table.h"

/* The most rows on a ps; also no more than twice what fits in its host's memory, and fewer if
 * address space is limited. A full table gives ERR_MEMORY. */
static const int64_t GROWING_ROWS_MAX = INT32_MAX - INT64_C(1);

struct growing;

/* For keys start .. start + length - 1 of the description; optimizers must not sweep. Errors as
 * table_open. */
err growing_open(const struct table_description *, const struct updater *, struct device *,
                 struct growing **ret);
void growing_close(struct growing *); /* NULL is fine */

/* As table_gather and table_apply. Keys must ascend, each once, and gradients must be finite.
 * ERR_MEMORY: a part of the update may have been done. */
void growing_gather(struct growing *, const int64_t *keys, int64_t count, float *ret);
/* As growing_gather, for callers that do not train. */
void growing_gather_made(struct growing *, const int64_t *keys, int64_t count, float *ret);
err growing_apply(struct growing *, const int64_t *keys, int64_t count, const float *gradients,
                  const int64_t *times, const struct juncture *);

/* The keys whose rows changed, or were created or evicted (table.h) */
struct changes;
struct changes *growing_changes(struct growing *);

/* Whether a key last used at step `used` counts as never seen at step `step`. */
bool growth_is_idle(const struct growth *, int64_t step, int64_t used);

int64_t growing_rows(const struct growing *);
int64_t growing_bytes(const struct growing *); /* bytes of rows, slots and index */

/* ---- checkpoints ---- */

/* The state of a key in a checkpoint */
struct key_state {
    int64_t key;
    int64_t sights; /* 0: it has a row; else how often it was seen, 1 or more */
    int64_t used;   /* step of its last use, or of the beginning of the period of that use */
};

/* As the functions table_save_*. ret_keys, ret_rows: how many there are to read. */
void growing_save_begin(struct growing *, struct aside_room *);
void growing_save_over(struct growing *);
void growing_save_end(struct growing *);
void growing_saved(const struct growing *, int64_t *ret_keys, int64_t *ret_rows);

/* Keys as they were when the save began, and the rows of those that have one */
struct saved_keys {
    struct key_state *keys;     /* [count] */
    float *rows[1 + SLOTS_MAX]; /* [row_count, width] */
    int64_t count, row_count;
};
/* Reads the next keys, ascending, at most `count`; *from begins at 0 and is advanced; ret->count 0:
 * there are no more. The caller provides memory for `count` keys and rows. */
err growing_save_read(struct growing *, int64_t *from, int64_t count, struct saved_keys *ret);

/* Begins to restore into an empty table, which then stands before the update of that step. keys,
 * rows: about how many are to come. arrays: values (bit 0) and slots (bits 1, ...) that nobody is
 * going to write. ERR_MEMORY. growing_restore_end must follow, also after a failure. */
err growing_restore_begin(struct growing *, int64_t step, int64_t keys, int64_t rows, int arrays);
/* Restores a key that is not there yet. ret_number: the number of its row, one more than that of
 * the row restored before; arrays that nobody is going to write begin as initial values. -1: it has
 * no row. */
err growing_restore(struct growing *, const struct key_state *, int64_t *ret_number);
/* Address of that row in an array; rows restored after it follow there. */
float *growing_place(struct growing *, int array, int64_t number);
void growing_restore_end(struct growing *);

#endif
