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

/* One that has memory and keeps nothing, else one without, else the oldest */
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

const int64_t *found_take(struct found *f, const int64_t *keys, int64_t count)
{
    struct gather_found *last = NULL;
    for (int i = 0; i < GATHERS_MAX; i++) {
        struct gather_found *g = &f->at[i];
        if (count == 0 || g->count != count || (last && last->turn > g->turn)) continue;
        if (memcmp(g->keys, keys, (size_t)count * sizeof *keys) == 0) last = g;
    }
    if (!last) return NULL;
    last->count = 0;
    return last->numbers;
}
