/* test_shard_parts.c - tables whose ids go to parts by turns, in checkpoints: any cut reads what
 * any other wrote, rows are picked by their ids, and what is no such table is refused. */
#include "tests/core/train/fixture.h"

#include <stdio.h>
#include <string.h>

#include "core/train/checkpoint/shard_inside.h"
#include "core/train/variables/mod.h"
#include "core/train/variables/place.h"
#include "tests/core/train/checkpoint/tables/save.h"

enum { WIDTH = 3, ROWS = 23, PARTS_MAX = 4, STEP = 9, ARRAYS = 2 };

static err begin_with_zeros(const void *attributes, const struct initial *of, float *ret_values)
{
    memset(ret_values, 0, (size_t)of->count * sizeof *ret_values);
    return OK;
}
static const struct initializer zeros = {.object = {"zeros"}, .fill = begin_with_zeros};

/* by_turns: "mod", else "div"; one part is both. */
static void open_parts(struct world *w, int parts, bool by_turns)
{
    world_open(w, parts, by_turns && parts > 1 ? parts : 0);
    for (int part = 0; part < parts; part++) {
        const int64_t start = partition_start(ROWS, parts, part);
        const int64_t length = partition_start(ROWS, parts, part + 1) - start;
        const struct slice slice = {
            .name = "users",
            .shape = {2, {ROWS, WIDTH}},
            .start = start,
            .length = length,
            .count = length * WIDTH,
            .mod = w->mod,
            .part = part,
            .parts = parts,
        };
        world_open_part(w, &slice, &zeros, NULL, STEP);
    }
}

static float number(int array, int64_t id, int column)
{
    return (float)(array * 1000 + id * 10 + column + 1);
}

static void fill(struct world *w)
{
    float row[WIDTH];
    for (int part = 0; part < w->parts; part++)
        for (int64_t i = 0; i < w->slices[part].length * ARRAYS; i++) {
            const int64_t at = w->slices[part].start + i / ARRAYS;
            const int array = (int)(i % ARRAYS);
            for (int c = 0; c < WIDTH; c++)
                row[c] = number(array, mod_id_of_row(ROWS, w->mod, at), c);
            table_write(w->tables[part].rows, array, at, 1, row);
        }
}

static void save_filled(const char *folder, int parts, bool by_turns, char prefix[FOLDER_PATH_MAX])
{
    struct world w;
    open_parts(&w, parts, by_turns);
    fill(&w);
    save_shards(w.shards, w.tables, w.parts, folder, prefix);
    world_close(&w);
}

static err restore(struct world *w, const char *prefix, const struct warm_start *warm)
{
    struct bundle *bundle;
    err e = bundle_open(prefix, &bundle);
    if (e) return e;
    for (int part = 0; part < w->parts && !e; part++)
        e = shard_read(bundle, warm, &w->shards[part]);
    bundle_close(bundle);
    return e;
}

static void assert_filled(const struct world *w, int arrays)
{
    float row[WIDTH];
    for (int64_t id = 0; id < ROWS; id++) {
        const int64_t at = mod_row_of_id(ROWS, w->mod, id);
        for (int part = 0; part < w->parts; part++) {
            const struct slice *slice = &w->slices[part];
            if (at < slice->start || at >= slice->start + slice->length) continue;
            for (int array = 0; array < arrays; array++) {
                table_read(w->tables[part].rows, array, at, 1, row);
                for (int c = 0; c < WIDTH; c++) assert_true(row[c] == number(array, id, c));
            }
        }
    }
}

/* ---- what is there ---- */

static void any_cut_reads_what_any_other_wrote(void **state)
{
    for (int from = 0; from < 2 * PARTS_MAX; from++)
        for (int to = 0; to < 2 * PARTS_MAX; to++) {
            struct world after;
            char prefix[FOLDER_PATH_MAX];
            save_filled(*state, 1 + from / 2, from % 2, prefix);
            open_parts(&after, 1 + to / 2, to % 2);
            if (restore(&after, prefix, NULL)) fail_msg("%s", error_text());
            assert_filled(&after, ARRAYS);
            assert_int_equal(after.shards[0].global_step, STEP);
            world_close(&after);
        }
}

