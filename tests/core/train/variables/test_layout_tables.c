/* test_layout_tables.c - where tables lie: cut along their rows, and beside the blocks. */
#include "tests/core/train/fixture.h"

#include "core/train/variables/growing/keys.h"
#include "core/train/variables/mod.h"

#include <stdlib.h>
#include <string.h>

enum { VARIABLES = 4, MEGABYTE_ROWS = (1 << 20) / sizeof(float) / 8 };

static const struct table_spec table = {.key = 1, .most = 10};

static const struct variable mixed[VARIABLES] = {
    {"small/table", {2, {100, 8}}, &table},
    {"dense/kernel", {2, {300, 4}}, NULL},
    {"large/table", {2, {MEGABYTE_ROWS, 8}}, &table},
    {"dense/bias", {1, {4}}, NULL},
};

struct world {
    struct arena arena;
    struct layout *layout;
};

static void open_world(struct world *w, const char *placement, int ps_count)
{
    *w = (struct world){0};
    const struct placement_spec spec = fixture_placement(placement, &w->arena);
    if (layout_make(&spec, mixed, VARIABLES, ps_count, &w->arena, &w->layout))
        fail_msg("%s", error_text());
}

static int parts_of(const struct layout *layout, int variable)
{
    int count = 0;
    for (int i = 0; i < layout->all_count; i++) count += layout->slices[i].variable == variable;
    return count;
}

/* Dense ones in front, tables behind them, each by variable and part. */
static void check_order(const struct layout *layout)
{
    for (int i = 0; i < layout->all_count; i++) {
        const struct slice *s = &layout->slices[i], *before = s - 1;
        assert_int_equal(mixed[s->variable].table != NULL, i >= layout->slice_count);
        assert_string_equal(s->name, mixed[s->variable].name);
        if (i == 0 || i == layout->slice_count) continue;
        assert_true(before->variable < s->variable ||
                    (before->variable == s->variable && before->part + 1 == s->part));
    }
}

/* All rows of a table, each once, by parts. */
static void check_rows(const struct layout *layout)
{
    int64_t next = 0;
    for (int i = layout->slice_count; i < layout->all_count; i++) {
        const struct slice *s = &layout->slices[i];
        if (s->part == 0) next = 0;
        assert_int_equal(s->axis, 0);
        assert_int_equal(s->start, next);
        assert_true(s->length > 0 && s->ps >= 0 && s->ps < layout->ps_count);
        assert_int_equal(s->count, s->length * s->shape.dim[1]);
        next += s->length;
        if (s->part + 1 == s->parts) assert_int_equal(next, s->shape.dim[0]);
    }
}

/* What blocks hold are the dense slices, and an empty one is there only where nothing is. */
static void check_blocks(const struct layout *layout)
{
    for (int ps = 0; ps < layout->ps_count; ps++) {
        int64_t floats = 0;
        bool has_any = false;
        for (int i = 0; i < layout->all_count; i++) {
            const struct slice *s = &layout->slices[i];
            has_any |= s->ps == ps;
            if (s->ps == ps && i < layout->slice_count)
                floats += (s->count + LAYOUT_ALIGN - 1) / LAYOUT_ALIGN * LAYOUT_ALIGN;
        }
        if (has_any && floats == 0) floats = LAYOUT_ALIGN;
        assert_int_equal(layout->block_floats[ps], floats);
    }
}

static void close_world(struct world *w)
{
    check_order(w->layout);
    check_rows(w->layout);
    check_blocks(w->layout);
    arena_free(&w->arena);
}

static const char nothing[] = "{\"placement\": {}}";

/* Or over as many as it has quarters of a megabyte for. */
static void a_table_from_a_megabyte_on_is_cut_over_all_ps(void **state)
{
    for (int ps_count = 1; ps_count <= 5; ps_count++) {
        struct world w;
        open_world(&w, nothing, ps_count);
        assert_int_equal(parts_of(w.layout, 0), 1);
        assert_int_equal(parts_of(w.layout, 1), 1);
        assert_int_equal(parts_of(w.layout, 2), ps_count < 4 ? ps_count : 4);
        assert_int_equal(w.layout->slice_count, 2);
        close_world(&w);
    }
}

static void a_table_of_less_stays_whole(void **state)
{
    struct arena arena = {0};
    const struct variable one = {"table", {2, {MEGABYTE_ROWS - 1, 8}}, &table};
    const struct placement_spec spec = fixture_placement(nothing, &arena);
    struct layout *layout;
    assert_int_equal(layout_make(&spec, &one, 1, 3, &arena, &layout), OK);
    assert_int_equal(layout->all_count, 1);
    arena_free(&arena);
}

