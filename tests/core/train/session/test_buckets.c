/* test_buckets.c - what is complete while backward continues: every float once, in any order. */
#include "tests/core/train/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "core/train/session/buckets.h"

enum { THOUSANDS = 5000, PS_COUNT_MAX = 8, LEAST = 64 << 10 };

struct world {
    struct arena arena;
    struct layout *layout;
    struct buckets buckets;
    char **taken;      /* [ps][floats]: how often */
    int64_t *complete; /* [variables] floats */
    int count;         /* buckets in this pass */
};

/* Variables of these many rows of so many floats, in creation order */
static void open_wide(struct world *w, const char *placement, int ps_count, const int64_t *rows,
                      int count, int64_t columns, uint64_t frozen)
{
    *w = (struct world){0};
    const struct placement_spec spec = fixture_placement(placement, &w->arena);
    struct variable *variables = arena_array(&w->arena, (size_t)count, sizeof *variables);
    for (int i = 0; i < count; i++)
        variables[i] =
            (struct variable){.name = arena_format(&w->arena, "v%d", i),
                              .shape = {.rank = columns > 1 ? 2 : 1, .dim = {rows[i], columns}},
                              .is_frozen = i < 64 && frozen >> i & 1};
    if (layout_make(&spec, variables, count, ps_count, &w->arena, &w->layout))
        fail_msg("%s", error_text());
    buckets_open(w->layout, LEAST, &w->arena, &w->buckets);
    w->taken = arena_array(&w->arena, (size_t)ps_count, sizeof *w->taken);
    for (int ps = 0; ps < ps_count; ps++)
        w->taken[ps] = arena_array(&w->arena, (size_t)w->layout->block_floats[ps] + 1, 1);
    w->complete = arena_array(&w->arena, (size_t)count, sizeof *w->complete);
}

static void open_world(struct world *w, const char *placement, int ps_count, const int64_t *floats,
                       int count)
{
    open_wide(w, placement, ps_count, floats, count, 1, 0);
}

static void close_world(struct world *w)
{
    arena_free(&w->arena);
}

static void begin(struct world *w)
{
    buckets_begin(&w->buckets);
    for (int ps = 0; ps < w->layout->ps_count; ps++)
        memset(w->taken[ps], 0, (size_t)w->layout->block_floats[ps]);
    memset(w->complete, 0, (size_t)w->layout->variable_count * sizeof *w->complete);
    w->count = 0;
}

static int64_t floats_of(const struct world *w, int variable)
{
    return shape_count(&w->layout->variables[variable].shape);
}

/* Nothing of a variable that is not complete is in it. */
static void assert_complete(const struct world *w, int ps, struct range bucket)
{
    for (int i = 0; i < w->layout->slice_count; i++) {
        const struct slice *s = &w->layout->slices[i];
        const struct range slice = {s->offset, s->offset + s->count};
        const struct range both = range_meet(slice, bucket);
        if (s->ps != ps || range_is_empty(both)) continue;
        if (w->layout->variables[s->variable].is_frozen) continue; /* of which there is nothing */
        const int64_t inside = both.end - s->offset;
        const int64_t before = s->start * shape_count_from(&s->shape, 1);
        const int64_t wanted = s->axis == 0 ? before + inside : floats_of(w, s->variable);
        if (wanted > w->complete[s->variable])
            fail_msg("variable %d leaves before it is complete", s->variable);
    }
}

static void take_all(struct world *w)
{
    int ps;
    struct range p;
    while (buckets_next(&w->buckets, &ps, &p)) {
        const int64_t floats = w->layout->moved_floats[ps];
        assert_in_range(ps, 0, w->layout->ps_count - 1);
        assert_true(!range_is_empty(p) && p.begin >= 0 && p.end <= floats);
        assert_true(range_count(p) >= LEAST || p.end == floats);
        assert_complete(w, ps, p);
        for (int64_t i = p.begin; i < p.end; i++) w->taken[ps][i]++;
        w->count++;
    }
}

static void finish_some(struct world *w, int variable, int64_t floats)
{
    w->complete[variable] = floats;
    buckets_finish(&w->buckets, variable, floats);
    take_all(w);
}

static void finish(struct world *w, int variable)
{
    finish_some(w, variable, floats_of(w, variable));
}

