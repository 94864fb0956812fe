/* test_shard_growing.c - tables that grow, in checkpoints: whoever reads them, and what is refused.
 */
#include "tests/core/train/fixture.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "core/train/checkpoint/shard.h"
#include "core/train/variables/growing/growing_inside.h"
#include "core/train/variables/growing/keys.h"
#include "tests/core/train/checkpoint/tables/save.h"

enum { WIDTH = 3, IDS = 50, PARTS_MAX = 3, STEP = 7 };

static const struct growth growth = {2, 0};

static void open_parts(struct world *w, int parts)
{
    world_open(w, parts, 0);
    for (int part = 0; part < parts; part++) {
        const int64_t each = KEYS / parts, start = part * each;
        const struct slice slice = {
            .name = "words",
            .shape = {2, {1, WIDTH}},
            .start = start,
            .length = part == parts - 1 ? KEYS - start : each,
            .count = WIDTH,
            .part = part,
            .parts = parts,
        };
        world_open_part(w, &slice, &fixture_draws, &growth, STEP);
    }
}

/* Every id once, and two of three once more, which have rows then. */
static void train(struct world *w, int64_t first_step)
{
    for (int64_t i = 0; i < 2 * IDS; i++) {
        const int64_t key = key_of_id(i % IDS << 40);
        const struct juncture now = {0.1f, w->dense.powers, first_step + i / IDS};
        float gradient[WIDTH];
        for (int k = 0; k < WIDTH; k++) gradient[k] = random_normal((uint64_t)i, (uint64_t)k);
        if (i >= IDS && i % 3 == 0) continue;
        for (int part = 0; part < w->parts; part++)
            if (table_has(w->tables[part].rows, &key, 1))
                assert_int_equal(table_apply(w->tables[part].rows, &key, 1, gradient, NULL, &now),
                                 OK);
    }
}

static err restore(struct world *w, const char *prefix, const struct warm_start *warm)
{
    struct bundle *bundle;
    err e = bundle_open(prefix, &bundle);
    if (e) return e;
    for (int part = 0; part < w->parts && !e; part++)
        e = warm ? shard_read_tables(bundle, warm, &w->shards[part])
                 : shard_read(bundle, NULL, &w->shards[part]);
    bundle_close(bundle);
    return e;
}

static void read_all(struct world *w, float ret[IDS * WIDTH])
{
    for (int64_t id = 0; id < IDS; id++) {
        const int64_t key = key_of_id(id << 40);
        for (int part = 0; part < w->parts; part++)
            if (table_has(w->tables[part].rows, &key, 1))
                table_gather(w->tables[part].rows, &key, 1, ret + id * WIDTH);
    }
}

static void any_number_of_ps_reads_what_any_other_wrote(void **state)
{
    for (int from = 1; from <= PARTS_MAX; from++)
        for (int to = 1; to <= PARTS_MAX; to++) {
            struct world before, after;
            char prefix[FOLDER_PATH_MAX];
            float wanted[IDS * WIDTH], got[IDS * WIDTH];
            open_parts(&before, from);
            open_parts(&after, to);
            train(&before, 0);
            save_shards(before.shards, before.tables, before.parts, *state, prefix);
            if (restore(&after, prefix, NULL)) fail_msg("%s", error_text());
            assert_int_equal(after.shards[0].global_step, STEP);
            train(&before, STEP); /* slots are there, and how often what was seen */
            train(&after, STEP);
            read_all(&before, wanted);
            read_all(&after, got);
            assert_memory_equal(got, wanted, sizeof got);
            world_close(&before);
            world_close(&after);
        }
}

/* An index of so many keys, which was given room for all of them at once */
static void assert_index_was_made_once(struct table *table, int64_t keys, int64_t expected)
{
    struct key_index once;
    const struct key_index *index = &table_growing(table)->index;
    assert_int_equal(index->count, keys);
    assert_int_equal(key_index_open(index->start, index->length, &once), OK);
    assert_int_equal(key_index_reserve(&once, expected, false), OK);
    assert_int_equal(index->line_count, once.line_count);
    assert_int_equal(index->crowd.homes, once.crowd.homes);
    key_index_close(&once);
}

