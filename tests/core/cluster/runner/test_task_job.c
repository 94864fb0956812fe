/* test_task_job.c - work beside the loop: told where it was asked for, once, with its words. */
#include "core/base/error.h"
#include "core/cluster/runner/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

enum { LOOKS_MAX = 600, LOOK_MS = 100, AGAIN = 3 };

/* A job and what became of it. */
struct work {
    struct task_job job;
    struct loop *loop;
    pthread_t ran_in, told_in;
    int runs, told;
    bool was_idle; /* when it was told */
    err result;
    char text[ACTION_TEXT_MAX];
};

static err run_well(void *context)
{
    struct work *w = context;
    w->ran_in = pthread_self();
    w->runs++;
    return OK;
}

static err run_badly(void *context)
{
    ((struct work *)context)->runs++;
    return (fail)(ERR_IO, "disk %d is full", 7);
}

static void done(void *context, err result)
{
    struct work *w = context;
    w->told_in = pthread_self();
    w->told++;
    w->was_idle = !w->job.is_running;
    w->result = result;
    if (result) snprintf(w->text, sizeof w->text, "%s", error_text());
}

static void done_and_again(void *context, err result)
{
    struct work *w = context;
    done(context, result);
    if (w->told < AGAIN) assert_int_equal(task_job_start(&w->job), OK);
}

static void begin(struct work *w, err (*run)(void *), void (*told)(void *, err))
{
    *w = (struct work){.job = {.run = run, .done = told, .context = w}};
    assert_int_equal(loop_open(&w->loop), OK);
    w->job.loop = w->loop;
}

static void wait_until_told(struct work *w, int times)
{
    for (int i = 0; i < LOOKS_MAX && w->told < times; i++) loop_poll(w->loop, LOOK_MS);
    assert_int_equal(w->told, times);
}

static void it_runs_beside_the_loop_and_is_told_within_it(void **state)
{
    struct work w;
    begin(&w, run_well, done);
    assert_int_equal(task_job_start(&w.job), OK);
    assert_true(w.job.is_running);
    wait_until_told(&w, 1);
    assert_false(pthread_equal(w.ran_in, pthread_self()));
    assert_true(pthread_equal(w.told_in, pthread_self()));
    assert_int_equal(w.result, OK);
    assert_true(w.was_idle);
    assert_false(loop_poll(w.loop, 0)); /* nothing more comes */
    assert_int_equal(w.told, 1);
    loop_close(w.loop);
}

static void an_error_comes_with_its_words(void **state)
{
    struct work w;
    begin(&w, run_badly, done);
    assert_int_equal(task_job_start(&w.job), OK);
    wait_until_told(&w, 1);
    assert_int_equal(w.result, ERR_IO);
    assert_string_equal(w.text, "disk 7 is full");
    loop_close(w.loop);
}

static void whoever_is_told_may_start_it_again(void **state)
{
    struct work w;
    begin(&w, run_well, done_and_again);
    assert_int_equal(task_job_start(&w.job), OK);
    wait_until_told(&w, AGAIN);
    assert_int_equal(w.runs, AGAIN);
    assert_false(w.job.is_running);
    loop_close(w.loop);
}

static void closing_waits_for_the_thread_and_tells_nothing(void **state)
{
    struct work w;
    begin(&w, run_well, done);
    assert_int_equal(task_job_start(&w.job), OK);
    task_job_close(&w.job);
    assert_int_equal(w.runs, 1);
    assert_false(w.job.is_running);
    assert_false(loop_poll(w.loop, 0));
    assert_int_equal(w.told, 0);
    task_job_close(&w.job); /* an idle one: nothing to wait for */
    loop_close(w.loop);
}

static void without_a_descriptor_it_does_not_start(void **state)
{
    struct work w;
    struct rlimit kept, none;
    begin(&w, run_well, done);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &kept), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = kept.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    err e = task_job_start(&w.job);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &kept), 0);
    assert_int_equal(e, ERR_IO);
    assert_non_null(strstr(error_text(), "eventfd"));
    assert_false(w.job.is_running);
    assert_int_equal(task_job_start(&w.job), OK);
    wait_until_told(&w, 1);
    loop_close(w.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_runs_beside_the_loop_and_is_told_within_it),
        cmocka_unit_test(an_error_comes_with_its_words),
        cmocka_unit_test(whoever_is_told_may_start_it_again),
        cmocka_unit_test(closing_waits_for_the_thread_and_tells_nothing),
        cmocka_unit_test(without_a_descriptor_it_does_not_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
