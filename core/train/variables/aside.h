/* aside.h - rows of a table as they were, kept while a checkpoint is written and the table goes on.
 *
 * While that is on, who changes rows and who reads them for the checkpoint take turns; else nobody
 * waits for anything. */
#ifndef CORE_TRAIN_VARIABLES_ASIDE_H
#define CORE_TRAIN_VARIABLES_ASIDE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"

struct aside {
    bool is_on;          /* the thread that changes rows says so */
    bool lacks;          /* there was no memory for some */
    int64_t floats;      /* of a record */
    int64_t count, room; /* records */
    float *records;      /* [room, floats] */
    int64_t *places;     /* [place_count] 1 + index of a record; 0: free */
    int64_t *rows;       /* [room] of each record */
    int64_t place_count; /* a power of two, twice as many as room */
    atomic_bool is_wanted;
    pthread_mutex_t lock;
};

void aside_open(struct aside *);
void aside_close(struct aside *);
void aside_begin(struct aside *, int64_t floats); /* takes no memory yet */
void aside_end(struct aside *);                   /* nothing begun is fine */

/* Around what changes rows, and around what reads them for the checkpoint */
void aside_begin_change(struct aside *);
void aside_end_change(struct aside *);
void aside_begin_reading(struct aside *);
void aside_end_reading(struct aside *);

/* NULL: the row is not aside. Valid until the next is added. */
const float *aside_find(const struct aside *, int64_t row);
/* Room for a row that is to change and is not aside yet; NULL: nothing is to be set aside, or there
 * was no memory. */
float *aside_add(struct aside *, int64_t row);

#endif