static void assert_each_once(const struct world *w)
{
    for (int ps = 0; ps < w->layout->ps_count; ps++)
        for (int64_t i = 0; i < w->layout->moved_floats[ps]; i++)
            if (w->taken[ps][i] != 1)
                fail_msg("ps %d, float %lld: in %d buckets", ps, (long long)i, w->taken[ps][i]);
}

/* Last created first, as backward goes */
static void pass_backward(struct world *w)
{
    begin(w);
    for (int i = w->layout->variable_count - 1; i >= 0; i--) finish(w, i);
    assert_each_once(w);
}

static void pass_shuffled(struct world *w, uint64_t key)
{
    const uint64_t count = (uint64_t)w->layout->variable_count;
    begin(w);
    for (uint64_t i = 0; i < count; i++) finish(w, (int)random_permute(key, count, i));
    assert_each_once(w);
}

#define PLAIN "{\"placement\": {}}"
#define PARTS "{\"placement\": {\"partitioner\": {\"type\": \"fixed_size\", \"num_shards\": %d}}}"

static const int64_t mixed[] = {100,       LEAST,  3,  17, 2 * LEAST + 5, 1, 40, 200000,
                                LEAST - 1, 300000, 16, 15};
enum { MIXED = sizeof mixed / sizeof *mixed };

static void every_float_leaves_once_whatever_is_finished_first(void **state)
{
    struct world w;
    for (int ps_count = 1; ps_count <= PS_COUNT_MAX; ps_count++) {
        open_world(&w, PLAIN, ps_count, mixed, MIXED);
        pass_backward(&w);
        for (uint64_t key = 1; key <= 10; key++) pass_shuffled(&w, key);
        close_world(&w);
    }
}

static void parts_of_a_variable_leave_with_all_of_it(void **state)
{
    struct world w;
    char placement[128];
    for (int parts = 2; parts <= 5; parts++) {
        snprintf(placement, sizeof placement, PARTS, parts);
        open_world(&w, placement, 3, mixed, MIXED);
        assert_true(w.layout->slice_count > MIXED);
        pass_backward(&w);
        for (uint64_t key = 1; key <= 10; key++) pass_shuffled(&w, key);
        close_world(&w);
    }
}

/* On one ps: two buckets' worth, of which the one behind is finished first. */
static void what_is_finished_early_waits_for_what_lies_before_it(void **state)
{
    static const int64_t floats[] = {LEAST, LEAST, LEAST};
    struct world w;
    open_world(&w, PLAIN, 1, floats, 3);
    begin(&w);
    finish(&w, 0);
    finish(&w, 1);
    assert_int_equal(w.count, 0);
    finish(&w, 2); /* the front: last created */
    assert_int_equal(w.count, 1);
    assert_each_once(&w);

    begin(&w);
    for (int i = 2; i >= 0; i--) {
        finish(&w, i);
        assert_int_equal(w.count, 3 - i);
    }
    assert_each_once(&w);
    close_world(&w);
}

/* They are never finished, and what lies before them does not wait. */
static void what_is_frozen_never_leaves(void **state)
{
    static const uint64_t frozen[] = {0x1, 0x555, 0x7ff, 0x800};
    struct world w;
    for (int i = 0; i < 4; i++) {
        open_wide(&w, PLAIN, 2, mixed, MIXED, 1, frozen[i]);
        begin(&w);
        for (int v = MIXED - 1; v >= 0; v--)
            if (!(frozen[i] >> v & 1)) finish(&w, v);
        assert_each_once(&w);
        for (int s = 0; s < w.layout->slice_count; s++) {
            const struct slice *slice = &w.layout->slices[s];
            const bool lies_behind = slice->offset >= w.layout->moved_floats[slice->ps];
            assert_int_equal(lies_behind, frozen[i] >> slice->variable & 1);
        }
        close_world(&w);
    }
}

static void small_variables_wait_until_they_are_worth_a_bucket(void **state)
{
    static int64_t floats[THOUSANDS];
    struct world w;
    for (int i = 0; i < THOUSANDS; i++) floats[i] = 1 + i % 90;
    open_world(&w, PLAIN, 3, floats, THOUSANDS);
    pass_backward(&w);
    int64_t most = 0;
    for (int ps = 0; ps < 3; ps++) most += w.layout->block_floats[ps] / LEAST + 1;
    assert_true(w.count >= 3 && w.count <= most);
    pass_shuffled(&w, 1);
    close_world(&w);
}

