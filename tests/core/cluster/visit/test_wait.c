/* Answers that wait: changes while workers look at the values, and watchers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/core/cluster/visit/visited.h"

#include <cmocka.h> /* after error.h: it has a macro named fail */

/* ---- changes while workers look ---- */

static void a_change_waits_for_a_round_where_workers_look_at_the_values(void **state)
{
    struct ps ps;
    empty_ps(&ps);
    show(&ps, true, true);
    assert_null(ask_at(&ps, 0, 0, "{\"do\": \"add\", \"name\": \"b\", \"value\": 2}"));
    assert_null(ask_at(&ps, 1, 0, "{\"do\": \"add\", \"name\": \"b\", \"value\": 3}"));
    visits_changed(ps.visits, 1);
    visits_tick(ps.visits, 100);
    work(&ps, 100);
    assert_float_equal(ps.values[48], 0, 0);
    assert_true(visits_round(ps.visits)); /* one at a time */
    assert_int_equal(ps.answers, 1);
    assert_true(visits_round(ps.visits));
    assert_float_equal(ps.values[48], 5, 0);
    assert_int_equal(ps.answers, 2);
    assert_non_null(ps.answer[0]);
    assert_non_null(ps.answer[1]);
    assert_false(visits_round(ps.visits)); /* made once */
    assert_float_equal(ps.values[48], 5, 0);
    close_ps(&ps);
}

/* Else whoever can do nothing takes the turn of those who can. */
static void what_waits_for_a_round_is_no_work(void **state)
{
    struct ps ps;
    empty_ps(&ps);
    show(&ps, true, true);
    assert_false(visits_wait_for_round(ps.visits));
    ask_at(&ps, 0, 0, "{\"do\": \"set\", \"name\": \"b\", \"value\": 2}");
    assert_true(visits_wait_for_round(ps.visits));
    assert_false(visits_wait_for_work(ps.visits, 0));
    visits_round(ps.visits);
    assert_false(visits_wait_for_round(ps.visits));
    close_ps(&ps);
}

static void a_watcher_that_is_not_due_is_no_work(void **state)
{
    struct ps ps;
    char text[TEXT_MAX];
    empty_ps(&ps);
    show(&ps, true, true);
    snprintf(text, sizeof text,
             "{\"do\": \"get\", \"name\": \"w\", \"since\": %lld, \"every_ms\": 500, \"limit_ms\": "
             "9000}",
             (long long)version(ask_at(&ps, 0, 1000, "{\"do\": \"get\", \"name\": \"w\"}")));
    ask_at(&ps, 0, 1000, text);
    visits_changed(ps.visits, 1);
    assert_false(visits_wait_for_work(ps.visits, 1499));
    assert_true(visits_wait_for_work(ps.visits, 1500));
    assert_false(visits_wait_for_round(ps.visits));
    close_ps(&ps);
}

static void a_shared_variable_waits_for_no_round(void **state)
{
    struct ps ps;
    empty_ps(&ps);
    show(&ps, true, true);
    assert_non_null(ask(&ps, "{\"do\": \"set\", \"name\": \"n\", \"value\": 2, \"make\": true}"));
    close_ps(&ps);
}

static void a_change_that_waited_too_long_is_not_made(void **state)
{
    struct ps ps;
    empty_ps(&ps);
    show(&ps, true, true);
    ask_at(&ps, 0, 1000, "{\"do\": \"set\", \"name\": \"b\", \"value\": 2}");
    visits_tick(ps.visits, 1000 + CHANGE_LIMIT_MS - 1);
    work(&ps, 1000 + CHANGE_LIMIT_MS - 1);
    assert_null(ps.answer[0]);
    visits_tick(ps.visits, 1000 + CHANGE_LIMIT_MS);
    work(&ps, 1000 + CHANGE_LIMIT_MS);
    assert_string_equal(json_string_value(json_object_get(ps.answer[0], "error")),
                        "b was not changed: no step ended within 5 s (--step_timeout of the ps)");
    assert_int_equal(json_integer_value(json_object_get(ps.answer[0], "code")), 129);
    visits_round(ps.visits);
    assert_float_equal(ps.values[48], 0, 0);
    close_ps(&ps);
}

