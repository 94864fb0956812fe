/* growing_inside.h - shared by updating and saving a growing table. */
#ifndef CORE_TRAIN_VARIABLES_GROWING_GROWING_INSIDE_H
#define CORE_TRAIN_VARIABLES_GROWING_GROWING_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/train/variables/aside.h"
#include "core/train/variables/changes.h"
#include "core/train/variables/growing/found.h"
#include "core/train/variables/growing/growing.h"
#include "core/train/variables/growing/key_index.h"

/* The kernel clears a page on first access, which takes as long as reading its contents from a
 * disk: a thread accesses pages ahead of the restoring one. */
struct restoring {
    int initial_arrays; /* arrays of a restored row that begin as initial values, a bit for each */
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
    struct found found; /* rows whose entries were used in this period, so that an update need not
                           change the entries */
    int64_t seen_count, row_count; /* keys seen that have no row; keys that have one */

    float *arrays[1 + SLOTS_MAX]; /* [room, width]: values, slots; pages are allocated as rows are
                                     created */
    size_t array_bytes;
    int64_t room, used; /* rows; numbers from `used` on were never assigned */
    int64_t given_back; /* head of the list of free numbers: each free row begins with the next one;
                           -1: empty */

    int64_t period_steps; /* 0: no key is ever evicted */
    int64_t period, step; /* period and step of the last update */
    int64_t idle_periods; /* a key unused for more periods is evicted */

    int64_t *numbers; /* [call_room] row number of each key of a call; below 0: none */
    float *gradients; /* [call_room, width] of the keys that have rows */
    int64_t call_room;

    struct aside aside;
    struct {
        int64_t keys, rows, step; /* as they were when a save began */
    } saved;
    struct restoring restoring;
    struct changes changes; /* a row's place is its number */
};

/* A record of aside.h: this struct, then the row in all arrays if there is one. */
struct key_record {
    int64_t sights, used; /* as in struct key_state; sights NOT_THERE: no such key */
};
enum { RECORD_FLOATS = sizeof(struct key_record) / sizeof(float) };
static const int64_t NOT_THERE = -1;

/* The record of an entry; NULL: of a missing key */
struct key_record growing_record(const struct growing *, const struct entry *);
/* Creates a row; ret: its number; arrays whose bit is set get initial values. ERR_MEMORY */
enum { ALL_ARRAYS = -1 };
err growing_make_row(struct growing *, int64_t key, int arrays, int64_t *ret_number);
/* Call before row number used - 1 is written, or before several up to it: uses large pages for many
 * rows */
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
