/* changes.c - see changes.h. */
#include "core/train/variables/changes.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM_LEAST = 1 << 10, WORD = 64, DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS };

void changes_end(struct changes *c)
{
    free(c->bits);
    free(c->rows);
    *c = (struct changes){0};
}

/* Fresh memory is zero: the system clears it on first touch. */
void changes_begin(struct changes *c, int64_t most)
{
    changes_end(c);
    *c = (struct changes){.is_on = true, .most = most};
}

/* Drops the list: the changed rows are unknown from now on. */
static void lose(struct changes *c)
{
    if (!c->is_on) return;
    changes_end(c);
    c->is_lost = true;
}

static bool reach(struct changes *c, int64_t place)
{
    if (place < c->places) return true;
    int64_t places = 2 * c->places < ROOM_LEAST ? ROOM_LEAST : 2 * c->places;
    while (places <= place) places *= 2;
    uint64_t *bits = calloc((size_t)(places / WORD), sizeof *bits);
    if (!bits) return false;
    if (c->bits) memcpy(bits, c->bits, (size_t)(c->places / WORD) * sizeof *bits);
    free(c->bits);
    c->bits = bits;
    c->places = places;
    return true;
}

static bool append(struct changes *c, int64_t row)
{
    if (c->count == c->most) return false;
    if (c->count == c->room) {
        const int64_t room = c->room ? 2 * c->room : ROOM_LEAST;
        int64_t *rows = realloc(c->rows, (size_t)room * sizeof *rows);
        if (!rows) return false;
        c->rows = rows;
        c->room = room;
    }
    c->rows[c->count++] = row;
    return true;
}

void changes_add(struct changes *c, int64_t place, int64_t row)
{
    if (!reach(c, place) || !append(c, row)) {
        lose(c);
        return;
    }
    c->bits[place / WORD] |= UINT64_C(1) << (place % WORD);
}

void changes_leave(struct changes *c, int64_t place, int64_t row)
{
    changes_note(c, place, row);
    if (c->is_on) c->bits[place / WORD] &= ~(UINT64_C(1) << (place % WORD));
}

/* One pass of a radix sort by a single digit, which is stable; rows are not negative. */
static void sort_by(const int64_t *from, int64_t count, int shift, int64_t *to)
{
    int64_t at[DIGITS] = {0}, before = 0;
    for (int64_t i = 0; i < count; i++) at[from[i] >> shift & (DIGITS - 1)]++;
    for (int d = 0; d < DIGITS; d++) {
        const int64_t here = at[d];
        at[d] = before;
        before += here;
    }
    for (int64_t i = 0; i < count; i++) to[at[from[i] >> shift & (DIGITS - 1)]++] = from[i];
}

static void drop_repeated(struct changes *c)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < c->count; i++)
        if (i == 0 || c->rows[i] != c->rows[i - 1]) c->rows[kept++] = c->rows[i];
    c->count = kept;
}

int64_t changes_sort(struct changes *c)
{
    int64_t most = 0;
    int64_t *other = malloc((size_t)(c->count + 1) * sizeof *other), *rows = c->rows;
    if (!other) {
        lose(c);
        return 0;
    }
    for (int64_t i = 0; i < c->count; i++) most = rows[i] > most ? rows[i] : most;
    for (int shift = 0; shift < WORD - 1 && most >> shift; shift += DIGIT_BITS) {
        sort_by(rows, c->count, shift, other);
        int64_t *sorted = other;
        other = rows;
        rows = sorted;
    }
    free(other);
    c->rows = rows;
    c->room = rows ? c->count : 0;
    drop_repeated(c);
    return c->count;
}
