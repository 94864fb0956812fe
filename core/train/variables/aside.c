/* aside.c - see aside.h. Open addressing: a row is at the first place that is its own or free, from
 * where its hash points on. */
#include "core/train/variables/aside.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"

enum {
    ROOM_FIRST = 256,
    YIELDS_MAX = 1000, /* by who reads, to who changes rows */
};

void aside_open(struct aside *a)
{
    *a = (struct aside){0};
    pthread_mutex_init(&a->lock, NULL);
}

void aside_close(struct aside *a)
{
    aside_end(a);
    pthread_mutex_destroy(&a->lock);
}

void aside_begin(struct aside *a, int64_t floats)
{
    aside_end(a);
    a->floats = floats;
    a->is_on = true;
}

void aside_end(struct aside *a)
{
    free(a->records);
    free(a->places);
    free(a->rows);
    a->records = NULL;
    a->places = a->rows = NULL;
    a->count = a->room = a->place_count = 0;
    a->is_on = a->lacks = false;
}

void aside_begin_change(struct aside *a)
{
    if (!a->is_on) return;
    a->is_wanted = true;
    pthread_mutex_lock(&a->lock);
    a->is_wanted = false;
}

void aside_end_change(struct aside *a)
{
    if (a->is_on) pthread_mutex_unlock(&a->lock);
}

void aside_begin_reading(struct aside *a)
{
    for (int i = 0; i < YIELDS_MAX && a->is_wanted; i++) sched_yield();
    pthread_mutex_lock(&a->lock);
}

void aside_end_reading(struct aside *a)
{
    pthread_mutex_unlock(&a->lock);
}

/* Ends: half of the places at least are free. */
static int64_t *place_of(const struct aside *a, int64_t row)
{
    uint64_t at = random_mix((uint64_t)row);
    for (;; at++) {
        int64_t *place = &a->places[at & (uint64_t)(a->place_count - 1)];
        if (*place == 0 || a->rows[*place - 1] == row) return place;
    }
}

const float *aside_find(const struct aside *a, int64_t row)
{
    const int64_t place = a->count ? *place_of(a, row) : 0;
    return place ? a->records + (place - 1) * a->floats : NULL;
}

static void place_all(struct aside *a)
{
    for (int64_t i = 0; i < a->count; i++) *place_of(a, a->rows[i]) = i + 1;
}

static err grow(struct aside *a)
{
    const int64_t room = a->room ? 2 * a->room : ROOM_FIRST;
    int64_t *places = calloc((size_t)room * 2, sizeof *places);
    int64_t *rows = places ? realloc(a->rows, (size_t)room * sizeof *rows) : NULL;
    if (rows) a->rows = rows;
    float *records =
        rows ? realloc(a->records, (size_t)room * (size_t)a->floats * sizeof *records) : NULL;
    if (!records) {
        free(places);
        return fail(ERR_MEMORY, "no memory to set %lld rows aside", (long long)room);
    }
    free(a->places);
    a->records = records;
    a->places = places;
    a->room = room;
    a->place_count = room * 2;
    place_all(a);
    return OK;
}

float *aside_add(struct aside *a, int64_t row)
{
    if (!a->is_on || a->lacks || aside_find(a, row)) return NULL;
    if (a->count == a->room && grow(a)) {
        a->lacks = true;
        return NULL;
    }
    int64_t *place = place_of(a, row);
    a->rows[a->count] = row;
    *place = ++a->count;
    return a->records + (a->count - 1) * a->floats;
}
