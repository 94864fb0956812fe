/* aside.h - rows of tables as they were when a save began, kept while the checkpoint is written and
 * the tables keep changing (copy on write).
 *
 * The checkpoint reads every table once, in ascending order: a row is set aside when it is about to
 * change before it is read, and freed once it is read. All tables of a save share a limited number
 * of bytes; when these are used up, whoever changes rows waits until some have been read. During a
 * save, threads that change rows and threads that read them exclude each other; otherwise nobody
 * waits.
 *
 * A save fails if there is no memory, or if nothing is read for ASIDE_STILL_MS while somebody
 * waits. From then on nothing is set aside, and reading returns an error.
 */
#ifndef CORE_TRAIN_VARIABLES_ASIDE_H
#define CORE_TRAIN_VARIABLES_ASIDE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"

enum {
    ASIDE_BYTES_LEAST = 4 << 20, /* minimum size of the room */
    ASIDE_PART = 32,             /* and at least 1 / ASIDE_PART of the bytes of the tables */
    ASIDE_STILL_MS = 30000,
};

/* Shared by all tables of a save */
struct aside_room {
    int64_t limit, used, most; /* bytes; most: the largest `used` so far */
    int64_t awaited; /* threads that wait do so until `used` is no more than this; -1: none waits */
    int64_t reads;   /* how many reads were made so far */
    int still_ms;
    const char *lost; /* why the save has failed; NULL: it has not */
    atomic_bool is_wanted;
    pthread_mutex_t lock;
    pthread_cond_t has_read;
};

struct aside_record {
    int64_t row, bytes; /* bytes: size of the record */
    float at[];
};

/* The rows set aside of one table. Zeroed: none */
struct aside {
    struct aside_room *room; /* set by the thread that changes rows; NULL: there is no save */
    int64_t read;            /* rows below it have been read */
    struct aside_record **places;
    int64_t count, place_count; /* a power of two, at least twice as many as records */
};

void aside_room_open(struct aside_room *);
void aside_room_begin(struct aside_room *); /* a save begins: before aside_begin of its tables */
void aside_room_end(void); /* a save ends: after aside_end of its tables; frees memory */
void aside_room_close(struct aside_room *);

/* bytes: of all rows of the table. Allocates nothing yet. */
void aside_begin(struct aside *, struct aside_room *, int64_t bytes);
void aside_end(struct aside *); /* also if aside_begin was not called */

/* Within a change: whether changed rows must be set aside. */
static inline bool aside_is_on(const struct aside *a)
{
    return a->room && a->read < INT64_MAX;
}

/* To be called around all code that changes rows, and around all code that reads them for the
 * checkpoint */
void aside_begin_change(struct aside *);
void aside_end_change(struct aside *);
/* ERR_MEMORY: the save has failed; do not call aside_end_reading. table: its name */
err aside_begin_reading(struct aside *, const char *table);
void aside_end_reading(struct aside *);

/* Returns memory for the old values of a row that is about to change; NULL: it need not be set
 * aside, or already is, or the save has failed. May wait, and lets readers run meanwhile: no row of
 * the table may be half changed at that moment. */
float *aside_add(struct aside *, int64_t row, int64_t floats);
/* Removes and returns a row's record, to be passed to aside_free; NULL: the row was not set
 * aside. */
struct aside_record *aside_take(struct aside *, int64_t row);
void aside_free(struct aside *, struct aside_record *); /* NULL is fine */
/* Tells that all rows below `row` have been read; between aside_begin_reading and
 * aside_end_reading. */
void aside_has_read(struct aside *, int64_t row);
/* Tells that all rows have been read, or will not be. Not between these two. */
void aside_over(struct aside *);

#endif
