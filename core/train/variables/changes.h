/* changes.h - the rows of a table that have changed since changes_begin().
 *
 * Each row is listed once, however often it changes: a bit at its place marks it as listed. The
 * list has a limit; beyond that it is dropped, and the changes are unknown until changes_begin() is
 * called again.
 */
#ifndef CORE_TRAIN_VARIABLES_CHANGES_H
#define CORE_TRAIN_VARIABLES_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: changes are not recorded */
struct changes {
    bool is_on;
    bool is_lost;   /* more than `most` rows have changed, or there is no memory */
    int64_t most;   /* rows that the list may have */
    uint64_t *bits; /* [places] */
    int64_t places; /* a multiple of 64 */
    int64_t *rows;  /* [count] in no order */
    int64_t count, room;
};

/* Begins to record changes, with an empty list of at most this many rows. */
void changes_begin(struct changes *, int64_t most);
void changes_end(struct changes *); /* a zeroed one is fine */
/* The row at this place has changed and leaves it: another row will be there. */
void changes_leave(struct changes *, int64_t place, int64_t row);
/* Sorts the list, ascending, each row once. Returns how many. */
int64_t changes_sort(struct changes *);

void changes_add(struct changes *, int64_t place, int64_t row);

static inline void changes_note(struct changes *c, int64_t place, int64_t row)
{
    if (!c->is_on || (place < c->places && c->bits[place / 64] >> (place % 64) & 1)) return;
    changes_add(c, place, row);
}

#endif