static void a_visitor_that_leaves_or_asks_again_takes_its_change_back(void **state)
{
    struct ps ps;
    empty_ps(&ps);
    show(&ps, true, true);
    ask_at(&ps, 0, 0, "{\"do\": \"set\", \"name\": \"b\", \"value\": 2}");
    ask_at(&ps, 1, 0, "{\"do\": \"set\", \"name\": \"b\", \"value\": 3}");
    visits_leave(ps.visits, 1);
    assert_non_null(ask_at(&ps, 0, 0, "{\"do\": \"get\", \"name\": \"b\"}"));
    visits_round(ps.visits);
    assert_float_equal(ps.values[48], 0, 0);
    assert_int_equal(ps.answers, 1);
    close_ps(&ps);
}

static void a_change_that_waits_hears_that_the_job_ends(void **state)
{
    struct ps ps;
    empty_ps(&ps);
    show(&ps, true, true);
    ask_at(&ps, 0, 0, "{\"do\": \"set\", \"name\": \"b\", \"value\": 2}");
    visits_end(ps.visits);
    assert_string_equal(json_string_value(json_object_get(ps.answer[0], "error")),
                        "b was not changed: the job ends");
    close_ps(&ps);
}

static void a_change_is_made_when_workers_look_no_more(void **state)
{
    struct ps ps;
    empty_ps(&ps);
    show(&ps, true, true);
    ask_at(&ps, 0, 0, "{\"do\": \"set\", \"name\": \"b\", \"value\": 2}");
    show(&ps, true, false);
    assert_non_null(ps.answer[0]);
    assert_float_equal(ps.values[48], 2, 0);
    close_ps(&ps);
}

/* ---- watching ---- */

static void ask_since(struct ps *ps, int visitor, json_int_t since, const char *more)
{
    char text[TEXT_MAX];
    snprintf(text, sizeof text, "{\"do\": \"get\", \"name\": \"n\", \"since\": %lld%s}",
             (long long)since, more);
    ask_at(ps, visitor, 1000, text);
}

static const char make_n[] = "{\"do\": \"set\", \"name\": \"n\", \"value\": 1, \"make\": true}";
static const char add_n[] = "{\"do\": \"add\", \"name\": \"n\", \"value\": 1}";

static void a_watcher_is_answered_when_the_value_changes(void **state)
{
    struct ps ps;
    serving_ps(&ps);
    json_int_t first = version(ask_at(&ps, 0, 1000, make_n));
    ask_since(&ps, 1, first, ", \"limit_ms\": 9000");
    assert_null(ps.answer[1]);
    visits_changed(ps.visits, 1); /* that was another variable */
    visits_tick(ps.visits, 1100);
    work(&ps, 1100);
    assert_null(ps.answer[1]);
    ask_at(&ps, 0, 1200, add_n);
    assert_non_null(ps.answer[1]);
    assert_true(version(ps.answer[1]) > first);
    close_ps(&ps);
}

static void a_watcher_of_an_old_version_is_answered_at_once(void **state)
{
    struct ps ps;
    serving_ps(&ps);
    json_int_t first = version(ask_at(&ps, 0, 1000, make_n));
    ask_at(&ps, 0, 1000, add_n);
    ask_since(&ps, 1, first, ", \"limit_ms\": 9000");
    assert_non_null(ps.answer[1]);
    close_ps(&ps);
}

