/* aside.c - see aside.h. A hash table with open addressing and linear probing. */
#include "core/train/variables/aside.h"

#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/random.h"

enum {
    PLACES_FIRST = 512,
    PLACES_MOST = 4,   /* places for each record: at least two, doubled when too few */
    MALLOC_BYTES = 8,  /* overhead of malloc per record */
    YIELDS_MAX = 1000, /* how often a reader yields to threads that change rows */
    FREED_PART = 64,   /* 1 / FREED_PART of the room must be free before waiting ends */
};

/* ---- room ---- */

void aside_room_open(struct aside_room *room)
{
    *room = (struct aside_room){0};
    pthread_mutex_init(&room->lock, NULL);
    pthread_cond_init(&room->has_read, NULL);
}

void aside_room_begin(struct aside_room *room)
{
    room->limit = ASIDE_BYTES_LEAST;
    room->used = room->most = room->reads = 0;
    room->awaited = -1;
    room->still_ms = ASIDE_STILL_MS;
    room->lost = NULL;
}

void aside_room_end(void)
{
    malloc_trim(0);
}

void aside_room_close(struct aside_room *room)
{
    pthread_mutex_destroy(&room->lock);
    pthread_cond_destroy(&room->has_read);
}

/* The loop ends: either something is read, or time passes and the save fails. */
static void await_room(struct aside_room *room, int64_t bytes)
{
    const int64_t level = room->limit - room->limit / FREED_PART - bytes;
    room->awaited = level > 0 ? level : 0;
    while (!room->lost && room->used > room->awaited) {
        const int64_t reads = room->reads;
        const struct timespec until = clock_in_ms((uint64_t)room->still_ms);
        const int status =
            pthread_cond_clockwait(&room->has_read, &room->lock, CLOCK_MONOTONIC, &until);
        if (status == ETIMEDOUT && room->reads == reads)
            room->lost = "nothing of it was written for too long";
    }
    room->awaited = -1;
}

static void take_room(struct aside_room *room, int64_t bytes)
{
    room->used += bytes;
    if (room->used > room->most) room->most = room->used;
}

static void free_room(struct aside_room *room, int64_t bytes)
{
    room->used -= bytes;
    if (room->used <= room->awaited) pthread_cond_signal(&room->has_read);
}

/* ---- records ---- */

void aside_begin(struct aside *a, struct aside_room *room, int64_t bytes)
{
    *a = (struct aside){.room = room};
    room->limit += bytes / ASIDE_PART;
}

static void drop_all(struct aside *a)
{
    for (int64_t i = 0; i < a->place_count; i++) aside_free(a, a->places[i]);
    free(a->places);
    a->places = NULL;
    a->count = a->place_count = 0;
}

void aside_end(struct aside *a)
{
    drop_all(a);
    a->room = NULL;
}

void aside_free(struct aside *a, struct aside_record *record)
{
    if (!record) return;
    free_room(a->room, record->bytes);
    free(record);
}

static int64_t next(const struct aside *a, int64_t place)
{
    return (place + 1) & (a->place_count - 1);
}

static int64_t home(const struct aside *a, int64_t row)
{
    return (int64_t)(random_mix((uint64_t)row) & (uint64_t)(a->place_count - 1));
}

/* The loop ends: at least half of the places are free. */
static int64_t place_of(const struct aside *a, int64_t row)
{
    int64_t place = home(a, row);
    while (a->places[place] && a->places[place]->row != row) place = next(a, place);
    return place;
}

static bool grow(struct aside *a)
{
    struct aside_record **old = a->places;
    const int64_t count = a->place_count;
    if (2 * (a->count + 1) <= count) return true;
    struct aside_record **places =
        calloc((size_t)(count ? 2 * count : PLACES_FIRST), sizeof(struct aside_record *));
    if (!places) return false;
    a->places = places;
    a->place_count = count ? 2 * count : PLACES_FIRST;
    for (int64_t i = 0; i < count; i++)
        if (old[i]) a->places[place_of(a, old[i]->row)] = old[i];
    free(old);
    return true;
}

static bool is_aside(const struct aside *a, int64_t row)
{
    return a->count && a->places[place_of(a, row)];
}

static bool is_needed(const struct aside *a, int64_t row)
{
    return a->room && !a->room->lost && row >= a->read && !is_aside(a, row);
}

/* While this waits, the row may be read, and then need not be set aside any more. */
float *aside_add(struct aside *a, int64_t row, int64_t floats)
{
    struct aside_room *room = a->room;
    struct aside_record *record;
    const size_t size = sizeof *record + (size_t)floats * sizeof(float);
    const int64_t bytes = (int64_t)(size + MALLOC_BYTES + PLACES_MOST * sizeof record);
    if (!is_needed(a, row)) return NULL;
    if (room->used && room->used + bytes > room->limit) await_room(room, bytes);
    if (!is_needed(a, row)) return NULL;
    record = grow(a) ? malloc(size) : NULL;
    if (!record) {
        room->lost = "there is no memory to set rows aside";
        return NULL;
    }
    record->row = row;
    record->bytes = bytes;
    a->places[place_of(a, row)] = record;
    a->count++;
    take_room(room, bytes);
    return record->at;
}

/* Moves up later records of the same probe sequence. */
struct aside_record *aside_take(struct aside *a, int64_t row)
{
    if (!a->count) return NULL;
    int64_t gap = place_of(a, row);
    struct aside_record *taken = a->places[gap];
    if (!taken) return NULL;
    for (int64_t at = next(a, gap); a->places[at]; at = next(a, at)) {
        const int64_t mask = a->place_count - 1, from = home(a, a->places[at]->row);
        if (((at - from) & mask) < ((at - gap) & mask)) continue;
        a->places[gap] = a->places[at];
        gap = at;
    }
    a->places[gap] = NULL;
    a->count--;
    return taken;
}

/* ---- turns ---- */

void aside_begin_change(struct aside *a)
{
    if (!a->room) return;
    a->room->is_wanted = true;
    pthread_mutex_lock(&a->room->lock);
    a->room->is_wanted = false;
}

void aside_end_change(struct aside *a)
{
    if (a->room) pthread_mutex_unlock(&a->room->lock);
}

err aside_begin_reading(struct aside *a, const char *table)
{
    struct aside_room *room = a->room;
    for (int i = 0; i < YIELDS_MAX && room->is_wanted; i++) sched_yield();
    pthread_mutex_lock(&room->lock);
    if (!room->lost) return OK;
    const err e = fail(ERR_MEMORY, "table %s: %s", table, room->lost);
    pthread_mutex_unlock(&room->lock);
    return e;
}

void aside_end_reading(struct aside *a)
{
    pthread_mutex_unlock(&a->room->lock);
}

void aside_has_read(struct aside *a, int64_t row)
{
    a->read = row;
    a->room->reads++;
}

void aside_over(struct aside *a)
{
    pthread_mutex_lock(&a->room->lock);
    aside_has_read(a, INT64_MAX);
    drop_all(a);
    pthread_mutex_unlock(&a->room->lock);
}
