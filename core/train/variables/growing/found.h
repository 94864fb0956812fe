/* found.h - numbers of rows that gathers found, for the updates that name the same keys: a worker
 * pushes gradients of the rows that it got, alone or in one update with others, so that the index
 * is asked once for both.
 *
 * A number is right as long as no row is given up; who gives up rows forgets all of them.
 */
#ifndef CORE_TRAIN_VARIABLES_GROWING_FOUND_H
#define CORE_TRAIN_VARIABLES_GROWING_FOUND_H

#include <stdbool.h>
#include <stdint.h>

enum { GATHERS_MAX = 16 }; /* that are kept: the last ones that no update has asked for */

/* Of one gather */
struct gather_found {
    int64_t *keys, *numbers; /* [count], [room]; a number below 0: the index is to be asked */
    int64_t count, room;     /* count 0: none */
    int64_t turn;
};

struct found {
    struct gather_found at[GATHERS_MAX];
    int64_t turns;
};

void found_close(struct found *); /* a zeroed one is fine */
void found_forget(struct found *);
/* Where the numbers of these keys go, each to be written; NULL: there is no memory. */
int64_t *found_begin(struct found *, const int64_t *keys, int64_t count);
/* Numbers of the last gather of the very same keys; or else of all those whose keys are among
 * these, most of them. Below 0: the index is to be asked. What was taken is forgotten. Returns
 * whether there are all of them. */
bool found_take(struct found *, const int64_t *keys, int64_t count, int64_t *ret_numbers);

#endif