static void a_watcher_is_not_answered_more_often_than_it_asked_for(void **state)
{
    struct ps ps;
    serving_ps(&ps);
    json_int_t first = version(ask_at(&ps, 0, 1000, make_n));
    ask_since(&ps, 1, first, ", \"every_ms\": 500, \"limit_ms\": 9000");
    ask_at(&ps, 0, 1100, add_n);
    visits_changed(ps.visits, 1);
    visits_tick(ps.visits, 1499);
    work(&ps, 1499);
    assert_null(ps.answer[1]);
    visits_tick(ps.visits, 1500);
    work(&ps, 1500);
    assert_non_null(ps.answer[1]);
    close_ps(&ps);
}

static void a_watcher_whose_time_is_over_hears_that_nothing_changed(void **state)
{
    struct ps ps;
    serving_ps(&ps);
    json_int_t first = version(ask_at(&ps, 0, 1000, make_n));
    ask_since(&ps, 1, first, ", \"limit_ms\": 300");
    visits_tick(ps.visits, 1299);
    work(&ps, 1299);
    assert_null(ps.answer[1]);
    visits_tick(ps.visits, 1300);
    work(&ps, 1300);
    assert_true(json_is_true(json_object_get(ps.answer[1], "unchanged")));
    assert_int_equal(version(ps.answer[1]), first);
    close_ps(&ps);
}

static void nobody_waits_longer_than_the_limit(void **state)
{
    struct ps ps;
    serving_ps(&ps);
    json_int_t first = version(ask_at(&ps, 0, 1000, make_n));
    ask_since(&ps, 1, first, ", \"limit_ms\": 100000000");
    visits_tick(ps.visits, 1000 + VISIT_WAIT_MAX_MS);
    work(&ps, 1000 + VISIT_WAIT_MAX_MS);
    assert_non_null(ps.answer[1]);
    close_ps(&ps);
}

static void watchers_of_trained_values_and_of_the_step_hear_of_updates(void **state)
{
    static const char *const names[] = {"w", "global_step"};
    for (int i = 0; i < 2; i++) {
        struct ps ps;
        char text[TEXT_MAX];
        serving_ps(&ps);
        snprintf(text, sizeof text, "{\"do\": \"get\", \"name\": \"%s\"}", names[i]);
        json_int_t first = version(ask(&ps, text));
        snprintf(text, sizeof text,
                 "{\"do\": \"get\", \"name\": \"%s\", \"since\": %lld, \"limit_ms\": 9000}",
                 names[i], (long long)first);
        assert_null(ask(&ps, text));
        ask_at(&ps, 1, 0, make_n);
        assert_null(ps.answer[0]);
        visits_changed(ps.visits, 1);
        work(&ps, 1000);
        assert_non_null(ps.answer[0]);
        close_ps(&ps);
    }
}

static void a_watcher_sees_no_values_while_a_chief_restores_them(void **state)
{
    struct ps ps;
    serving_ps(&ps);
    char text[TEXT_MAX];
    snprintf(text, sizeof text,
             "{\"do\": \"get\", \"name\": \"w\", \"since\": %lld, "
             "\"limit_ms\": 9000}",
             (long long)version(ask(&ps, "{\"do\": \"get\", \"name\": \"w\"}")));
    assert_null(ask(&ps, text));
    show(&ps, false, false);
    visits_changed(ps.visits, 0);
    work(&ps, 1000);
    assert_null(ps.answer[0]);
    show(&ps, true, false);
    visits_changed(ps.visits, 7);
    work(&ps, 1000);
    assert_non_null(ps.answer[0]);
    close_ps(&ps);
}

/* ---- what workers reply to ---- */

static void reply_of(struct ps *ps, int worker, uint64_t request_id, const char *text)
{
    visits_replied(ps->visits, worker, request_id, text, strlen(text));
}

static void reply(struct ps *ps, uint64_t request_id, const char *text)
{
    reply_of(ps, 3, request_id, text);
}

