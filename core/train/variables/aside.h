/* aside.h - rows of tables as they were, kept while a checkpoint is written and the tables go on.
 *
 * The checkpoint reads every table once, ascending: a row is set aside when it changes before it is
 * read, and its memory is free again once it is. All tables of a save have room for so many bytes
 * together; who changes rows when that is used up waits until some have been read. While a save is
 * on, who changes rows and who reads them take turns; else nobody waits for anything.
 *
 * A save is lost where there is no memory, or where nothing is read for ASIDE_STILL_MS while
 * somebody waits. Then nothing is set aside any more, and reading fails.
 */
#ifndef CORE_TRAIN_VARIABLES_ASIDE_H
#define CORE_TRAIN_VARIABLES_ASIDE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"

enum {
    ASIDE_BYTES_LEAST = 4 << 20, /* there is room for so many */
    ASIDE_PART = 32,             /* and of the tables' bytes for one in so many */
    ASIDE_STILL_MS = 30000,
};

/* Of all tables of a save */
struct aside_room {
    int64_t limit, used, most; /* bytes; most: that were ever used */
    int64_t awaited;           /* who waits does so until no more are used; -1: nobody */
    int64_t reads;             /* of stretches */
    int still_ms;
    const char *lost; /* why the save is; NULL: it is not */
    atomic_bool is_wanted;
    pthread_mutex_t lock;
    pthread_cond_t has_read;
};

struct aside_record {
    int64_t row, bytes; /* that it takes */
    float at[];
};

/* Of a table. Zeroed: nothing is set aside */
struct aside {
    struct aside_room *room; /* the thread that changes rows says so; NULL: there is no save */
    int64_t read;            /* rows below it have been read */
    struct aside_record **places;
    int64_t count, place_count; /* a power of two, at least twice as many as records */
};

void aside_room_open(struct aside_room *);
void aside_room_begin(struct aside_room *); /* a save: before its tables */
void aside_room_end(void);                  /* the save: after its tables; gives memory back */
void aside_room_close(struct aside_room *);

/* bytes: of all rows. Takes no memory yet. */
void aside_begin(struct aside *, struct aside_room *, int64_t bytes);
void aside_end(struct aside *); /* nothing begun is fine */

/* Within a change: whether there are rows that would be set aside. */
static inline bool aside_is_on(const struct aside *a)
{
    return a->room && a->read < INT64_MAX;
}

/* Around what changes rows, and around what reads them for the checkpoint */
void aside_begin_change(struct aside *);
void aside_end_change(struct aside *);
/* ERR_MEMORY: the save is lost, and nothing begun. table: its name */
err aside_begin_reading(struct aside *, const char *table);
void aside_end_reading(struct aside *);

/* Room for a row that is to change; NULL: it need not be set aside, or not once more, or the save
 * is lost. May wait, and lets others read meanwhile: nothing of the table is half changed then. */
float *aside_add(struct aside *, int64_t row, int64_t floats);
/* Out of what is aside: freed by aside_free. NULL: it was not there. */
struct aside_record *aside_take(struct aside *, int64_t row);
void aside_free(struct aside *, struct aside_record *); /* NULL is fine */
void aside_has_read(struct aside *, int64_t row);       /* all that are below; within a reading */
/* All have been read, or nobody will read them. Outside of a reading. */
void aside_over(struct aside *);

#endif
