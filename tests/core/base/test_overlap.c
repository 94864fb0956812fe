/* test_overlap.c - what overlaps, for all that can be so. */
#include "core/base/overlap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

enum { STEP_FACTS = 12, LINK_FACTS = 4, PARTS_CHOICES = 3 };

static bool bit(unsigned set, int i)
{
    return set >> i & 1;
}

static struct overlap_step step_of(unsigned set, enum parts_choice parts)
{
    return (struct overlap_step){bit(set, 0), bit(set, 1), parts,       bit(set, 2),
                                 bit(set, 3), bit(set, 4), bit(set, 5), bit(set, 6),
                                 bit(set, 7), bit(set, 8), bit(set, 9), bit(set, 10)};
}

/* What is told from many replicas, changed, or looked at as a whole, does not leave before that. */
static void gradients_leave_only_where_nothing_is_done_to_them(void **state)
{
    for (unsigned set = 0; set < 1u << STEP_FACTS; set++)
        for (int parts = 0; parts < PARTS_CHOICES; parts++) {
            const struct overlap_step s = step_of(set, (enum parts_choice)parts);
            const unsigned plan = overlap_of_step(&s);
            const bool travels = !s.is_alone && parts != PARTS_NEVER;
            if (s.has_towers || s.clips) assert_false(plan & OVERLAP_BACKWARD);
            if (s.is_looked_at && !s.is_mirrored) assert_false(plan & OVERLAP_BACKWARD);
            if (!travels && !s.is_mirrored) assert_int_equal(plan, 0);
            const bool onward = plan & OVERLAP_BACKWARD && s.is_mirrored && travels;
            if (s.is_mirrored) assert_false(plan & ~(unsigned)(OVERLAP_BACKWARD | OVERLAP_ONWARD));
            assert_true(!(plan & OVERLAP_ONWARD) == !(onward && !s.is_looked_at));
            if (!s.is_sync) assert_false(plan & OVERLAP_WITHIN_NODE);
            if (!s.knows_next_batch || s.sums_batches) assert_false(plan & OVERLAP_SPECULATE);
        }
    const struct overlap_step all = {.is_sync = true, .knows_next_batch = true};
    assert_int_equal(overlap_of_step(&all),
                     OVERLAP_FORWARD | OVERLAP_BACKWARD | OVERLAP_WITHIN_NODE | OVERLAP_SPECULATE);
}

static void values_advance_where_they_can_be_taken_back_unseen(void **state)
{
    for (unsigned set = 0; set < 1u << 5; set++) {
        const struct overlap_rounds r = {bit(set, 0), bit(set, 1), bit(set, 2), bit(set, 3),
                                         bit(set, 4)};
        const bool advances =
            r.takes_all && !r.lends && r.is_wanted && !r.is_looked_at && r.can_undo;
        assert_int_equal(overlap_of_rounds(&r),
                         (advances ? OVERLAP_ADVANCE : 0) |
                             (r.lends && !r.takes_all ? OVERLAP_WHOLE_PUSHES : 0));
    }
}

static void near_links_send_parts_only_for_others(void **state)
{
    struct overlap_link l = {.is_near = true, .is_sync = true};
    assert_int_equal(overlap_of_link(&l), 0);
    l.rounds = OVERLAP_ADVANCE;
    assert_int_equal(overlap_of_link(&l), OVERLAP_GRADIENTS | OVERLAP_VALUES);
    l.is_near = false;
    assert_int_equal(overlap_of_link(&l),
                     OVERLAP_IN_PARTS | OVERLAP_GRADIENTS | OVERLAP_VALUES | OVERLAP_REST);
    l.shares_memory = true; /* whatever its address says */
    assert_false(overlap_of_link(&l) & OVERLAP_IN_PARTS);
    l = (struct overlap_link){.all_are_far = true};
    assert_false(overlap_of_link(&l) & OVERLAP_REST);
    l.rounds = OVERLAP_WHOLE_PUSHES;
    assert_int_equal(overlap_of_link(&l), OVERLAP_IN_PARTS | OVERLAP_VALUES);
    l.parts = PARTS_NEVER;
    assert_int_equal(overlap_of_link(&l), 0);
}

static void a_plan_with_every_bit_has_a_text(void **state)
{
    char text[OVERLAP_TEXT_MAX];
    assert_string_equal(overlap_text(0, text), "nothing");
    for (int i = 0; i < OVERLAP_BITS; i++) assert_true(strlen(overlap_text(1u << i, text)) > 4);
    assert_true(strlen(overlap_text((1u << OVERLAP_BITS) - 1, text)) < OVERLAP_TEXT_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_leave_only_where_nothing_is_done_to_them),
        cmocka_unit_test(values_advance_where_they_can_be_taken_back_unseen),
        cmocka_unit_test(near_links_send_parts_only_for_others),
        cmocka_unit_test(a_plan_with_every_bit_has_a_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