static void each_part_is_a_tensor_by_itself(void **state)
{
    static const char *const slots[ARRAYS] = {NULL, "Adagrad"};
    char prefix[FOLDER_PATH_MAX], name[BUNDLE_NAME_MAX];
    struct bundle *bundle;
    save_filled(*state, 3, true, prefix);
    assert_int_equal(bundle_open(prefix, &bundle), OK);
    for (int i = 0; i < ARRAYS * 3; i++) {
        assert_int_equal(shard_part_name("users", i / ARRAYS, slots[i % ARRAYS], name), OK);
        const struct bundle_entry *entry = bundle_find(bundle, name);
        assert_non_null(entry);
        assert_int_equal(entry->slice_count, 0);
        assert_int_equal(entry->shape.dim[0], i / ARRAYS < 2 ? 8 : 7); /* of 23 ids */
    }
    assert_non_null(bundle_find(bundle, "users/part_2/Adagrad"));
    assert_null(bundle_find(bundle, "users"));
    assert_int_equal(shard_parts_there(bundle, "users", NULL), 3);
    assert_int_equal(shard_parts_there(bundle, "users", "Adagrad"), 3);
    assert_int_equal(shard_parts_there(bundle, "users", "Momentum"), 0);
    bundle_close(bundle);
}

static void rows_are_picked_by_their_ids(void **state)
{
    static const int64_t ids[] = {0, 1, 2, 7, 8, 21, 22};
    enum { COUNT = sizeof ids / sizeof *ids };
    for (int from = 0; from < 2 * PARTS_MAX; from++) {
        struct world w;
        struct bundle *bundle;
        struct shard_source source;
        char prefix[FOLDER_PATH_MAX];
        float got[COUNT * WIDTH];
        save_filled(*state, 1 + from / 2, from % 2, prefix);
        open_parts(&w, 1, false);
        assert_int_equal(bundle_open(prefix, &bundle), OK);
        if (shard_find_values(bundle, &w.slices[0], &source)) fail_msg("%s", error_text());
        assert_int_equal(source.parts, from % 2 ? 1 + from / 2 : 1);
        assert_int_equal(shard_pick_rows(bundle, &source, ids, COUNT, WIDTH, got), OK);
        for (int i = 0; i < COUNT * WIDTH; i++)
            assert_true(got[i] == number(0, ids[i / WIDTH], i % WIDTH));
        assert_int_equal(shard_pick_rows(bundle, &source, ids, 0, WIDTH, got), OK);
        bundle_close(bundle);
        world_close(&w);
    }
}

static void a_warm_start_finds_parts_by_its_map(void **state)
{
    static const struct name_map map = {"users", "people"};
    for (int slots = 0; slots < 2; slots++) {
        const struct warm_start warm = {.maps = &map, .map_count = 1, .slots = slots};
        struct world after;
        char prefix[FOLDER_PATH_MAX];
        float slot[WIDTH];
        save_filled(*state, 4, true, prefix);
        open_parts(&after, 2, true);
        for (int part = 0; part < 2; part++) after.slices[part].name = "people";
        if (restore(&after, prefix, &warm)) fail_msg("%s", error_text());
        assert_filled(&after, 1 + slots);
        table_read(after.tables[0].rows, 1, 0, 1, slot);
        assert_true((slot[0] == number(1, 0, 0)) == slots);
        world_close(&after);
    }
}

/* ---- what is refused ---- */

/* A checkpoint of some parts; `rows` of each, 0: it is not there. */
enum { NO_ROWS = -1 };
struct made {
    int64_t rows[3];
    int dtype, rank;
    int64_t width;
    const char *words;
};

static void write_made(const struct made *m, const char *prefix)
{
    static const double elements[ROWS * (WIDTH + 1)];
    const int64_t step = STEP;
    const struct bundle_piece global = {.name = "global_step", .dtype = BUNDLE_INT64};
    struct bundle_writer *writer;
    char name[BUNDLE_NAME_MAX];
    assert_int_equal(bundle_create(prefix, &writer), OK);
    assert_int_equal(bundle_add(writer, &global, &step), OK);
    for (int i = 0; i < ARRAYS * 3; i++) {
        const int64_t rows = m->rows[i / ARRAYS];
        const struct bundle_piece piece = {
            .name = name, .dtype = m->dtype, .shape = {m->rank, {rows < 0 ? 0 : rows, m->width}}};
        assert_int_equal(shard_part_name("users", i / ARRAYS, i % ARRAYS ? "Adagrad" : NULL, name),
                         OK);
        if (rows) assert_int_equal(bundle_add(writer, &piece, elements), OK);
    }
    assert_int_equal(bundle_finish(writer), OK);
}

