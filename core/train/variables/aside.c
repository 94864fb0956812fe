/* aside.c - see aside.h. Open addressing: a row is at the first place that is its own or free, from
 * where its hash points on. */
#include "core/train/variables/aside.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"

enum { ROOM_FIRST = 256 };

void aside_open(int64_t floats, struct aside *ret)
{
    *ret = (struct aside){.floats = floats};
}

void aside_close(struct aside *a)
{
    free(a->records);
    free(a->places);
    free(a->rows);
    *a = (struct aside){0};
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

err aside_add(struct aside *a, int64_t row, float **ret_record)
{
    if (a->count == a->room) TRY(grow(a));
    int64_t *place = place_of(a, row);
    a->rows[a->count] = row;
    *place = ++a->count;
    *ret_record = a->records + (a->count - 1) * a->floats;
    return OK;
}