static void a_pin_holds_a_table_together(void **state)
{
    struct world w;
    open_world(&w, "{\"placement\": {\"pins\": [{\"match\": \"large/*\", \"ps\": 2}]}}", 3);
    assert_int_equal(parts_of(w.layout, 2), 1);
    assert_int_equal(w.layout->slices[w.layout->all_count - 1].ps, 2);
    close_world(&w);
}

/* Whatever a partitioner makes of others: nobody knows how many rows it will have. */
static void a_table_that_grows_is_cut_along_its_keys(void **state)
{
    static const struct growth growth = {1, 0};
    static const struct table_spec grows = {.key = 1, .most = 10, .growth = &growth};
    const struct variable one = {"table", {2, {1, 8}}, &grows};
    const char *const texts[] = {
        nothing,
        "{\"placement\": {\"partitioner\": {\"type\": \"fixed_size\", \"num_shards\": 7}}}",
        "{\"placement\": {\"pins\": [{\"match\": \"table\", \"ps\": 0}]}}",
    };
    for (int ps_count = 1; ps_count <= 5; ps_count++) {
        for (int i = 0; i < 3; i++) {
            struct arena arena = {0};
            struct layout *layout;
            const struct placement_spec spec = fixture_placement(texts[i], &arena);
            assert_int_equal(layout_make(&spec, &one, 1, ps_count, &arena, &layout), OK);
            assert_int_equal(layout->all_count, i < 2 ? ps_count : 1);
            int64_t next = 0;
            for (int part = 0; part < layout->all_count; part++) {
                assert_int_equal(layout->slices[part].start, next);
                assert_int_equal(layout->slices[part].count, 8);
                next += layout->slices[part].length;
            }
            assert_true(next == KEYS);
            arena_free(&arena);
        }
    }
}

static void a_partitioner_cuts_tables_as_it_cuts_others(void **state)
{
    struct world w;
    open_world(
        &w, "{\"placement\": {\"partitioner\": {\"type\": \"fixed_size\", \"num_shards\": 3}}}", 2);
    for (int i = 0; i < VARIABLES; i++) assert_int_equal(parts_of(w.layout, i), 3);
    close_world(&w);
}

/* Whatever the numbers: id i is row i / parts of part i mod parts. */
static void ids_that_go_by_turns_are_where_tensorflow_has_them(void **state)
{
    for (int64_t rows = 1; rows < 30; rows++)
        for (int64_t parts = 1; parts <= rows; parts++)
            for (int64_t id = 0, row; id < rows; id++) {
                const int64_t part = id % parts, more = part < rows % parts ? part : rows % parts;
                row = mod_row_of_id(rows, parts, id);
                assert_int_equal(row, rows / parts * part + more + id / parts);
                assert_int_equal(mod_id_of_row(rows, parts, row), id);
            }
}

/* One column names the small table and the large one, which alone would have other numbers of
 * parts; those that grow and dense ones are cut as ever. */
static void tables_of_a_column_are_cut_by_turns_alike(void **state)
{
    static const struct growth growth = {1, 0};
    static const struct table_spec grows = {.key = 1, .most = 10, .growth = &growth};
    static const struct table_spec other = {.key = 1, .most = 10, .column = 1};
    const struct variable four[] = {
        {"deep", {2, {MEGABYTE_ROWS, 8}}, &table},
        {"wide", {2, {MEGABYTE_ROWS, 1}}, &table},
        {"other", {2, {MEGABYTE_ROWS, 1}}, &other},
        {"grows", {2, {1, 8}}, &grows},
    };
    static const int mods[] = {3, 3, 0, 0};
    struct arena arena = {0};
    struct layout *layout;
    const struct placement_spec spec =
        fixture_placement("{\"placement\": {\"partition_strategy\": \"mod\"}}", &arena);
    assert_int_equal(layout_make(&spec, four, 4, 3, &arena, &layout), OK);
    for (int i = 0; i < layout->all_count; i++)
        assert_int_equal(layout->slices[i].mod, mods[layout->slices[i].variable]);
    for (int i = 0; i < 2; i++) assert_int_equal(parts_of(layout, i), 3);
    assert_int_equal(parts_of(layout, 2), 1);
    assert_int_equal(parts_of(layout, 3), 3);
    arena_free(&arena);
}

