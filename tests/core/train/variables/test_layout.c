/* test_layout.c - placement against TensorFlow's, and copies between variables and blocks. */
#include "tests/core/train/fixture.h"

#include <stdlib.h>
#include <string.h>

#include "core/train/variables/place.h"

enum { VARIABLES_MAX = 32, BLOCK_MAX = 4096, WHOLE_MAX = 512 };

static int64_t integer_at(const json_t *array, size_t index)
{
    return json_integer_value(json_array_get(array, index));
}

static struct shape shape_of(const json_t *dims)
{
    struct shape shape = {.rank = (int)json_array_size(dims)};
    for (int i = 0; i < shape.rank; i++) shape.dim[i] = integer_at(dims, (size_t)i);
    return shape;
}

static struct placement_spec strategy_of(const char *strategy, struct arena *arena)
{
    char text[128];
    snprintf(text, sizeof text, "{\"placement\": {\"strategy\": \"%s\"}}", strategy);
    return fixture_placement(text, arena);
}

/* TensorFlow's strategies against the rule alone: any list of variables. */
static void place_one_by_one(json_t *test, const char *strategy)
{
    struct arena arena = {0};
    const struct placement_spec spec = strategy_of(strategy, &arena);
    const int ps_count = (int)json_integer_value(json_object_get(test, "ps"));
    struct placer placer = placer_make((enum placement_strategy)spec.strategy, ps_count, &arena);
    size_t i;
    json_t *variable;
    json_array_foreach(json_object_get(test, "variables"), i, variable)
    {
        const int64_t bytes = json_integer_value(json_object_get(variable, "bytes"));
        assert_int_equal(placer_take(&placer, bytes),
                         integer_at(json_object_get(test, strategy), i));
    }
    arena_free(&arena);
}

/* And against the whole layout, which puts the global step first by itself. */
static void place_together(json_t *test, const char *strategy)
{
    struct arena arena = {0};
    json_t *list = json_object_get(test, "variables"), *wanted = json_object_get(test, strategy);
    const int count = (int)json_array_size(list) - 1;
    struct variable variables[VARIABLES_MAX] = {0};
    for (int i = 0; i < count; i++) {
        json_t *variable = json_array_get(list, (size_t)i + 1);
        variables[i].name = json_string_value(json_object_get(variable, "name"));
        variables[i].shape = shape_of(json_object_get(variable, "shape"));
    }
    const struct placement_spec spec = strategy_of(strategy, &arena);
    const int ps_count = (int)json_integer_value(json_object_get(test, "ps"));
    struct layout *layout;
    assert_int_equal(layout_make(&spec, variables, count, ps_count, &arena, &layout), OK);
    assert_int_equal(layout->slice_count, count);
    for (int i = 0; i < count; i++) {
        assert_int_equal(layout->slices[i].ps, integer_at(wanted, (size_t)i + 1));
    }
    arena_free(&arena);
}

static bool starts_with_global_step(json_t *test)
{
    const json_t *first = json_array_get(json_object_get(test, "variables"), 0);
    return strcmp(json_string_value(json_object_get(first, "name")), "global_step") == 0;
}

static void every_variable_goes_where_tensorflow_puts_it(void **state)
{
    json_t *fixture = fixture_load("placement.json");
    static const char *const strategies[] = {"round_robin", "greedy"};
    size_t i;
    json_t *test;
    int together = 0;
    json_array_foreach(json_object_get(fixture, "cases"), i, test)
    {
        for (int j = 0; j < 2; j++) {
            place_one_by_one(test, strategies[j]);
            if (!starts_with_global_step(test)) continue;
            place_together(test, strategies[j]);
            together++;
        }
    }
    assert_int_equal(i, 8);
    assert_int_equal(together, 8);
    json_decref(fixture);
}

/* The fixture's arguments: see n in make_fixtures, 1 MiB shards and 256 KiB slices. */
static struct placement_spec partitioner_of(const char *type, int n, struct arena *arena)
{
    char text[256];
    const char *count = "num_shards", *more = "";
    if (strcmp(type, "variable_axis_size") == 0) {
        count = "max_shards";
        more = ", \"max_shard_bytes\": 1048576";
    } else if (strcmp(type, "min_max_variable") == 0) {
        count = "max_partitions";
    }
    snprintf(text, sizeof text,
             "{\"placement\": {\"partitioner\": {\"type\": \"%s\", \"%s\": %d%s}}}", type, count, n,
             more);
    return fixture_placement(text, arena);
}

