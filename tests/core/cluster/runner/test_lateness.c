/* test_lateness.c - for whom rounds wait, by when gradients come. */
#include "core/cluster/runner/lateness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { WORKERS = 3, MS = 1000000 };

static const int all[WORKERS] = {2, 0, 1};
static uint64_t now_ns = MS;

/* Each comes so long after the one before it. */
static void come(struct lateness *l, const int order[WORKERS], const int after_ms[WORKERS])
{
    for (int i = 0; i < WORKERS; i++) {
        now_ns += (uint64_t)after_ms[i] * MS;
        lateness_came(l, order[i], now_ns);
    }
    lateness_round(l, all, WORKERS);
}

static void near(double value, double wanted)
{
    assert_true(value > wanted - 1e-9 && value < wanted + 1e-9);
}

static void the_one_that_comes_last_is_waited_for(void **state)
{
    struct lateness l;
    assert_int_equal(lateness_open(&l, WORKERS), OK);
    assert_int_equal(l.latest, -1);
    for (int i = 0; i < 10; i++)
        come(&l, (const int[]){i % 2, 1 - i % 2, 2}, (const int[]){5, 1, 20});
    assert_int_equal(l.latest, 2);
    near(l.waited_s, 10 * 0.020);
    lateness_close(&l);
}

/* What was before counts ever less; the time of others is not added to what is said of it. */
static void another_one_becomes_the_last(void **state)
{
    struct lateness l;
    assert_int_equal(lateness_open(&l, WORKERS), OK);
    for (int i = 0; i < 10; i++) come(&l, (const int[]){0, 1, 2}, (const int[]){1, 1, 20});
    come(&l, (const int[]){0, 2, 1}, (const int[]){1, 1, 50});
    assert_int_equal(l.latest, 2);
    near(l.waited_s, 10 * 0.020);
    for (int i = 0; i < 5; i++) come(&l, (const int[]){2, 0, 1}, (const int[]){1, 1, 50});
    assert_int_equal(l.latest, 1);
    lateness_close(&l);
}

static void a_round_of_one_waits_for_nobody(void **state)
{
    struct lateness l;
    assert_int_equal(lateness_open(&l, WORKERS), OK);
    lateness_came(&l, 1, now_ns += 500 * (uint64_t)MS);
    lateness_round(&l, (const int[]){1}, 1);
    lateness_round(&l, NULL, 0);
    assert_int_equal(l.latest, -1);
    near(l.waited_s, 0);
    lateness_close(&l);
    lateness_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_one_that_comes_last_is_waited_for),
        cmocka_unit_test(another_one_becomes_the_last),
        cmocka_unit_test(a_round_of_one_waits_for_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
