/* aside.h - rows of tables as they were when a save began, kept while the checkpoint is written and
 * the tables keep changing.
 *
 * The checkpoint reads every table once, ascending: a row is set aside when it changes before it is
 * read, and its memory is free again once it is. All tables of a save share one room of limited
 * bytes; when it is used up, whoever changes rows waits until some have been read. During a save,
 * those who change rows and those who read them take turns; otherwise nobody waits.
 *
 * A save is lost where there is no memory, or where nothing is read for ASIDE_STILL_MS while
 * somebody waits. Then nothing is set aside any more, and reading fails. */
#ifndef CORE_TRAIN_VARIABLES_ASIDE_H
#define CORE_TRAIN_VARIABLES_ASIDE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"

enum {
    ASIDE_BYTES_LEAST = 4 << 20, /* the room is at least so large */
    ASIDE_PART = 32,             /* and at least one in this many of the bytes of the tables */
    ASIDE_STILL_MS = 30000,
};

/* Shared by all tables of a save */
struct aside_room {
    int64_t limit, used, most; /* bytes; most: the largest `used` so far */
    int64_t awaited; /* those who wait do so until no more than this is used; -1: nobody waits */
    int64_t reads;   /* stretches read so far */
    int still_ms;
    const char *lost; /* why the save is lost; NULL: it is not */
    atomic_bool is_wanted;
    pthread_mutex_t lock;
    pthread_cond_t has_read;
};

struct aside_record {
    int64_t row, bytes; /* bytes that the record takes */
    float at[];
};

/* What is set aside of one table. Zeroed: nothing is */
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

/* bytes: of all rows of the table. Takes no memory yet. */
void aside_begin(struct aside *, struct aside_room *, int64_t bytes);
void aside_end(struct aside *); /* also where nothing was begun */

/* Within a change: whether changed rows must be set aside. */
static inline bool aside_is_on(const struct aside *a)
{
    return a->room && a->read < INT64_MAX;
}

/* Called around whatever changes rows, and around whatever reads them for the checkpoint */
void aside_begin_change(struct aside *);
void aside_end_change(struct aside *);
/* ERR_MEMORY: the save is lost, and no reading has begun. table: its name */
err aside_begin_reading(struct aside *, const char *table);
void aside_end_reading(struct aside *);

/* Room for the old values of a row that is about to change; NULL: it need not be set aside, or is
 * aside already, or the save is lost. May wait, and lets readers read meanwhile: no row of the
 * table is half changed at that moment. */
float *aside_add(struct aside *, int64_t row, int64_t floats);
/* Takes a row's record out, for aside_free; NULL: the row was not set aside. */
struct aside_record *aside_take(struct aside *, int64_t row);
void aside_free(struct aside *, struct aside_record *); /* NULL is fine */
/* All rows below `row` have been read; within a reading. */
void aside_has_read(struct aside *, int64_t row);
/* All rows have been read, or nobody will read them. Outside of a reading. */
void aside_over(struct aside *);

#endif