static void every_variable_is_cut_as_tensorflow_cuts_it(void **state)
{
    json_t *fixture = fixture_load("placement.json");
    size_t i;
    json_t *test;
    json_array_foreach(json_object_get(fixture, "partitioners"), i, test)
    {
        struct arena arena = {0};
        const struct shape shape = shape_of(json_object_get(test, "shape"));
        const struct placement_spec spec =
            partitioner_of(json_string_value(json_object_get(test, "partitioner")),
                           (int)json_integer_value(json_object_get(test, "n")), &arena);
        const struct partition partition = partition_of(&spec.partitioner, &shape);
        assert_int_equal(partition.axis, 0);
        assert_int_equal(partition.parts, integer_at(json_object_get(test, "partitions"), 0));
        arena_free(&arena);
    }
    assert_int_equal(i, 45);
    json_decref(fixture);
}

static void rows_are_cut_evenly_the_first_parts_one_row_longer(void **state)
{
    const int64_t wanted[] = {0, 3, 6, 9, 11, 13}; /* 13 rows in 5 parts */
    for (int part = 0; part <= 5; part++) {
        assert_int_equal(partition_start(13, 5, part), wanted[part]);
    }
}

/* Slices, blocks and copies */

struct world {
    struct arena arena;
    struct layout *layout;
    float *blocks[8]; /* BLOCK_MAX floats each */
    float whole[WHOLE_MAX], again[WHOLE_MAX];
};

static const struct variable three[] = {
    {"a", {.rank = 3, .dim = {5, 7, 3}}},
    {"b", {.rank = 1, .dim = {7}}},
    {"c", {.rank = 0}},
};

static void open_world(struct world *world, const char *placement, int ps_count)
{
    *world = (struct world){0};
    const struct placement_spec spec = fixture_placement(placement, &world->arena);
    if (layout_make(&spec, three, 3, ps_count, &world->arena, &world->layout) != OK) {
        fail_msg("%s", error_text());
    }
    for (int i = 0; i < ps_count; i++) world->blocks[i] = calloc(BLOCK_MAX, sizeof(float));
}

static void close_world(struct world *world)
{
    for (int i = 0; i < 8; i++) free(world->blocks[i]);
    arena_free(&world->arena);
}

static void slices_lie_last_created_first_and_do_not_touch(void **state)
{
    struct world world;
    open_world(&world,
               "{\"placement\": {\"partitioner\": {\"type\": \"fixed_size\", "
               "\"num_shards\": 3}}}",
               2);
    const struct layout *layout = world.layout;
    int64_t end[2] = {0, 0}, bytes[2] = {0, 0};
    assert_int_equal(layout->slice_count, 7);
    for (int i = layout->slice_count - 1; i >= 0; i--) {
        const struct slice *slice = &layout->slices[i];
        assert_int_equal(slice->offset % LAYOUT_ALIGN, 0);
        assert_true(slice->offset >= end[slice->ps]);
        assert_true(slice->offset < end[slice->ps] + LAYOUT_ALIGN);
        end[slice->ps] = slice->offset + slice->count;
        bytes[slice->ps] += slice->count * 4;
    }
    for (int ps = 0; ps < 2; ps++) {
        assert_int_equal(layout->block_floats[ps] % LAYOUT_ALIGN, 0);
        assert_in_range(layout->block_floats[ps] - end[ps], 0, LAYOUT_ALIGN - 1);
        assert_int_equal(layout->ps_bytes[ps], bytes[ps]);
    }
    assert_int_equal(bytes[0] + bytes[1], (105 + 7 + 1) * 4);
    close_world(&world);
}

/* Which part holds the element at `index` of the whole variable, and where: from the definition. */
static float element_in_block(const struct world *world, int variable, int64_t index)
{
    const struct shape *shape = &three[variable].shape;
    const struct slice *slice = world->layout->slices;
    while (slice->variable != variable) slice++;
    const int64_t after = shape_count_from(shape, slice->axis + 1);
    const int64_t rows = shape->rank ? shape->dim[slice->axis] : 1;
    const int64_t row = index / after % rows;
    while (row >= slice->start + slice->length) slice++;
    const int64_t before = index / after / rows;
    const int64_t inside = (before * slice->length + row - slice->start) * after + index % after;
    return world->blocks[slice->ps][slice->offset + inside];
}

