/* grown.c - see grown.h. */
#include "core/train/checkpoint/grown.h"

#include <stdlib.h>
#include <string.h>

#include "core/train/checkpoint/shard_inside.h"
#include "core/train/variables/growing/growing.h"
#include "core/train/variables/growing/keys.h"

enum { AT_ONCE = 512 }; /* keys that are looked up together */

/* A block of successive keys of a part */
struct key_block {
    int64_t first_key;
    int64_t rows; /* rows of the part before the block */
    int64_t at;   /* of its first key in the part */
    int part;
};

struct grown_part {
    const struct bundle_entry *keys, *rows;
};

struct grown {
    struct bundle *bundle;
    const struct slice *slice;
    struct table_description is;
    int64_t step; /* of the checkpoint */
    int part_count;
    struct grown_part parts[PS_MAX];
    struct key_block *blocks;
    int64_t block_count, block_room;
    int64_t last_key, rows;                /* of the part, while blocks are created */
    int64_t (*rows_of)[SHARD_KEY_COLUMNS]; /* [AT_ONCE, GROWN_BLOCK] scratch: keys of blocks */
    float *picked;                         /* [AT_ONCE, width] scratch */
};

/* Where one of the keys of a lookup is */
struct looked_up_key {
    int64_t block; /* -1: before all blocks */
    int64_t row;   /* in its part; -1: no row */
};

/* ---- the blocks of keys ---- */

static err add_block(struct grown *g, const struct key_block *block)
{
    if (g->block_count == g->block_room) {
        const int64_t room = 2 * g->block_room + 64;
        struct key_block *blocks = realloc(g->blocks, (size_t)room * sizeof *blocks);
        if (!blocks) return fail(ERR_MEMORY, "no memory for the index of %s", g->slice->name);
        g->blocks = blocks;
        g->block_room = room;
    }
    g->blocks[g->block_count++] = *block;
    return OK;
}

static err take_keys(void *context, int64_t first, int64_t count, const void *elements)
{
    struct grown *g = context;
    const int64_t(*rows)[SHARD_KEY_COLUMNS] = elements;
    struct key_state state;
    for (int64_t i = 0; i < count; i++) {
        TRY(shard_next_key(g->bundle, g->parts[g->part_count].keys, rows[i], &g->last_key, &state));
        const int64_t at = first + i;
        if (at % GROWN_BLOCK == 0)
            TRY(add_block(g, &(struct key_block){state.key, g->rows, at, g->part_count}));
        g->rows += state.sights == 0;
    }
    return OK;
}

static err open_part(struct grown *g)
{
    struct grown_part *part = &g->parts[g->part_count];
    g->rows = 0;
    TRY(shard_check_keys(g->bundle, part->keys));
    TRY(bundle_read_rows(g->bundle, part->keys, NULL, &(struct bundle_taker){g, take_keys}));
    TRY(shard_find_rows(g->bundle, g->slice, g->part_count, g->rows, &part->rows));
    return bundle_check(g->bundle, part->rows);
}

static err open_parts(struct grown *g)
{
    uint64_t step;
    TRY(shard_read_step(g->bundle, &step));
    g->step = (int64_t)step;
    g->last_key = -1;
    for (; g->part_count < PS_MAX; g->part_count++) {
        TRY(shard_find_keys(g->bundle, g->slice, g->part_count, &g->parts[g->part_count].keys));
        if (!g->parts[g->part_count].keys) break;
        TRY(open_part(g));
    }
    const size_t width = (size_t)g->is.shape.dim[1];
    g->rows_of = malloc(AT_ONCE * GROWN_BLOCK * sizeof *g->rows_of);
    g->picked = malloc(AT_ONCE * width * sizeof *g->picked);
    return g->rows_of && g->picked ? OK : fail(ERR_MEMORY, "no memory for %d rows", (int)AT_ONCE);
}

err grown_open(struct bundle *bundle, const struct slice *slice, const struct table_spec *table,
               struct grown **ret)
{
    struct grown *g = calloc(1, sizeof *g);
    if (!g) return fail(ERR_MEMORY, "no memory for the index of %s", slice->name);
    g->bundle = bundle;
    g->slice = slice;
    g->is = table_describe(slice, table);
    const err e = open_parts(g);
    if (e)
        grown_close(g);
    else
        *ret = g;
    return e;
}

void grown_close(struct grown *g)
{
    if (!g) return;
    free(g->blocks);
    free(g->rows_of);
    free(g->picked);
    free(g);
}

/* ---- looking up ---- */

