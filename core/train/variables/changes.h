/* changes.h - which rows of a table have changed since that was asked last.
 *
 * A row counts once, however often it changes: a bit at its place says that it is in the list. With
 * more rows than are of use to anybody the list is given up, and what has changed is not known
 * until it starts over.
 */
#ifndef CORE_TRAIN_VARIABLES_CHANGES_H
#define CORE_TRAIN_VARIABLES_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: nothing is noted */
struct changes {
    bool is_on;
    bool is_lost;   /* there are more than `most`, or no memory */
    int64_t most;   /* rows of the list */
    uint64_t *bits; /* [places] */
    int64_t places; /* a multiple of 64 */
    int64_t *rows;  /* [count] in no order */
    int64_t count, room;
};

/* Nothing has changed, and what does is noted from now on: at most so many rows. */
void changes_begin(struct changes *, int64_t most);
void changes_end(struct changes *); /* a zeroed one is fine */
/* Another row will be at that place; this one has changed, too. */
void changes_leave(struct changes *, int64_t place, int64_t row);
/* Ascending, each once, from now on. Returns how many. */
int64_t changes_sort(struct changes *);

void changes_add(struct changes *, int64_t place, int64_t row);

static inline void changes_note(struct changes *c, int64_t place, int64_t row)
{
    if (!c->is_on || (place < c->places && c->bits[place / 64] >> (place % 64) & 1)) return;
    changes_add(c, place, row);
}

#endif