static void check_copies(const char *placement, int ps_count)
{
    struct world world;
    open_world(&world, placement, ps_count);
    for (int v = 0; v < 3; v++) {
        const int64_t count = shape_count(&three[v].shape);
        for (int64_t i = 0; i < count; i++) world.whole[i] = (float)(1000 * v + i + 1);
        layout_scatter(world.layout, v, world.whole, world.blocks);
        for (int64_t i = 0; i < count; i++) {
            assert_true(element_in_block(&world, v, i) == world.whole[i]);
        }
        memset(world.again, 0, sizeof world.again);
        layout_gather(world.layout, v, (const float *const *)world.blocks, world.again);
        assert_memory_equal(world.again, world.whole, (size_t)count * sizeof(float));
        assert_true(world.again[count] == 0.0f);
    }
    int64_t filled = 0;
    for (int ps = 0; ps < ps_count; ps++) {
        for (int i = 0; i < BLOCK_MAX; i++) filled += world.blocks[ps][i] != 0.0f;
    }
    assert_int_equal(filled, 105 + 7 + 1); /* gaps stay zero */
    close_world(&world);
}

static void variables_come_back_from_their_slices_along_every_axis(void **state)
{
    char text[128];
    check_copies("{\"placement\": {}}", 1);
    check_copies("{\"placement\": {\"strategy\": \"greedy\"}}", 3);
    for (int axis = 0; axis < 4; axis++) {
        for (int parts = 1; parts <= 5; parts++) {
            snprintf(text, sizeof text,
                     "{\"placement\": {\"partitioner\": {\"type\": \"fixed_size\", \"axis\": %d, "
                     "\"num_shards\": %d}}}",
                     axis, parts);
            check_copies(text, 1 + parts % 4);
        }
    }
}

/* Each float by itself, in some order, is all of them; and nothing else is touched. */
static void a_variable_is_scattered_in_parts(void **state)
{
    struct world world;
    char text[128];
    for (int axis = 0; axis < 4; axis++) {
        snprintf(text, sizeof text,
                 "{\"placement\": {\"partitioner\": {\"type\": \"fixed_size\", \"axis\": %d, "
                 "\"num_shards\": 3}}}",
                 axis);
        open_world(&world, text, 2);
        const int64_t count = shape_count(&three[0].shape);
        for (int64_t i = 0; i < count; i++) world.whole[i] = (float)(i + 1);
        for (int64_t start = 0; start < count; start += 9) {
            const struct range part = {start, count - start < 9 ? count : start + 9};
            layout_scatter_part(world.layout, 0, world.whole, world.blocks, part);
            for (int64_t i = 0; i < count; i++)
                assert_true(element_in_block(&world, 0, i) ==
                            (i < part.end ? world.whole[i] : 0.0f));
        }
        close_world(&world);
    }
}

static void slices_of_a_ps_without_a_block_are_left_out(void **state)
{
    struct world world;
    open_world(&world,
               "{\"placement\": {\"partitioner\": {\"type\": \"fixed_size\", \"num_shards\": 2}}}",
               2);
    const int64_t count = shape_count(&three[0].shape);
    for (int64_t i = 0; i < count; i++) world.whole[i] = (float)i + 1;
    float *only_second[] = {NULL, world.blocks[1]};
    layout_scatter(world.layout, 0, world.whole, only_second);
    layout_gather(world.layout, 0, (const float *const *)world.blocks, world.again);
    for (int64_t i = 0; i < count; i++)
        assert_true(world.again[i] == 0.0f || world.again[i] == world.whole[i]);
    int64_t filled = 0, second = 0;
    for (int64_t i = 0; i < count; i++) filled += world.again[i] != 0.0f;
    for (int i = 0; i < world.layout->slice_count; i++) {
        const struct slice *slice = &world.layout->slices[i];
        if (slice->variable == 0 && slice->ps == 1) second += slice->count;
    }
    assert_true(second > 0 && second < count);
    assert_int_equal(filled, second);
    close_world(&world);
}

static void only_a_variable_of_one_slice_is_whole(void **state)
{
    struct world world;
    open_world(&world,
               "{\"placement\": {\"partitioner\": {\"type\": \"fixed_size\", "
               "\"axis\": 1, \"num_shards\": 2}}}",
               2);
    const struct slice *slice = NULL;
    assert_false(layout_is_whole(world.layout, 0, &slice));
    assert_null(slice);
    assert_true(layout_is_whole(world.layout, 1, &slice)); /* has no axis 1 */
    assert_int_equal(slice->variable, 1);
    assert_int_equal(slice->count, 7);
    close_world(&world);
}