static void what_is_no_such_table_is_refused(void **state)
{
    static const struct made all[] = {
        {{8, 8, 7}, BUNDLE_FLOAT, 2, WIDTH, NULL},
        {{12, 11, 0}, BUNDLE_FLOAT, 2, WIDTH, NULL},
        {{8, 0, 7}, BUNDLE_FLOAT, 2, WIDTH, "by turns to 1 parts, part 0 is 23 x 3 floats"},
        {{8, 8, 0}, BUNDLE_FLOAT, 2, WIDTH, "by turns to 2 parts, part 0 is 12 x 3 floats"},
        {{8, 7, 8}, BUNDLE_FLOAT, 2, WIDTH, "users/part_1: of a table of 23 rows"},
        {{0, 8, 7}, BUNDLE_FLOAT, 2, WIDTH, "no variable \"users\""},
        {{8, 8, 7}, BUNDLE_FLOAT, 2, WIDTH + 1, "part 0 is 8 x 3 floats"},
        {{8, 8, 7}, BUNDLE_FLOAT, 1, 0, "part 0 is 8 x 3 floats"},
        {{8, 8, 7}, BUNDLE_DOUBLE, 2, WIDTH, "part 0 is 8 x 3 floats"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct world w;
        const char *prefix = folder_path(*state, "made");
        open_parts(&w, 2, i % 2);
        write_made(&all[i], prefix);
        assert_int_equal(restore(&w, prefix, NULL), all[i].words ? ERR_INPUT : OK);
        if (all[i].words && !strstr(error_text(), all[i].words))
            fail_msg("\"%s\" lacks \"%s\"", error_text(), all[i].words);
        if (all[i].words) assert_non_null(strstr(error_text(), prefix));
        world_close(&w);
    }
}

/* More parts than a table has rows: some are empty, which nobody writes. */
static void parts_beyond_the_rows_are_refused(void **state)
{
    const struct made made = {{1, 1, NO_ROWS}, BUNDLE_FLOAT, 2, WIDTH, NULL};
    const struct bundle_shape two_rows = {2, {2, WIDTH}};
    struct bundle *bundle;
    write_made(&made, folder_path(*state, "made"));
    assert_int_equal(bundle_open(folder_path(*state, "made"), &bundle), OK);
    const struct shard_source source = {.variable = "users", .parts = 3};
    assert_int_equal(shard_check_parts(bundle, &source, &two_rows), ERR_INPUT);
    assert_non_null(strstr(error_text(), "part 2 is 0 x 3 floats"));
    bundle_close(bundle);
}

static void a_part_that_is_damaged_is_found_before_rows_are_picked(void **state)
{
    struct world w;
    struct bundle *bundle;
    struct shard_source source;
    char prefix[FOLDER_PATH_MAX], data[2 * FOLDER_PATH_MAX];
    save_filled(*state, 3, true, prefix);
    snprintf(data, sizeof data, "%s.data-00002-of-00003", prefix); /* of the last part */
    FILE *file = fopen(data, "r+b");
    assert_non_null(file);
    assert_int_equal(fputc('!', file), '!');
    assert_int_equal(fclose(file), 0);
    open_parts(&w, 1, false);
    assert_int_equal(bundle_open(prefix, &bundle), OK);
    assert_int_equal(shard_find_values(bundle, &w.slices[0], &source), ERR_INPUT);
    assert_non_null(strstr(error_text(), "users/part_2"));
    bundle_close(bundle);
    assert_int_equal(restore(&w, prefix, NULL), ERR_INPUT);
    world_close(&w);
}

static void a_name_that_is_too_long_is_refused(void **state)
{
    char variable[BUNDLE_NAME_MAX], name[BUNDLE_NAME_MAX];
    memset(variable, 'v', sizeof variable);
    variable[BUNDLE_NAME_MAX - sizeof "/part_3/Adagrad"] = '\0';
    assert_int_equal(shard_part_name(variable, 3, "Adagrad", name), OK);
    assert_int_equal(strlen(name), BUNDLE_NAME_MAX - 1);
    assert_int_equal(shard_part_name(variable, 10, "Adagrad", name), ERR_INPUT);
    assert_non_null(strstr(error_text(), "a name of 4096 characters"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(any_cut_reads_what_any_other_wrote),
        IN_FOLDER(each_part_is_a_tensor_by_itself),
        IN_FOLDER(rows_are_picked_by_their_ids),
        IN_FOLDER(a_warm_start_finds_parts_by_its_map),
        IN_FOLDER(what_is_no_such_table_is_refused),
        IN_FOLDER(parts_beyond_the_rows_are_refused),
        IN_FOLDER(a_part_that_is_damaged_is_found_before_rows_are_picked),
        cmocka_unit_test(a_name_that_is_too_long_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
