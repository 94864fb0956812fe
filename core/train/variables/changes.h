/* changes.h - which rows of a table have changed since the question was last asked.
 *
 * A row counts once, however often it changes: a bit at its place says that it is in the list. The
 * list has a limit, beyond which it is given up; then what has changed is not known until it starts
 * over. */
#ifndef CORE_TRAIN_VARIABLES_CHANGES_H
#define CORE_TRAIN_VARIABLES_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: nothing is noted */
struct changes {
    bool is_on;
    bool is_lost;   /* more than `most` rows have changed, or there is no memory */
    int64_t most;   /* rows that the list may have */
    uint64_t *bits; /* [places] */
    int64_t places; /* a multiple of 64 */
    int64_t *rows;  /* [count] in no order */
    int64_t count, room;
};

/* Begins to note changes, with an empty list of at most this many rows. */
void changes_begin(struct changes *, int64_t most);
void changes_end(struct changes *); /* a zeroed one is fine */
/* The row at this place has changed, and another one will be at the place. */
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
