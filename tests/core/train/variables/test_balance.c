/* test_balance.c - which variables are cut because a ps would hold too much, and when none is. */
#include "tests/core/train/fixture.h"

#include <stdlib.h>
#include <string.h>

#define BALANCED "{\"placement\": {\"strategy\": \"%s\", \"partitioner\": \"balanced\"%s}}"

/* A deep CNN; all but fc1/kernel have less than a megabyte. */
static const struct variable cnn[] = {
    {"conv1/kernel", {.rank = 4, .dim = {5, 5, 1, 32}}},  {"conv1/bias", {.rank = 1, .dim = {32}}},
    {"conv2/kernel", {.rank = 4, .dim = {5, 5, 32, 64}}}, {"conv2/bias", {.rank = 1, .dim = {64}}},
    {"fc1/kernel", {.rank = 2, .dim = {3136, 1024}}},     {"fc1/bias", {.rank = 1, .dim = {1024}}},
    {"fc2/kernel", {.rank = 2, .dim = {1024, 10}}},       {"fc2/bias", {.rank = 1, .dim = {10}}},
};

/* The parts of each, "1 1 1 1 2 1 1 1". */
static void check_parts(const struct layout *layout, const char *wanted)
{
    char text[64];
    int length = 0;
    for (int i = 0; i < layout->slice_count; i += layout->slices[i].parts)
        length += snprintf(text + length, sizeof text - (size_t)length, "%s%d", i ? " " : "",
                           layout->slices[i].parts);
    assert_string_equal(text, wanted);
}

static struct layout *lay_out(const char *placement, const struct variable *variables, int count,
                              int ps_count, struct arena *arena)
{
    struct layout *layout = NULL;
    const struct placement_spec spec = fixture_placement(placement, arena);
    if (layout_make(&spec, variables, count, ps_count, arena, &layout) != OK)
        fail_msg("%s", error_text());
    return layout;
}

static struct layout *balanced(const char *strategy, const char *more,
                               const struct variable *variables, int count, int ps_count,
                               struct arena *arena)
{
    const char *placement = arena_format(arena, BALANCED, strategy, more);
    return lay_out(placement, variables, count, ps_count, arena);
}

static void what_one_ps_would_hold_alone_is_cut_over_all(void **state)
{
    static const char *const strategies[] = {"round_robin", "greedy"};
    struct arena arena = {0};
    double share;
    for (int i = 0; i < 2; i++) {
        const struct layout *two = balanced(strategies[i], "", cnn, 8, 2, &arena);
        check_parts(two, "1 1 1 1 2 1 1 1");
        assert_int_equal(layout_overloaded(two, &share), -1);
        const struct layout *four = balanced(strategies[i], "", cnn, 8, 4, &arena);
        check_parts(four, "1 1 1 1 4 1 1 1");
        assert_int_equal(layout_overloaded(four, &share), -1);
    }
    arena_free(&arena);
}

static void it_stays_whole_where_the_spec_says_so_or_a_pin_or_one_ps_has_all(void **state)
{
    struct arena arena = {0};
    double share = 0.0;
    static const char pin[] = ", \"pins\": [{\"match\": \"fc1/*\", \"ps\": 1}]";
    static const char none[] = "{\"placement\": {\"partitioner\": \"none\"}}";
    check_parts(balanced("greedy", "", cnn, 8, 1, &arena), "1 1 1 1 1 1 1 1");
    const struct layout *layouts[] = {balanced("greedy", pin, cnn, 8, 2, &arena),
                                      lay_out(none, cnn, 8, 2, &arena)};
    for (int i = 0; i < 2; i++) {
        check_parts(layouts[i], "1 1 1 1 1 1 1 1");
        assert_true(layout_overloaded(layouts[i], &share) >= 0);
        assert_true(share > 1.9);
    }
    arena_free(&arena);
}

static void nothing_under_a_megabyte_is_worth_it(void **state)
{
    static const struct variable below[] = {{"a", {.rank = 2, .dim = {1023, 256}}}},
                                 above[] = {{"a", {.rank = 2, .dim = {1024, 256}}}};
    struct arena arena = {0};
    double share;
    const struct layout *small = balanced("greedy", "", below, 1, 2, &arena);
    check_parts(small, "1");
    assert_int_equal(layout_overloaded(small, &share), -1);
    check_parts(balanced("greedy", "", above, 1, 2, &arena), "2");
    check_parts(balanced("greedy", "", above, 1, 9, &arena), "4"); /* of 256 KiB each */
    arena_free(&arena);
}

/* Round robin puts a and c on one ps. With a in two parts no ps has too much. */
static void no_more_is_cut_than_it_takes(void **state)
{
    static const struct variable variables[] = {{"a", {.rank = 2, .dim = {3000, 1024}}},
                                                {"b", {.rank = 1, .dim = {10}}},
                                                {"c", {.rank = 2, .dim = {1000, 1024}}},
                                                {"d", {.rank = 1, .dim = {10}}}};
    struct arena arena = {0};
    const struct layout *layout = balanced("round_robin", "", variables, 4, 2, &arena);
    check_parts(layout, "2 1 1 1");
    assert_int_equal(layout->balanced_count, 1);
    assert_int_equal(layout->balanced_ps, 1);
    arena_free(&arena);
}

static void the_table_says_why(void **state)
{
    static const struct variable variables[] = {{"a", {.rank = 2, .dim = {3000, 1000}}}};
    struct arena arena = {0};
    const struct layout *layout = balanced("greedy", "", variables, 1, 2, &arena);
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    layout_print(layout, file);
    fclose(file);
    assert_string_equal(
        text,
        "variable  shape                  bytes  ps\n"
        "a         [3000, 1000]        12000000  1 0 (2 parts)\n"
        "ps 0: 1 slice, 6000000 bytes (50.0 %)\n"
        "ps 1: 1 slice, 6000000 bytes (50.0 %)\n"
        "1 variable is cut: else ps 1 would hold 2.0 times its share (see \"partitioner\")\n");
    free(text);
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_one_ps_would_hold_alone_is_cut_over_all),
        cmocka_unit_test(it_stays_whole_where_the_spec_says_so_or_a_pin_or_one_ps_has_all),
        cmocka_unit_test(nothing_under_a_megabyte_is_worth_it),
        cmocka_unit_test(no_more_is_cut_than_it_takes),
        cmocka_unit_test(the_table_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