static void a_huge_variable_is_one_bucket(void **state)
{
    static const int64_t floats[] = {10, 40 * LEAST, 10};
    struct world w;
    open_world(&w, PLAIN, 1, floats, 3);
    begin(&w);
    finish(&w, 2);
    assert_int_equal(w.count, 0);
    finish(&w, 1);
    assert_int_equal(w.count, 1);
    finish(&w, 0);
    assert_int_equal(w.count, 2);
    assert_each_once(&w);
    close_world(&w);
}

static void what_is_complete_of_a_huge_variable_leaves_before_the_rest(void **state)
{
    static const int64_t floats[] = {10, 4 * LEAST, 10};
    struct world w;
    open_world(&w, PLAIN, 1, floats, 3);
    begin(&w);
    finish_some(&w, 1, 3 * LEAST);
    assert_int_equal(w.count, 0); /* it is not at the front */
    finish(&w, 2);
    assert_int_equal(w.count, 1);
    finish_some(&w, 1, 4 * LEAST - 1);
    assert_int_equal(w.count, 1); /* too few more */
    finish(&w, 1);
    assert_int_equal(w.count, 2);
    finish(&w, 0);
    assert_each_once(&w);
    close_world(&w);
}

/* Cut along the first axis what leaves is some rows; along another, nothing before all is there. */
static void slices_leave_as_far_as_the_front_of_their_variable_reaches(void **state)
{
    enum { ROWS = 1000, COLUMNS = 1024, STEP = 90 * COLUMNS + 5 };
    static const int64_t rows[] = {3, ROWS, 2};
    struct world w;
    for (int axis = 0; axis < 2; axis++) {
        char placement[160];
        snprintf(placement, sizeof placement,
                 "{\"placement\": {\"partitioner\": {\"type\": \"fixed_size\", \"axis\": %d, "
                 "\"num_shards\": 3}}}",
                 axis);
        open_wide(&w, placement, 2, rows, 3, COLUMNS, 0);
        assert_true(w.layout->slice_count > 3);
        begin(&w);
        finish(&w, 2);
        for (int64_t floats = 0; floats < ROWS * COLUMNS; floats += STEP)
            finish_some(&w, 1, floats);
        assert_true(axis == 0 ? w.count > 5 : w.count == 0);
        finish(&w, 1);
        finish(&w, 0);
        assert_each_once(&w);
        close_world(&w);
    }
}

/* More ps than variables */
static void a_ps_without_variables_has_no_bucket(void **state)
{
    static const int64_t floats[] = {5, 6};
    struct world w;
    open_world(&w, PLAIN, PS_COUNT_MAX, floats, 2);
    pass_backward(&w);
    assert_int_equal(w.count, 2);
    close_world(&w);
}

static void a_pass_that_was_broken_off_leaves_nothing_to_the_next(void **state)
{
    struct world w;
    open_world(&w, PLAIN, 2, mixed, MIXED);
    begin(&w);
    for (int i = MIXED - 1; i >= MIXED / 2; i--) finish(&w, i);
    pass_backward(&w);
    begin(&w);
    take_all(&w);
    assert_int_equal(w.count, 0);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_float_leaves_once_whatever_is_finished_first),
        cmocka_unit_test(parts_of_a_variable_leave_with_all_of_it),
        cmocka_unit_test(what_is_finished_early_waits_for_what_lies_before_it),
        cmocka_unit_test(what_is_frozen_never_leaves),
        cmocka_unit_test(small_variables_wait_until_they_are_worth_a_bucket),
        cmocka_unit_test(a_huge_variable_is_one_bucket),
        cmocka_unit_test(what_is_complete_of_a_huge_variable_leaves_before_the_rest),
        cmocka_unit_test(slices_leave_as_far_as_the_front_of_their_variable_reaches),
        cmocka_unit_test(a_ps_without_variables_has_no_bucket),
        cmocka_unit_test(a_pass_that_was_broken_off_leaves_nothing_to_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