/* The last block, from `from` on, that begins at or before the key; -1: all begin after it. */
static int64_t find_block(const struct grown *g, int64_t key, int64_t from)
{
    int64_t low = from < 0 ? 0 : from, high = g->block_count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (g->blocks[middle].first_key <= key)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

static int64_t keys_of_block(const struct grown *g, int64_t block)
{
    const struct key_block *b = &g->blocks[block];
    const int64_t left = g->parts[b->part].keys->shape.dim[0] - b->at;
    return left < GROWN_BLOCK ? left : GROWN_BLOCK;
}

/* Reads the keys of the blocks of places first .. end - 1, each once; all of one part. */
static err read_blocks(struct grown *g, const struct looked_up_key *places, int first, int end)
{
    int64_t numbers[AT_ONCE * GROWN_BLOCK], count = 0, before = -1;
    for (int i = first; i < end; i++) {
        if (places[i].block == before) continue;
        before = places[i].block;
        for (int64_t k = 0; k < keys_of_block(g, before); k++)
            numbers[count++] = g->blocks[before].at + k;
    }
    return bundle_pick_rows(g->bundle, g->parts[g->blocks[before].part].keys, numbers, count,
                            g->rows_of);
}

/* Looks the key up in its block, whose keys are `rows`. */
static err look_up(const struct grown *g, int64_t key, const int64_t (*rows)[SHARD_KEY_COLUMNS],
                   struct looked_up_key *place)
{
    const struct key_block *b = &g->blocks[place->block];
    int64_t row = b->rows;
    struct key_state state;
    for (int64_t i = 0; i < keys_of_block(g, place->block); i++) {
        TRY(shard_key_state(g->bundle, g->parts[b->part].keys, rows[i], &state));
        const bool is_it = state.key == key && !state.sights;
        if (is_it && !growth_is_idle(g->is.growth, g->step, state.used)) place->row = row;
        if (state.key >= key) break;
        row += state.sights == 0;
    }
    return OK;
}

static err look_up_all(struct grown *g, const int64_t *keys, struct looked_up_key *places,
                       int first, int end)
{
    const int64_t(*rows)[SHARD_KEY_COLUMNS] = (const void *)g->rows_of;
    TRY(read_blocks(g, places, first, end));
    for (int i = first; i < end; i++) {
        if (i > first && places[i].block != places[i - 1].block)
            rows += keys_of_block(g, places[i - 1].block);
        TRY(look_up(g, keys[i], rows, &places[i]));
    }
    return OK;
}

/* ---- reading ---- */

static err read_rows(struct grown *g, const struct looked_up_key *places, int first, int end,
                     float *ret)
{
    const size_t width = (size_t)g->is.shape.dim[1];
    const struct grown_part *part = &g->parts[g->blocks[places[first].block].part];
    int64_t numbers[AT_ONCE], count = 0;
    for (int i = first; i < end; i++)
        if (places[i].row >= 0) numbers[count++] = places[i].row;
    TRY(bundle_pick_rows(g->bundle, part->rows, numbers, count, g->picked));
    const float *from = g->picked;
    for (int i = first; i < end; i++) {
        if (places[i].row < 0) continue;
        memcpy(ret + (size_t)i * width, from, width * sizeof *ret);
        from += width;
    }
    return OK;
}

static int part_of(const struct grown *g, const struct looked_up_key *place)
{
    return place->block < 0 ? -1 : g->blocks[place->block].part;
}

static err read_some(struct grown *g, const int64_t *keys, int count, float *ret)
{
    struct looked_up_key places[AT_ONCE];
    for (int i = 0; i < count; i++)
        places[i] =
            (struct looked_up_key){find_block(g, keys[i], i ? places[i - 1].block : -1), -1};
    for (int first = 0, end; first < count; first = end) {
        const int part = part_of(g, &places[first]);
        for (end = first + 1; end < count && part_of(g, &places[end]) == part;) end++;
        if (part < 0) continue;
        TRY(look_up_all(g, keys, places, first, end));
        TRY(read_rows(g, places, first, end, ret));
    }
    const int64_t width = g->is.shape.dim[1];
    for (int i = 0; i < count; i++)
        if (places[i].row < 0) memset(ret + i * width, 0, (size_t)width * sizeof *ret);
    return OK;
}

err grown_read(struct grown *g, const int64_t *keys, int64_t count, float *ret)
{
    for (int64_t at = 0; at < count; at += AT_ONCE) {
        const int64_t left = count - at;
        TRY(read_some(g, keys + at, (int)(left < AT_ONCE ? left : AT_ONCE),
                      ret + at * g->is.shape.dim[1]));
    }
    return OK;
}
