/* found.c - see found.h. */
#include "core/train/variables/growing/found.h"

#include <stdlib.h>
#include <string.h>

void found_close(struct found *f)
{
    for (int i = 0; i < GATHERS_MAX; i++) {
        free(f->at[i].keys);
        free(f->at[i].numbers);
    }
    *f = (struct found){0};
}

void found_forget(struct found *f)
{
    for (int i = 0; i < GATHERS_MAX; i++) f->at[i].count = 0;
}

/* An unused gather that has memory, else an unused one without, else the oldest */
static struct gather_found *choose(struct found *f)
{
    struct gather_found *oldest = f->at, *bare = NULL;
    for (int i = 0; i < GATHERS_MAX; i++) {
        struct gather_found *g = &f->at[i];
        if (g->room && !g->count) return g;
        if (!g->room && !bare) bare = g;
        if (g->turn < oldest->turn) oldest = g;
    }
    return bare ? bare : oldest;
}

static bool reserve(struct gather_found *g, int64_t count)
{
    if (count <= g->room) return true;
    free(g->keys);
    free(g->numbers);
    g->keys = malloc((size_t)count * sizeof *g->keys);
    g->numbers = malloc((size_t)count * sizeof *g->numbers);
    g->room = g->keys && g->numbers ? count : 0;
    return g->room > 0;
}

int64_t *found_begin(struct found *f, const int64_t *keys, int64_t count)
{
    struct gather_found *g = choose(f);
    g->count = 0;
    if (count == 0 || !reserve(g, count)) return NULL;
    memcpy(g->keys, keys, (size_t)count * sizeof *keys);
    g->count = count;
    g->turn = ++f->turns;
    return g->numbers;
}

/* Whether the key is among these */
static bool is_among(const int64_t *keys, int64_t count, int64_t key)
{
    int64_t below = 0;
    for (int64_t end = count; below < end;) { /* the loop ends: the interval shrinks */
        const int64_t middle = below + (end - below) / 2;
        if (keys[middle] < key)
            below = middle + 1;
        else
            end = middle;
    }
    return below < count && keys[below] == key;
}

/* Judges by three of its keys whether all are in this update: if not, they most likely belong to a
 * later update. */
static bool seems_inside(const struct gather_found *g, const int64_t *keys, int64_t count)
{
    return g->count > 0 && g->count <= count && is_among(keys, count, g->keys[0]) &&
           is_among(keys, count, g->keys[g->count / 2]) &&
           is_among(keys, count, g->keys[g->count - 1]);
}

/* Branch-free: which of several gathers has a key is unpredictable. */
static void take(struct gather_found *g, const int64_t *keys, int64_t count, int64_t *ret_numbers)
{
    int64_t at = 0;
    for (int64_t i = 0; i < count && at < g->count; i++) {
        const bool is_it = g->keys[at] == keys[i];
        ret_numbers[i] = is_it ? g->numbers[at] : ret_numbers[i];
        at += is_it;
    }
    if (at == g->count) g->count = 0;
}

static struct gather_found *same_keys(struct found *f, const int64_t *keys, int64_t count)
{
    struct gather_found *last = NULL;
    for (int i = 0; i < GATHERS_MAX; i++) {
        struct gather_found *g = &f->at[i];
        if (count == 0 || g->count != count || (last && last->turn > g->turn)) continue;
        if (memcmp(g->keys, keys, (size_t)count * sizeof *keys) == 0) last = g;
    }
    return last;
}

bool found_take(struct found *f, const int64_t *keys, int64_t count, int64_t *ret_numbers)
{
    struct gather_found *same = same_keys(f, keys, count);
    int64_t none = 0;
    for (int64_t i = 0; i < count; i++) ret_numbers[i] = same ? same->numbers[i] : -1;
    if (same) same->count = 0;
    for (int i = 0; i < GATHERS_MAX && !same; i++)
        if (seems_inside(&f->at[i], keys, count)) take(&f->at[i], keys, count, ret_numbers);
    for (int64_t i = 0; i < count; i++) none += ret_numbers[i] < 0;
    return none == 0;
}