static void a_reply_goes_to_who_has_asked_for_it(void **state)
{
    struct ps ps;
    serving_ps(&ps);
    assert_null(ask_at(&ps, 0, 0, "{\"do\": \"log\", \"worker\": 3}"));
    const uint64_t first = ps.request_id;
    assert_null(ask_at(&ps, 1, 0, "{\"do\": \"profile\", \"steps\": 5}"));
    assert_true(ps.request_id != first);
    reply(&ps, ps.request_id + 1, "{}");
    assert_int_equal(ps.answers, 0);
    reply(&ps, first, "{\"lines\": [], \"next\": 1}");
    assert_non_null(json_object_get(ps.answer[0], "lines"));
    assert_null(ps.answer[1]);
    reply(&ps, first, "{}"); /* once */
    assert_int_equal(ps.answers, 1);
    reply(&ps, ps.request_id, "{\"timeline\": \"of a worker that does not lead\"}");
    assert_null(ps.answer[1]);
    reply_of(&ps, 0, ps.request_id, "{\"timeline\": \"{}\"}");
    assert_non_null(json_object_get(ps.answer[1], "timeline"));
    close_ps(&ps);
}

static const char ask_3[] = "{\"do\": \"log\", \"worker\": 3}";

/* An ask that is taken back is still replied to: it counts until then, or until the limit. */
static void one_worker_is_asked_so_much_at_a_time(void **state)
{
    struct ps ps;
    int count = 0;
    serving_ps(&ps);
    while (count < VISITORS_MAX && !ask_at(&ps, 0, 0, ask_3)) count++;
    assert_true(count > 1 && count < VISITORS_MAX);
    const uint64_t last = ps.request_id;
    assert_error(&ps, ask_3, "that worker is busy: try again", 128);
    assert_int_equal(ps.request_id, last); /* it hears nothing of it */
    assert_null(ask_at(&ps, 1, 0, "{\"do\": \"log\", \"worker\": 4}"));
    reply_of(&ps, 4, last, "{}"); /* nor may another one say so */
    assert_error(&ps, ask_3, "that worker is busy: try again", 128);
    reply(&ps, last, "{}");
    assert_null(ask_at(&ps, 0, 0, ask_3));
    assert_non_null(ask_at(&ps, 0, CHANGE_LIMIT_MS - 1, ask_3));
    assert_null(ask_at(&ps, 0, CHANGE_LIMIT_MS, ask_3));
    close_ps(&ps);
}

static void all_workers_together_are_asked_so_much_at_a_time(void **state)
{
    struct ps ps;
    char text[TEXT_MAX];
    int count = 0;
    serving_ps(&ps);
    for (bool is_taken = true; is_taken && count < WORK_MAX; count += is_taken) {
        snprintf(text, sizeof text, "{\"do\": \"log\", \"worker\": %d}", count);
        is_taken = !ask_at(&ps, 0, 0, text);
    }
    assert_true(count > VISITORS_MAX && count < WORK_MAX);
    assert_error(&ps, text, "that worker is busy: try again", 128);
    close_ps(&ps);
}

/* Of whoever says it is a worker. */
static void a_reply_that_is_none_is_told_as_such(void **state)
{
    static const char *const wrong[] = {"", "[1]", "{\"lines\"", "\xff", "17"};
    struct ps ps;
    serving_ps(&ps);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ask_at(&ps, 0, 0, "{\"do\": \"log\", \"worker\": 3}");
        reply(&ps, ps.request_id, wrong[i]);
        const char *error = json_string_value(json_object_get(ps.answer[0], "error"));
        assert_non_null(error);
        assert_non_null(strstr(error, "the reply of the worker"));
    }
    close_ps(&ps);
}

