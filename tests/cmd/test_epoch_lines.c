/* test_epoch_lines.c - lines about the rows of epochs: each epoch is in one of them, and they are
 * few.
 */
#include "cmd/run/epoch_lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { ROWS = 300 };
static const uint64_t SECOND_NS = 1000000000;
static char last[EPOCH_LINE_BYTES];
static int lines;

static void say(const char *line)
{
    snprintf(last, sizeof last, "%s", line);
    lines++;
}

static struct epoch_lines opened(void)
{
    last[0] = '\0';
    lines = 0;
    return (struct epoch_lines){.say = say};
}

static void add(struct epoch_lines *t, uint64_t epoch, uint64_t applied, uint64_t now_ns)
{
    const struct rows_seen r = {
        .epoch = epoch, .epochs = 1, .rows = ROWS, .applied = applied, .is_over = true};
    epoch_lines_add(t, &r, now_ns);
}

static void epochs_that_are_whole_are_told_together(void **state)
{
    struct epoch_lines t = opened();
    for (uint64_t i = 0; i < 20; i++) add(&t, i, ROWS, i);
    assert_int_equal(lines, 0);
    epoch_lines_flush(&t, 20);
    assert_string_equal(last, "epochs 1 to 20: each 300 of 300 rows, 0 twice, 0 lost");
    epoch_lines_flush(&t, 21);
    assert_int_equal(lines, 1);
}

static void the_first_loss_is_told_at_once_and_those_behind_it_together(void **state)
{
    struct epoch_lines t = opened();
    add(&t, 0, ROWS, 0);
    add(&t, 1, ROWS - 7, 1);
    assert_string_equal(last, "epochs 1 to 2: 593 of 600 rows, 0 twice, 7 lost");
    for (uint64_t i = 0; i < 1000; i++)
        add(&t, 2 + i, ROWS - 1, 2 + i * SECOND_NS / 20); /* 20 in a second */
    assert_in_range(lines, 5, 6);                         /* one in 10 of 50 s */
    epoch_lines_flush(&t, 51 * SECOND_NS);
    assert_non_null(strstr(last, " to 1002: "));
}

static void what_is_twice_does_not_hide_what_is_lost(void **state)
{
    struct epoch_lines t = opened();
    add(&t, 0, ROWS - 5, 0);
    add(&t, 1, ROWS + 5, 1);
    add(&t, 2, ROWS - 5, 2);
    epoch_lines_flush(&t, 3);
    assert_string_equal(last, "epochs 2 to 3: 600 of 600 rows, 5 twice, 5 lost");
}

/* As after a restart from a checkpoint */
static void epochs_that_come_again_are_told_apart(void **state)
{
    struct epoch_lines t = opened();
    for (uint64_t i = 0; i < 4; i++) add(&t, i, ROWS, i);
    add(&t, 2, ROWS, 4);
    assert_string_equal(last, "epochs 1 to 4: each 300 of 300 rows, 0 twice, 0 lost");
    epoch_lines_flush(&t, 5);
    assert_string_equal(last, "epoch 3: 300 of 300 rows, 0 twice, 0 lost");
}

static void epochs_that_come_as_one_are_summed(void **state)
{
    struct epoch_lines t = opened();
    struct rows_seen r = {.epochs = 2, .rows = 200, .applied = 200, .is_over = true};
    for (; r.epoch < 28; r.epoch += 2) epoch_lines_add(&t, &r, r.epoch);
    assert_int_equal(lines, 0);
    epoch_lines_flush(&t, 30);
    assert_string_equal(last, "epochs 1 to 28: 2800 of 2800 rows, 0 twice, 0 lost");
}

/* Of epochs that are counted together some may be whole, but nobody can tell which. */
static void epochs_that_are_not_over_are_told_at_the_end(void **state)
{
    struct epoch_lines t = opened();
    struct rows_seen r = {.epochs = 4, .rows = 40, .applied = 40, .is_over = true};
    for (; r.epoch < 28; r.epoch += 4) epoch_lines_add(&t, &r, r.epoch);
    r.applied = 17;
    r.is_over = false;
    epoch_lines_end(&t, &r, 30);
    assert_int_equal(lines, 2);
    assert_string_equal(last, "epochs 29 to 32 so far: 17 of 40 rows");
    r.epochs = 1;
    r.rows = 20;
    epoch_lines_end(&t, &r, 30);
    assert_string_equal(last, "epoch 29 so far: 17 of 20 rows");
}

static void a_run_that_ends_with_an_epoch_or_in_the_first_tells_no_open_one(void **state)
{
    struct epoch_lines t = opened();
    const struct rows_seen none = {0}, first = {.epochs = 1, .rows = 300, .applied = 7},
                           over = {.epochs = 3, .rows = 9, .applied = 9, .is_over = true},
                           begins = {.epoch = 5, .epochs = 1, .rows = 300};
    epoch_lines_end(&t, &none, 0);
    epoch_lines_end(&t, &first, 0);
    epoch_lines_end(&t, &over, 0);
    epoch_lines_end(&t, &begins, 0);
    assert_int_equal(lines, 0);
}

static void of_data_without_an_end_the_last_numbers_are_told(void **state)
{
    struct epoch_lines t = opened();
    struct rows_seen r = {.epochs = 1, .rows = 50, .applied = 50, .is_endless = true};
    epoch_lines_add(&t, &r, 0);
    r.rows = r.applied = 90;
    r.left = 3;
    epoch_lines_add(&t, &r, 1);
    epoch_lines_flush(&t, 2);
    assert_int_equal(lines, 1);
    assert_string_equal(last, "of those that came: 90 of 90 rows, 0 twice, 0 lost; 3 left, "
                              "fewer than all push at once");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(epochs_that_are_whole_are_told_together),
        cmocka_unit_test(the_first_loss_is_told_at_once_and_those_behind_it_together),
        cmocka_unit_test(what_is_twice_does_not_hide_what_is_lost),
        cmocka_unit_test(epochs_that_come_again_are_told_apart),
        cmocka_unit_test(epochs_that_come_as_one_are_summed),
        cmocka_unit_test(epochs_that_are_not_over_are_told_at_the_end),
        cmocka_unit_test(a_run_that_ends_with_an_epoch_or_in_the_first_tells_no_open_one),
        cmocka_unit_test(of_data_without_an_end_the_last_numbers_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
