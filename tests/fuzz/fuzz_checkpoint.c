/* An index and a data file of a checkpoint. The first byte says whether the index' bytes are given,
 * or its entries, which then have right checksums around them; checksums of data hold in any case.
 */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "core/train/checkpoint/bundle/bundle_inside.h"
#include "core/train/checkpoint/bundle/sorted.h"
#include "core/train/checkpoint/delta.h"
#include "core/train/checkpoint/grown.h"
#include "core/train/checkpoint/stored_table.h"
#include "core/train/variables/growing/keys.h"
#include "tests/core/train/checkpoint/tables/save.h"
#include "tests/core/train/fixture.h"

enum { ENTRIES_MAX = 64, READ_MAX = 1 << 16, WIDTH = 3, FLOATS = 64, WORKERS = 3 };

err __wrap_bundle_crc_differs(const char *path); /* of the linker */
err __wrap_bundle_crc_differs(const char *path)
{
    return OK;
}

/* ---- from entries to an index ---- */

static int by_key(const void *a, const void *b)
{
    const struct view x = ((const struct sorted_item *)a)->key,
                      y = ((const struct sorted_item *)b)->key;
    const size_t shorter = view_bytes(x) < view_bytes(y) ? view_bytes(x) : view_bytes(y);
    const int order = shorter ? memcmp(x.at, y.at, shorter) : 0;
    return order ? order : (view_bytes(x) > view_bytes(y)) - (view_bytes(x) < view_bytes(y));
}

/* Of each the length of its key, its key, the length of its value, its value; a key of 255 bytes
 * ends them. */
static void make_index(struct view *input, struct buffer *ret)
{
    struct sorted_item items[ENTRIES_MAX];
    struct sorted_writer writer;
    int count = 0;
    for (uint8_t length;
         count < ENTRIES_MAX && view_bytes(*input) && (length = fuzz_byte(input)) < 255; count++) {
        items[count].key = fuzz_bytes(input, length);
        const size_t value = fuzz_byte(input);
        items[count].value = fuzz_bytes(input, value);
    }
    qsort(items, (size_t)count, sizeof *items, by_key);
    sorted_begin(&writer);
    for (int i = 0; i < count; i++)
        if (i == 0 || by_key(&items[i - 1], &items[i]) != 0) sorted_add(&writer, &items[i]);
    if (sorted_end(&writer, ret)) exit(2);
}

/* ---- reading ---- */

static err take(void *context, int64_t first_row, int64_t rows, const void *elements)
{
    (void)context, (void)elements;
    fuzz_holds(rows > 0 && first_row >= 0, "rows are there");
    return OK;
}

static err take_stored(void *context, const int64_t *ids, int64_t count, const float *rows)
{
    float *sum = context;
    for (int64_t i = 0; i < count; i++) fuzz_holds(ids[i] >= 0, "an id is one");
    if (count) *sum += rows[0];
    return OK;
}

static void read_entry(struct bundle *b, const struct bundle_entry *entry)
{
    static uint8_t memory[READ_MAX];
    const int64_t count = bundle_count(&entry->shape),
                  size = (int64_t)bundle_dtype_size(entry->dtype);
    const struct bundle_taker taker = {NULL, take};
    struct stored_table table;
    float sum = 0;
    fuzz_holds(count >= 0, "elements can be counted");
    if (size && count <= READ_MAX / size)
        fuzz_went_well(bundle_read(b, entry, NULL, memory, (size_t)(count * size)));
    fuzz_went_well(bundle_read_rows(b, entry, NULL, &taker));
    for (int i = 0; i < (entry->slice_count ? entry->slice_count : 1); i++) {
        const struct bundle_box box = bundle_place(b, entry, i).box;
        fuzz_went_well(bundle_read_rows(b, entry, &box, &taker));
    }
    if (entry->shape.rank == 2 && entry->shape.dim[0] > 2 &&
        entry->shape.dim[1] <= READ_MAX / 2 / (size ? size : 1))
        fuzz_went_well(
            bundle_pick_rows(b, entry, (const int64_t[]){1, entry->shape.dim[0] - 1}, 2, memory));
    if (fuzz_went_well(stored_table_find(b, entry->name, &table)))
        fuzz_went_well(stored_table_read(&table, &(struct stored_rows_taker){&sum, take_stored}));
}