static void who_waits_for_a_reply_hears_of_its_limit_and_of_a_refusal(void **state)
{
    struct ps ps;
    serving_ps(&ps);
    ask_at(&ps, 0, 0, "{\"do\": \"log\", \"worker\": 3}");
    visits_tick(ps.visits, CHANGE_LIMIT_MS - 1);
    visits_round(ps.visits);
    work(&ps, CHANGE_LIMIT_MS - 1);
    assert_null(ps.answer[0]);
    visits_tick(ps.visits, CHANGE_LIMIT_MS);
    assert_string_equal(json_string_value(json_object_get(ps.answer[0], "error")),
                        "no worker has replied within 5 s (--step_timeout of the ps)");
    ps.refuses = true;
    assert_error(&ps, "{\"do\": \"log\", \"worker\": 3}", "that worker is not here", 128);
    close_ps(&ps);
}

/* It comes when a checkpoint is there. */
static void the_reply_to_a_setting_is_waited_for_as_long_as_it_may_take(void **state)
{
    static const char set[] = "{\"do\": \"setting\", \"name\": \"train.last_step\", \"to\": \"9\"}";
    struct ps ps;
    serving_ps(&ps);
    ask_at(&ps, 0, 0, set);
    visits_tick(ps.visits, SETTING_LIMIT_MS - 1);
    assert_null(ps.answer[0]);
    ask_at(&ps, 1, SETTING_LIMIT_MS - 1, set); /* what is due is not given up for it */
    reply_of(&ps, 0, ps.request_id - 1, "{\"step\": 7}");
    assert_int_equal(json_integer_value(json_object_get(ps.answer[0], "step")), 7);
    visits_tick(ps.visits, 2 * SETTING_LIMIT_MS - 1);
    assert_string_equal(json_string_value(json_object_get(ps.answer[1], "error")),
                        "no worker has replied within 12 s (twice --save_timeout of the ps)");
    close_ps(&ps);
}

static void a_ps_has_a_log_of_its_own(void **state)
{
    struct ps ps;
    serving_ps(&ps);
    json_t *answer = ask(&ps, "{\"do\": \"log\", \"last\": 1}");
    assert_true(json_is_array(json_object_get(answer, "lines")));
    assert_int_equal(ps.request_id, 0); /* nobody else is asked */
    close_ps(&ps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_waits_for_a_round_where_workers_look_at_the_values),
        cmocka_unit_test(what_waits_for_a_round_is_no_work),
        cmocka_unit_test(a_watcher_that_is_not_due_is_no_work),
        cmocka_unit_test(a_shared_variable_waits_for_no_round),
        cmocka_unit_test(a_change_that_waited_too_long_is_not_made),
        cmocka_unit_test(a_visitor_that_leaves_or_asks_again_takes_its_change_back),
        cmocka_unit_test(a_change_that_waits_hears_that_the_job_ends),
        cmocka_unit_test(a_change_is_made_when_workers_look_no_more),
        cmocka_unit_test(a_watcher_is_answered_when_the_value_changes),
        cmocka_unit_test(a_watcher_of_an_old_version_is_answered_at_once),
        cmocka_unit_test(a_watcher_is_not_answered_more_often_than_it_asked_for),
        cmocka_unit_test(a_watcher_whose_time_is_over_hears_that_nothing_changed),
        cmocka_unit_test(nobody_waits_longer_than_the_limit),
        cmocka_unit_test(watchers_of_trained_values_and_of_the_step_hear_of_updates),
        cmocka_unit_test(a_reply_goes_to_who_has_asked_for_it),
        cmocka_unit_test(a_reply_that_is_none_is_told_as_such),
        cmocka_unit_test(one_worker_is_asked_so_much_at_a_time),
        cmocka_unit_test(all_workers_together_are_asked_so_much_at_a_time),
        cmocka_unit_test(who_waits_for_a_reply_hears_of_its_limit_and_of_a_refusal),
        cmocka_unit_test(the_reply_to_a_setting_is_waited_for_as_long_as_it_may_take),
        cmocka_unit_test(a_ps_has_a_log_of_its_own),
        cmocka_unit_test(a_watcher_sees_no_values_while_a_chief_restores_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
