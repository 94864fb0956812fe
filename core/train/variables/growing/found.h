/* found.h - numbers of rows that gathers have found, kept for the updates that name the same keys:
 * a worker pushes gradients of the rows that it got, alone or summed with others, so that the index
 * is asked only once for both.
 *
 * A number is right as long as no row is given up; whoever gives up rows must drop all of them. */
#ifndef CORE_TRAIN_VARIABLES_GROWING_FOUND_H
#define CORE_TRAIN_VARIABLES_GROWING_FOUND_H

#include <stdbool.h>
#include <stdint.h>

enum { GATHERS_MAX = 16 }; /* gathers that are kept: the last ones that no update has asked for */

/* The keys of one gather and their rows */
struct gather_found {
    int64_t *keys, *numbers; /* [count], [room]; a number below 0: not known, ask the index */
    int64_t count, room;     /* count 0: none */
    int64_t turn;
};

struct found {
    struct gather_found at[GATHERS_MAX];
    int64_t turns;
};

void found_close(struct found *); /* a zeroed one is fine */
void found_forget(struct found *);
/* Room for the numbers of these keys, all to be written by the caller; NULL: there is no memory. */
int64_t *found_begin(struct found *, const int64_t *keys, int64_t count);
/* Numbers of the last gather that had exactly these keys; otherwise of all gathers most of whose
 * keys are among these. Below 0: not known, ask the index. What was taken is dropped. Returns
 * whether all numbers are known. */
bool found_take(struct found *, const int64_t *keys, int64_t count, int64_t *ret_numbers);

#endif