/* Pins */

static void pins_win_and_do_not_turn_the_round_robin(void **state)
{
    struct world world;
    open_world(&world, "{\"placement\": {\"pins\": [{\"match\": \"a*\", \"ps\": 0}]}}", 3);
    assert_int_equal(world.layout->slices[0].ps, 0);
    assert_int_equal(world.layout->slices[1].ps, 1); /* the first after the global step */
    assert_int_equal(world.layout->slices[2].ps, 2);
    close_world(&world);
}

static void the_first_pin_that_matches_counts(void **state)
{
    struct world world;
    open_world(&world,
               "{\"placement\": {\"pins\": [{\"match\": \"b\", \"ps\": 2}, "
               "{\"match\": \"*\", \"ps\": 1}]}}",
               3);
    assert_int_equal(world.layout->slices[0].ps, 1);
    assert_int_equal(world.layout->slices[1].ps, 2);
    assert_int_equal(world.layout->slices[2].ps, 1);
    close_world(&world);
}

static void greedy_makes_up_for_what_is_pinned(void **state)
{
    struct world world;
    open_world(&world,
               "{\"placement\": {\"strategy\": \"greedy\", "
               "\"pins\": [{\"match\": \"a\", \"ps\": 1}]}}",
               2);
    assert_int_equal(world.layout->slices[1].ps, 0);
    assert_int_equal(world.layout->slices[2].ps, 0);
    close_world(&world);
}

static void all_parts_of_a_pinned_variable_go_to_its_ps(void **state)
{
    struct world world;
    open_world(&world,
               "{\"placement\": {\"pins\": [{\"match\": \"a\", \"ps\": 2}], "
               "\"partitioner\": {\"type\": \"fixed_size\", \"num_shards\": 2}}}",
               3);
    for (int i = 0; i < 2; i++) assert_int_equal(world.layout->slices[i].ps, 2);
    close_world(&world);
}