static int by_key(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Keys come in their order: an index that only grows on the way takes a quadratic time. */
static void an_index_is_made_once_for_all_keys_of_a_checkpoint_or_a_push(void **state)
{
    enum { MANY = 60000 };
    static int64_t keys[MANY];
    static float gradients[MANY * WIDTH];
    struct world before, after;
    char prefix[FOLDER_PATH_MAX];
    open_parts(&before, 1);
    open_parts(&after, 3);
    for (int64_t i = 0; i < MANY; i++) keys[i] = key_of_id(i);
    qsort(keys, MANY, sizeof *keys, by_key);
    const struct juncture now = {0.1f, before.dense.powers, 0};
    for (int i = 0; i < 2; i++)
        assert_int_equal(table_apply(before.tables[0].rows, keys, MANY, gradients, NULL, &now), OK);
    assert_index_was_made_once(before.tables[0].rows, MANY, MANY);
    save_shards(before.shards, before.tables, before.parts, *state, prefix);
    if (restore(&after, prefix, NULL)) fail_msg("%s", error_text());
    int64_t restored = 0;
    for (int part = 0; part < 3; part++) {
        const int64_t here = table_growing(after.tables[part].rows)->index.count;
        restored += here;
        assert_index_was_made_once(after.tables[part].rows, here,
                                   (int64_t)((double)MANY / KEYS * after.slices[part].length));
    }
    assert_int_equal(restored, MANY);
    world_close(&before);
    world_close(&after);
}

static void a_warm_start_finds_a_table_by_its_map(void **state)
{
    static const struct name_map map = {"words", "other"};
    static const struct warm_start warm = {.maps = &map, .map_count = 1};
    struct world before, after;
    char prefix[FOLDER_PATH_MAX];
    float wanted[IDS * WIDTH], got[IDS * WIDTH];
    open_parts(&before, 2);
    open_parts(&after, 1);
    train(&before, 0);
    save_shards(before.shards, before.tables, before.parts, *state, prefix);
    after.slices[0].name = "other";
    if (restore(&after, prefix, &warm)) fail_msg("%s", error_text());
    read_all(&before, wanted);
    read_all(&after, got);
    assert_memory_equal(got, wanted, sizeof got);
    world_close(&before);
    world_close(&after);
}

static void an_empty_table_is_saved_and_restored(void **state)
{
    struct world before, after;
    char prefix[FOLDER_PATH_MAX];
    open_parts(&before, 2);
    open_parts(&after, 3);
    save_shards(before.shards, before.tables, before.parts, *state, prefix);
    if (restore(&after, prefix, NULL)) fail_msg("%s", error_text());
    for (int part = 0; part < 3; part++) assert_int_equal(table_made(after.tables[part].rows), 0);
    world_close(&before);
    world_close(&after);
}

/* ---- what is refused ---- */

struct made {
    int64_t keys[2][3]; /* of one part each */
    int64_t key_rows, columns, rows, width;
    bool has_slots;
    const char *words;
};

static void add(struct bundle_writer *writer, const char *name, int dtype, int64_t rows,
                int64_t columns, const void *at)
{
    const struct bundle_piece piece = {
        .name = name, .dtype = dtype, .shape = {.rank = 2, .dim = {rows, columns}}};
    assert_int_equal(bundle_add(writer, &piece, at), OK);
}

static void write_made(const struct made *m, const char *prefix)
{
    static const float zeros[16];
    const int64_t step = STEP;
    const struct bundle_piece global = {.name = "global_step", .dtype = BUNDLE_INT64};
    struct bundle_writer *writer;
    char name[64];
    assert_int_equal(bundle_create(prefix, &writer), OK);
    assert_int_equal(bundle_add(writer, &global, &step), OK);
    for (int part = 0; part < 2; part++) {
        snprintf(name, sizeof name, "words/part_%05d/keys", part);
        add(writer, name, BUNDLE_INT64, m->key_rows, m->columns, m->keys[part]);
        snprintf(name, sizeof name, "words/part_%05d/rows", part);
        add(writer, name, BUNDLE_FLOAT, m->rows, m->width, zeros);
        snprintf(name, sizeof name, "words/Adagrad/part_%05d/rows", part);
        if (m->has_slots) add(writer, name, BUNDLE_FLOAT, m->rows, m->width, zeros);
    }
    assert_int_equal(bundle_finish(writer), OK);
}

/* Two ids in the order of their keys */
static void two_ids(int64_t ret[2])
{
    const bool is_up = key_of_id(1) < key_of_id(2);
    ret[0] = is_up ? 1 : 2;
    ret[1] = is_up ? 2 : 1;
}

static void what_cannot_be_is_refused(void **state)
{
    int64_t id[2];
    two_ids(id);
    const struct made all[] = {
        {{{id[0], 0, 1}, {id[1], 0, 1}}, 1, 3, 1, WIDTH, true, ""},
        {{{id[0], 0, 1}, {id[0], 0, 1}}, 1, 3, 1, WIDTH, true, "not in the order of their keys"},
        {{{id[1], 0, 1}, {id[0], 0, 1}}, 1, 3, 1, WIDTH, true, "not in the order of their keys"},
        {{{-1, 0, 1}, {id[1], 0, 1}}, 1, 3, 1, WIDTH, true, "a number that cannot be there"},
        {{{ANY_ID, 0, 1}, {id[1], 0, 1}}, 1, 3, 1, WIDTH, true, "a number that cannot be there"},
        {{{id[0], -1, 1}, {id[1], 0, 1}}, 1, 3, 1, WIDTH, true, "a number that cannot be there"},
        {{{id[0], INT64_C(1) << 31, 1}, {id[1], 0, 1}}, 1, 3, 1, WIDTH, true, "cannot be there"},
        {{{id[0], 0, -1}, {id[1], 0, 1}}, 1, 3, 1, WIDTH, true, "a number that cannot be there"},
        {{{id[0], 0, 1}, {id[1], 0, 1}}, 1, 2, 1, WIDTH, true, "keys are int64 [ids, 3]"},
        {{{id[0], 0, 1}, {id[1], 0, 1}}, 1, 3, 2, WIDTH, true, "expected 1 rows of 3 numbers"},
        {{{id[0], 1, 1}, {id[1], 0, 1}}, 1, 3, 1, WIDTH, true, "expected 0 rows of 3 numbers"},
        {{{id[0], 0, 1}, {id[1], 0, 1}}, 1, 3, 1, 4, true, "expected 1 rows of 3 numbers"},
        {{{id[0], 0, 1}, {id[1], 0, 1}},
         1,
         3,
         1,
         WIDTH,
         false,
         "no \"words/Adagrad/part_00000/rows\""},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct world w;
        open_parts(&w, 1);
        write_made(&all[i], folder_path(*state, "made"));
        const err e = restore(&w, folder_path(*state, "made"), NULL);
        assert_int_equal(e, i ? ERR_INPUT : OK);
        if (i && !strstr(error_text(), all[i].words))
            fail_msg("\"%s\" lacks \"%s\"", error_text(), all[i].words);
        world_close(&w);
    }
}

static void a_table_that_is_not_there_is_named(void **state)
{
    struct world before, after;
    char prefix[FOLDER_PATH_MAX];
    open_parts(&before, 1);
    open_parts(&after, 1);
    save_shards(before.shards, before.tables, before.parts, *state, prefix);
    after.slices[0].name = "other";
    assert_int_equal(restore(&after, prefix, NULL), ERR_INPUT);
    assert_non_null(strstr(error_text(), "no \"other/part_00000/keys\""));
    world_close(&before);
    world_close(&after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(any_number_of_ps_reads_what_any_other_wrote),
        IN_FOLDER(an_index_is_made_once_for_all_keys_of_a_checkpoint_or_a_push),
        IN_FOLDER(a_warm_start_finds_a_table_by_its_map),
        IN_FOLDER(an_empty_table_is_saved_and_restored),
        IN_FOLDER(what_cannot_be_is_refused),
        IN_FOLDER(a_table_that_is_not_there_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
