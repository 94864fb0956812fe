/* found.h - caches the row numbers that gathers have found, for the updates that name the same
 * keys: a worker pushes gradients of the rows that it read, alone or summed with others', so the
 * index is searched only once for both.
 *
 * Numbers are valid until a row is evicted; then all of them must be dropped.
 */
#ifndef CORE_TRAIN_VARIABLES_GROWING_FOUND_H
#define CORE_TRAIN_VARIABLES_GROWING_FOUND_H

#include <stdbool.h>
#include <stdint.h>

enum { GATHERS_MAX = 16 }; /* gathers that are cached: the latest that no update has used */

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
/* Memory for the numbers of these keys, all to be written by the caller; NULL: there is none. */
int64_t *found_begin(struct found *, const int64_t *keys, int64_t count);
/* Sets ret_numbers from the last gather of exactly these keys, or else from all gathers whose keys
 * seem to be among these; below 0: not known, ask the index. What was used is dropped. Returns
 * whether all numbers are known. */
bool found_take(struct found *, const int64_t *keys, int64_t count, int64_t *ret_numbers);

#endif