/* ---- as a ps restores it ---- */

static const struct growth growth = {1, 0};
static const struct slice words = {
    .name = "words", .shape = {2, {1, WIDTH}}, .length = KEYS, .count = WIDTH, .parts = 1};
static const struct slice dense[] = {
    {.name = "w", .shape = {2, {4, 3}}, .length = 4, .count = 12},
    {.name = "b", .shape = {0}, .length = 1, .offset = 16, .count = 1},
};

static void restore_tables(struct bundle *b)
{
    const struct table_spec spec = {.initializer = &fixture_draws, .growth = &growth};
    const int64_t keys[] = {0, 5, KEYS / 2, KEYS - 1};
    float rows[4 * WIDTH];
    struct world w;
    struct grown *grown;
    world_open(&w, 1, 0);
    world_open_part(&w, &words, &fixture_draws, &growth, 0);
    fuzz_went_well(shard_read(b, NULL, &w.shards[0]));
    table_gather(w.tables[0].rows, keys, 4, rows);
    world_close(&w);
    if (!fuzz_went_well(grown_open(b, &words, &spec, &grown))) return;
    fuzz_went_well(grown_read(grown, keys, 4, rows));
    grown_close(grown);
}

static void restore_dense(struct bundle *b)
{
    static float blocks[2][FLOATS];
    int64_t ledger[WORKERS * LEDGER_COLUMNS], coverage[COVERAGE_COLUMNS];
    const int64_t *data;
    int data_count;
    struct arena arena = {0};
    struct shard shard = {
        .ps_count = 1,
        .slices = dense,
        .slice_count = 2,
        .values = blocks[0],
        .slot_count = 1,
        .slots = {blocks[1]},
        .slot_names = {{1, {"Adagrad"}}},
        .power_count = 1,
        .power_names = {"beta1_power"},
        .workers = WORKERS,
        .ledger = ledger,
        .coverage = coverage,
    };
    const struct warm_start warm = {.slots = true};
    fuzz_went_well(shard_read(b, NULL, &shard));
    fuzz_went_well(shard_read(b, &warm, &shard));
    fuzz_went_well(shard_read_data(b, &arena, &data, &data_count));
    arena_free(&arena);
}

/* ---- as a server lays it over what it has ---- */

static void read_delta(struct bundle *b)
{
    struct table_changes changes;
    int64_t step;
    fuzz_went_well(delta_read_step(b, &step));
    if (fuzz_went_well(delta_read_rows(b, &words, &changes))) table_changes_free(&changes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct view input = {bytes, bytes + count};
    const bool is_made = fuzz_byte(&input) % 2;
    struct buffer made = {0};
    struct bundle *b;
    const size_t low = is_made ? 0 : fuzz_byte(&input), high = is_made ? 0 : fuzz_byte(&input);
    if (is_made) make_index(&input, &made);
    memory_file("p.index", is_made ? buffer_view(&made) : fuzz_bytes(&input, low + 256 * high));
    memory_file("p.data-00000-of-00001", input);
    memory_file("p.data-00000-of-00002", input);
    memory_file("p.data-00001-of-00002", input);
    if (fuzz_went_well(bundle_open("memory://p", &b))) {
        for (int i = 0; i < bundle_entries(b); i++) read_entry(b, bundle_at(b, i));
        fuzz_went_well(bundle_verify(b));
        restore_dense(b);
        restore_tables(b);
        read_delta(b);
        bundle_close(b);
    }
    buffer_drop(&made);
    memory_clear();
    return 0;
}
