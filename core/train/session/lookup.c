/* lookup.c - see lookup.h. */
#include "core/train/session/lookup.h"

#include <string.h>

#include "core/base/ascending.h"
#include "core/train/variables/growing/keys.h"
#include "core/train/variables/mod.h"

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS, FEW = 32 };

void lookup_open(int64_t cells, struct lookup_order order, struct arena *arena, struct lookup *ret)
{
    const size_t count = (size_t)cells + 1;
    *ret = (struct lookup){
        .order = order,
        .cells = cells,
        .ids = arena_array(arena, count, sizeof *ret->ids),
        .times = arena_array(arena, count, sizeof *ret->times),
        .places = arena_array(arena, count, sizeof *ret->places),
        .named = arena_array(arena, count, sizeof *ret->named),
        .sorted = arena_array(arena, count, sizeof *ret->sorted),
    };
}

void lookup_begin(struct lookup *l)
{
    l->named_count = l->bits = 0;
}

static int64_t ordered(const struct lookup_order *order, int64_t id)
{
    return order->keys ? key_of_id(id) : mod_row_of_id(order->rows, order->mod, id);
}

void lookup_add(struct lookup *l, const int64_t *ids, int64_t count, int64_t first_cell)
{
    for (int64_t i = 0; i < count; i++) {
        if (ids[i] < 0) continue;
        const int64_t id = ordered(&l->order, ids[i]);
        l->named[l->named_count++] = (struct named){id, first_cell + i};
        l->bits |= id;
    }
}

/* One pass of a radix sort by a single digit. It is stable: equal digits stay in the order of the
 * batch. */
static void sort_digit(const struct named *from, struct named *to, int64_t count, int shift)
{
    int64_t starts[DIGITS] = {0}, at = 0;
    for (int64_t i = 0; i < count; i++) starts[(from[i].id >> shift) & (DIGITS - 1)]++;
    for (int d = 0; d < DIGITS; d++) {
        const int64_t here = starts[d];
        starts[d] = at;
        at += here;
    }
    for (int64_t i = 0; i < count; i++)
        to[starts[(from[i].id >> shift) & (DIGITS - 1)]++] = from[i];
}

/* Sorts a few ids, for which a radix pass over all values of a digit would be too expensive. */
static void sort_few(struct named *at, int64_t count)
{
    for (int64_t i = 1; i < count; i++) {
        const struct named one = at[i];
        int64_t k = i;
        for (; k > 0 && at[k - 1].id > one.id; k--) at[k] = at[k - 1];
        at[k] = one;
    }
}

static void sort_named(struct lookup *l)
{
    if (l->named_count <= FEW) {
        sort_few(l->named, l->named_count);
        return;
    }
    for (int shift = 0; shift < 63 && l->bits >> shift; shift += DIGIT_BITS) {
        sort_digit(l->named, l->sorted, l->named_count, shift);
        struct named *swapped = l->named;
        l->named = l->sorted;
        l->sorted = swapped;
    }
}

void lookup_find(struct lookup *l)
{
    sort_named(l);
    memset(l->places, 0xff, (size_t)l->cells * sizeof *l->places);
    l->count = 0;
    for (int64_t i = 0; i < l->named_count; i++) {
        if (i == 0 || l->named[i].id != l->named[i - 1].id) {
            l->times[l->count] = 0;
            l->ids[l->count++] = l->named[i].id;
        }
        l->times[l->count - 1]++;
        l->places[l->named[i].cell] = l->count - 1;
    }
}

int64_t lookup_place(const struct lookup *l, int64_t id)
{
    return ascending_place(l->ids, l->count, id);
}
