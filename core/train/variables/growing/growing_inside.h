/* growing_inside.h - what updating and saving a growing table have in common. */
#ifndef CORE_TRAIN_VARIABLES_GROWING_GROWING_INSIDE_H
#define CORE_TRAIN_VARIABLES_GROWING_GROWING_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/train/variables/aside.h"
#include "core/train/variables/changes.h"
#include "core/train/variables/growing/found.h"
#include "core/train/variables/growing/growing.h"
#include "core/train/variables/growing/key_index.h"

/* The system clears a page when it is first touched, which takes as long as reading what comes
 * there: a thread does it ahead of who restores. */
struct restoring {
    int initial_arrays; /* of a restored row, a bit for each */
    bool has_thread;
    pthread_t thread;
    atomic_bool is_over;
    int64_t rows;
};

struct growing {
    struct table_description is;
    struct updater by;
    struct device *device;
    int64_t width;
    int array_count;

    struct key_index index;
    struct found
        found; /* of entries that were used in this period: an update leaves them as they are */
    int64_t seen_count, row_count; /* keys that were seen and have no row; that have one */

    float *arrays[1 + SLOTS_MAX]; /* [room, width]: values, slots; memory comes as rows are made */
    size_t array_bytes;
    int64_t room, used; /* rows; numbers from `used` on were never given out */
    int64_t given_back; /* a number that is free, whose values begin with the next; or -1 */

    int64_t period_steps; /* 0: nothing is ever given up */
    int64_t period, step; /* of the last update, and the step itself */
    int64_t idle_periods; /* more of them, and a key goes */

    int64_t *numbers; /* [call_room] of a call: rows, or where there is none, what is below 0 */
    float *gradients; /* [call_room, width] of those that have rows */
    int64_t call_room;

    struct aside aside;
    struct {
        int64_t keys, rows, step; /* when a save began */
    } saved;
    struct restoring restoring;
    struct changes changes; /* places are numbers of rows */
};

/* A record of what is aside: this, and then the row in all arrays where there is one. */
struct key_record {
    int64_t sights, used; /* of a struct key_state; sights NOT_THERE: it was not there */
};
enum { RECORD_FLOATS = sizeof(struct key_record) / sizeof(float) };
static const int64_t NOT_THERE = -1;

/* Of an entry as it is; NULL: of none */
struct key_record growing_record(const struct growing *, const struct entry *);
/* A row begins: number of its place; arrays whose bit is set are initial. ERR_MEMORY */
enum { ALL_ARRAYS = -1 };
err growing_make_row(struct growing *, int64_t key, int arrays, int64_t *ret_number);
/* Before row number used - 1 is written, or all before it at once: large pages where there are many
 */
void growing_grow_pages(struct growing *, int64_t used_before, int64_t used);

static inline bool entry_has_row(const struct entry *entry)
{
    return !(entry->state & ENTRY_SEEN);
}

static inline uint32_t entry_sights(const struct entry *entry)
{
    return entry->state & ~ENTRY_SEEN;
}

#endif