static void a_placement_that_cannot_be_is_refused(void **state)
{
    static const struct variable rows[] = {{"table", {.rank = 1, .dim = {1000000}}},
                                           {"kernel", {.rank = 1, .dim = {1}}}};
    static const struct {
        const char *placement, *message;
    } cases[] = {
        {"{\"placement\": {\"pins\": [{\"match\": \"*\", \"ps\": 0}, "
         "{\"match\": \"*\", \"ps\": 2}]}}",
         "placement.pins[1].ps: expected a ps from 0 to 1, got 2"},
        {"{\"placement\": {\"pins\": [{\"match\": \"tabel\", \"ps\": 0}]}}",
         "placement.pins[0].match: no variable is called \"tabel\" (did you mean \"table\"?)"},
        {"{\"placement\": {\"pins\": [{\"match\": \"xyz/*\", \"ps\": 0}]}}",
         "placement.pins[0].match: no variable is called \"xyz/*\""},
        {"{\"placement\": {\"partitioner\": {\"type\": \"variable_axis_size\", "
         "\"max_shard_bytes\": 4}}}",
         "placement.partitioner: table would be cut into 1000000 parts; a model may have 65536"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arena arena = {0};
        const struct placement_spec spec = fixture_placement(cases[i].placement, &arena);
        struct layout *layout = NULL;
        assert_int_equal(layout_make(&spec, rows, 2, 2, &arena, &layout), ERR_INPUT);
        assert_string_equal(error_text(), cases[i].message);
        assert_null(layout);
        arena_free(&arena);
    }
}

/* For a person */

static void the_table_says_where_everything_lies(void **state)
{
    struct world world;
    open_world(&world,
               "{\"placement\": {\"partitioner\": {\"type\": \"min_max_variable\", "
               "\"max_partitions\": 10, \"axis\": 1, \"min_slice_size\": 100}}}",
               2);
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    layout_print(world.layout, file);
    fclose(file);
    assert_string_equal(text, "variable  shape               bytes  ps\n"
                              "a         [5, 7, 3]             420  1 0 1 0 1 (5 parts)\n"
                              "b         [7]                    28  0\n"
                              "c         []                      4  1\n"
                              "ps 0: 3 slices, 208 bytes (46.0 %)\n"
                              "ps 1: 4 slices, 244 bytes (54.0 %)\n");
    free(text);
    close_world(&world);
}

static void a_ps_with_far_more_than_its_share_is_found(void **state)
{
    static const struct variable large[] = {{"a", {.rank = 2, .dim = {5, 105000}}},
                                            {"b", {.rank = 1, .dim = {40000}}}};
    static const char *const placements[] = {
        "{\"placement\": {}}",
        "{\"placement\": {\"partitioner\": {\"type\": \"fixed_size\", \"num_shards\": 5}}}"};
    struct arena arena = {0};
    struct layout *layout;
    double times = 0.0;
    for (int i = 0; i < 2; i++) {
        const struct placement_spec spec = fixture_placement(placements[i], &arena);
        assert_int_equal(layout_make(&spec, large, 2, 3, &arena, &layout), OK);
        assert_int_equal(layout_overloaded(layout, &times), i == 0 ? 1 : -1);
    }
    fixture_near(times, 525.0 * 3 / 565, (struct tolerance){.relative = 1e-12}, "times its share");
    arena_free(&arena);
}

static void ps_that_follow_have_the_blocks_of_others(void **state)
{
    static const struct variable dense[] = {{"a", {.rank = 1, .dim = {100}}},
                                            {"b", {.rank = 1, .dim = {20}}},
                                            {"c", {.rank = 1, .dim = {3}}}};
    static const struct table_spec rows = {.most = 1};
    static const struct variable table = {
        .name = "t", .shape = {.rank = 2, .dim = {5, 2}}, .table = &rows};
    const struct placement_spec spec = {.is_held_twice = true};
    struct arena arena = {0};
    struct layout *layout;
    assert_int_equal(layout_make(&spec, dense, 3, 5, &arena, &layout), OK);
    assert_int_equal(layout->ps_count, 3);
    assert_int_equal(layout->all_ps, 5);
    for (int i = 0; i < layout->slice_count; i++) assert_true(layout->slices[i].ps < 3);
    for (int ps = 3; ps < 5; ps++) {
        assert_int_equal(layout_home(layout, ps), ps - 2);
        assert_int_equal(layout->block_floats[ps], layout->block_floats[ps - 2]);
        assert_int_equal(layout->moved_floats[ps], layout->moved_floats[ps - 2]);
        assert_int_equal(layout->ps_bytes[ps], layout->ps_bytes[ps - 2]);
    }
    for (int ps_count = 1; ps_count < 5; ps_count++)
        assert_int_equal(layout_make(&spec, dense, 3, ps_count, &arena, &layout),
                         ps_count == 3 ? OK : ERR_INPUT);
    assert_int_equal(layout_make(&spec, &table, 1, 3, &arena, &layout), OK);
    assert_int_equal(layout->ps_bytes[layout_home(layout, 2)], layout->ps_bytes[2]);
    arena_free(&arena);
}

static void more_ps_than_variables_leave_empty_blocks(void **state)
{
    struct world world;
    open_world(&world, "{\"placement\": {}}", 8);
    assert_int_equal(world.layout->block_floats[0], 0);
    assert_int_equal(world.layout->block_floats[1], 112);
    assert_int_equal(world.layout->block_floats[7], 0);
    assert_int_equal(world.layout->ps_bytes[7], 0);
    close_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_variable_goes_where_tensorflow_puts_it),
        cmocka_unit_test(every_variable_is_cut_as_tensorflow_cuts_it),
        cmocka_unit_test(rows_are_cut_evenly_the_first_parts_one_row_longer),
        cmocka_unit_test(slices_lie_last_created_first_and_do_not_touch),
        cmocka_unit_test(variables_come_back_from_their_slices_along_every_axis),
        cmocka_unit_test(a_variable_is_scattered_in_parts),
        cmocka_unit_test(slices_of_a_ps_without_a_block_are_left_out),
        cmocka_unit_test(only_a_variable_of_one_slice_is_whole),
        cmocka_unit_test(pins_win_and_do_not_turn_the_round_robin),
        cmocka_unit_test(the_first_pin_that_matches_counts),
        cmocka_unit_test(greedy_makes_up_for_what_is_pinned),
        cmocka_unit_test(all_parts_of_a_pinned_variable_go_to_its_ps),
        cmocka_unit_test(a_placement_that_cannot_be_is_refused),
        cmocka_unit_test(the_table_says_where_everything_lies),
        cmocka_unit_test(a_ps_with_far_more_than_its_share_is_found),
        cmocka_unit_test(ps_that_follow_have_the_blocks_of_others),
        cmocka_unit_test(more_ps_than_variables_leave_empty_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
