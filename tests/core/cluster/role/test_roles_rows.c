/* test_roles_rows.c - which rows of tables count: core/cluster/role/rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "core/cluster/role/row_exchange.h"

#include <cmocka.h> /* last: it has a macro named fail */

/* number: of the request, or of the push */
static struct message rows(uint32_t flags, uint64_t number)
{
    const bool is_asking = flags & (ROWS_ASKED | ROWS_NONE);
    return (struct message){
        .type = MESSAGE_ROWS,
        .rows = {flags, .push = is_asking ? 0 : number, .request_id = is_asking ? number : 0}};
}

static enum rows_turn hear(struct rows_told *told, uint32_t flags, uint64_t number, bool is_ours)
{
    const struct message m = rows(flags, number);
    return rows_heard(told, &m, is_ours);
}

static bool belong(const struct rows_told *told, uint64_t push)
{
    return rows_belong(told, &(struct message){.type = MESSAGE_PUSH, .push.push = push});
}

/* ---- at a ps ---- */

static void a_push_has_the_rows_that_came_with_it_and_no_others(void **state)
{
    struct rows_told told = {0};
    assert_false(belong(&told, 1));
    assert_int_equal(hear(&told, 0, 1, true), ROWS_KEEP);
    assert_true(belong(&told, 1));
    assert_false(belong(&told, 2));
    rows_told_forget(&told);
    assert_false(belong(&told, 1));
}

static void rows_are_due_once_where_the_push_names_some(void **state)
{
    struct rows_told told = {0};
    assert_false(rows_are_due(&told));
    hear(&told, 0, 1, true);
    assert_false(rows_are_due(&told));
    hear(&told, ROWS_AND_NEXT, 2, true);
    assert_true(rows_are_due(&told));
    assert_false(rows_are_due(&told));
    assert_true(belong(&told, 2)); /* the number of the answer */
    hear(&told, ROWS_AND_NEXT, 3, true);
    rows_told_forget(&told);
    assert_false(rows_are_due(&told));
}

static void who_asks_is_answered_and_a_push_that_waits_stays(void **state)
{
    struct rows_told told = {0};
    hear(&told, ROWS_AND_NEXT, 4, true);
    assert_int_equal(hear(&told, ROWS_ASKED, 9, true), ROWS_ANSWER);
    assert_int_equal(hear(&told, ROWS_ASKED, 9, false), ROWS_REFUSE);
    assert_int_equal(hear(&told, ROWS_AND_NEXT, 5, false), ROWS_VOID);
    assert_true(belong(&told, 4));
    assert_true(rows_are_due(&told));
}

/* Whose ids the ps has. */
static void rows_that_were_brought_are_those_of_the_next_push(void **state)
{
    const uint32_t brought = ROWS_AND_NEXT | ROWS_BROUGHT;
    struct rows_told told = {0};
    assert_int_equal(hear(&told, brought, 1, true), ROWS_WRONG);
    hear(&told, ROWS_AND_NEXT, 4, true);
    assert_int_equal(hear(&told, brought, 5, true), ROWS_WRONG); /* it has not been answered */
    assert_true(belong(&told, 4));
    assert_true(rows_are_due(&told));
    assert_int_equal(hear(&told, brought, 6, true), ROWS_WRONG);
    assert_int_equal(hear(&told, brought, 5, true), ROWS_KEEP);
    assert_true(belong(&told, 5));
    assert_true(rows_are_due(&told));
    assert_int_equal(hear(&told, ROWS_BROUGHT, 6, true), ROWS_KEEP);
    assert_false(rows_are_due(&told));
    assert_int_equal(hear(&told, ROWS_BROUGHT, 7, true), ROWS_WRONG);
    hear(&told, ROWS_AND_NEXT, 7, true);
    rows_are_due(&told);
    rows_told_forget(&told);
    assert_int_equal(hear(&told, ROWS_BROUGHT, 8, true), ROWS_WRONG);
}

/* ---- at a worker ---- */

static void come(struct rows_asked *asked, uint32_t flags, uint64_t number, bool fit)
{
    const struct message m = rows(flags, number);
    rows_arrived(asked, &m, fit);
}

static void only_the_last_asking_is_answered(void **state)
{
    struct rows_asked asked = {0};
    const uint64_t first = rows_ask(&asked), second = rows_ask(&asked);
    assert_int_not_equal(first, second);
    come(&asked, ROWS_ASKED, first, true);
    assert_false(asked.is_answered);
    come(&asked, ROWS_ASKED, second, true);
    assert_true(asked.is_answered && !asked.is_refused);
    rows_ask(&asked);
    assert_false(asked.is_answered);
}

static void an_asking_is_open_until_it_is_answered_or_its_link_is_gone(void **state)
{
    struct rows_asked asked = {0};
    assert_false(rows_are_open(&asked));
    const uint64_t first = rows_ask(&asked);
    assert_true(rows_are_open(&asked));
    come(&asked, 0, 7, true); /* those of a push */
    assert_true(rows_are_open(&asked));
    come(&asked, ROWS_NONE, first, true);
    assert_false(rows_are_open(&asked));
    rows_ask(&asked);
    rows_asked_forget(&asked);
    assert_false(rows_are_open(&asked));
    assert_int_equal(rows_with_values(&asked), 0);
}

static void what_does_not_fit_is_as_good_as_none(void **state)
{
    struct rows_asked asked = {0};
    come(&asked, ROWS_ASKED, rows_ask(&asked), false);
    assert_true(asked.is_answered && asked.is_refused);
    come(&asked, ROWS_NONE, rows_ask(&asked), true);
    assert_true(asked.is_answered && asked.is_refused);
    come(&asked, 0, 7, false);
    assert_int_equal(rows_with_values(&asked), 0);
}

/* Push 7 is of batch 6, from 0; the batch that comes after it is 7. */
static void values_bring_the_rows_of_the_batch_after_the_push(void **state)
{
    struct rows_asked asked = {0};
    assert_int_equal(rows_with_values(&asked), 0);
    come(&asked, 0, 7, true);
    assert_false(asked.is_answered);
    assert_int_equal(rows_with_values(&asked), 1 + 7);
    assert_int_equal(rows_with_values(&asked), 0); /* these brought none */
    come(&asked, ROWS_ASKED, rows_ask(&asked), true);
    assert_int_equal(rows_with_values(&asked), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_push_has_the_rows_that_came_with_it_and_no_others),
        cmocka_unit_test(rows_are_due_once_where_the_push_names_some),
        cmocka_unit_test(who_asks_is_answered_and_a_push_that_waits_stays),
        cmocka_unit_test(rows_that_were_brought_are_those_of_the_next_push),
        cmocka_unit_test(only_the_last_asking_is_answered),
        cmocka_unit_test(an_asking_is_open_until_it_is_answered_or_its_link_is_gone),
        cmocka_unit_test(what_does_not_fit_is_as_good_as_none),
        cmocka_unit_test(values_bring_the_rows_of_the_batch_after_the_push),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