/* Rows are what a ps keeps: no cut goes through one. */
static void no_partitioner_cuts_through_rows(void **state)
{
    struct world w;
    open_world(&w,
               "{\"placement\": {\"partitioner\": {\"type\": \"fixed_size\", \"num_shards\": 2, "
               "\"axis\": 1}}}",
               2);
    assert_int_equal(parts_of(w.layout, 0), 1);
    assert_int_equal(parts_of(w.layout, 1), 2);
    assert_int_equal(parts_of(w.layout, 2), 1);
    close_world(&w);
}

static void what_balances_cuts_large_tables_at_once(void **state)
{
    struct world w;
    open_world(&w, "{\"placement\": {\"partitioner\": {\"type\": \"balanced\"}}}", 3);
    assert_int_equal(parts_of(w.layout, 0), 1);
    assert_int_equal(parts_of(w.layout, 2), 3);
    assert_int_equal(w.layout->balanced_count, 0);
    close_world(&w);
}

static int ps_of(const struct layout *layout, int variable)
{
    for (int i = 0; i < layout->all_count; i++)
        if (layout->slices[i].variable == variable) return layout->slices[i].ps;
    return -1;
}

/* In the order of creation, dense ones and tables together: 3200 bytes, 4800, a megabyte, 16; the
 * global step's 8 bytes come before. */
static void greedy_counts_the_bytes_of_tables(void **state)
{
    struct world w;
    open_world(&w,
               "{\"placement\": {\"strategy\": \"greedy\", \"pins\": [{\"match\": "
               "\"large/table\", \"ps\": 0}]}}",
               2);
    assert_int_equal(ps_of(w.layout, 0), 1);
    assert_int_equal(ps_of(w.layout, 1), 1);
    assert_int_equal(ps_of(w.layout, 3), 1);
    assert_int_equal(w.layout->ps_bytes[0], 1 << 20);
    assert_int_equal(w.layout->ps_bytes[1], 3200 + 4800 + 16);
    close_world(&w);
}

static void a_ps_with_tables_only_has_a_block(void **state)
{
    struct world w;
    open_world(&w,
               "{\"placement\": {\"pins\": [{\"match\": \"*/table\", \"ps\": 1}, {\"match\": "
               "\"dense/*\", \"ps\": 0}]}}",
               3);
    assert_int_equal(w.layout->block_floats[1], LAYOUT_ALIGN);
    assert_int_equal(w.layout->block_floats[2], 0);
    close_world(&w);
}

static void a_model_of_tables_only_has_no_dense_slices(void **state)
{
    struct arena arena = {0};
    const struct placement_spec spec = fixture_placement(nothing, &arena);
    const struct variable two[] = {mixed[0], mixed[2]};
    struct layout *layout;
    assert_int_equal(layout_make(&spec, two, 2, 2, &arena, &layout), OK);
    assert_int_equal(layout->slice_count, 0);
    assert_int_equal(layout->all_count, 3);
    for (int ps = 0; ps < 2; ps++) assert_int_equal(layout->block_floats[ps], LAYOUT_ALIGN);
    arena_free(&arena);
}

static void copies_leave_tables_out(void **state)
{
    struct world w;
    const struct slice *slice = NULL;
    open_world(&w, nothing, 2);
    assert_false(layout_is_whole(w.layout, 0, NULL));
    assert_false(layout_is_whole(w.layout, 2, &slice));
    assert_true(layout_is_whole(w.layout, 1, &slice));
    assert_string_equal(slice->name, "dense/kernel");
    assert_true(layout_is_whole(w.layout, 3, &slice));
    assert_string_equal(slice->name, "dense/bias");
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_from_a_megabyte_on_is_cut_over_all_ps),
        cmocka_unit_test(a_table_of_less_stays_whole),
        cmocka_unit_test(a_pin_holds_a_table_together),
        cmocka_unit_test(a_table_that_grows_is_cut_along_its_keys),
        cmocka_unit_test(a_partitioner_cuts_tables_as_it_cuts_others),
        cmocka_unit_test(ids_that_go_by_turns_are_where_tensorflow_has_them),
        cmocka_unit_test(tables_of_a_column_are_cut_by_turns_alike),
        cmocka_unit_test(no_partitioner_cuts_through_rows),
        cmocka_unit_test(what_balances_cuts_large_tables_at_once),
        cmocka_unit_test(greedy_counts_the_bytes_of_tables),
        cmocka_unit_test(a_ps_with_tables_only_has_a_block),
        cmocka_unit_test(a_model_of_tables_only_has_no_dense_slices),
        cmocka_unit_test(copies_leave_tables_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
