/* test_rules.c - the rules of dtrain status, by deliberate faults. */
#include "cmd/status/rules.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

enum { PS = 2, WORKERS = 4, TASKS = PS + WORKERS, NOW_MS = 1000000 };

/* A job with which nothing is wrong. */
struct job {
    struct task_status tasks[TASKS];
};

static struct task_status *ps(struct job *job, int i)
{
    return &job->tasks[i];
}

static struct task_status *worker(struct job *job, int i)
{
    return &job->tasks[PS + i];
}

static struct job healthy(void)
{
    struct job job = {0};
    for (int i = 0; i < TASKS; i++) {
        struct task_status *t = &job.tasks[i];
        double *at = t->counters.at;
        t->is_ps = i < PS;
        t->index = t->is_ps ? i : i - PS;
        t->heard_ms = NOW_MS - 500;
        snprintf(t->task, sizeof t->task, "%s/%d", t->is_ps ? "ps" : "worker", t->index);
        at[COUNTER_UPTIME] = at[COUNTER_PEERS_STEADY] = 600;
        at[COUNTER_CLOCK] = 1e9 - 0.5;
        at[COUNTER_PEERS] = at[COUNTER_PEERS_UP] = t->is_ps ? WORKERS : PS;
        at[COUNTER_GENERATION] = 1;
        at[COUNTER_DENSE_BYTES] = t->is_ps ? 1e8 : 0;
        at[COUNTER_UPDATES] = t->is_ps ? 400 : 0;
        at[COUNTER_TIME_APPLY] = t->is_ps ? 60 : 0;
        if (t->is_ps) continue;
        at[COUNTER_STEPS] = 100;
        at[COUNTER_TIME_COMPUTE] = 100;
        at[COUNTER_TIME_DATA] = 2;
        at[COUNTER_TIME_OTHERS] = 20;
        at[COUNTER_LOSS] = 0.5;
        at[COUNTER_IS_CHIEF] = t->index == 0;
        at[COUNTER_SAVES_TO] = 1;
        at[COUNTER_CHECKPOINT_TIME] = t->index == 0 ? 1e9 - 60 : 0;
    }
    return job;
}

static int apply(const struct job *job, struct finding ret[FINDINGS_MAX])
{
    const struct job_facts facts = {job->tasks, TASKS, NOW_MS, 1e9, true, NULL, 0};
    return rules_apply(&facts, ret);
}

static void finds(const struct job *job, const char *rule, const char *text)
{
    struct finding found[FINDINGS_MAX];
    const int count = apply(job, found);
    for (int i = 0; i < count; i++)
        if (strcmp(found[i].rule, rule) == 0 && strstr(found[i].text, text)) return;
    for (int i = 0; i < count; i++) print_error("%s: %s\n", found[i].rule, found[i].text);
    fail_msg("no %s: %s", rule, text);
}

static void nothing_is_found_where_nothing_is_wrong(void **state)
{
    struct finding found[FINDINGS_MAX];
    const struct job job = healthy();
    const struct job_facts nobody = {job.tasks, 0, NOW_MS, 1e9, true, NULL, 0};
    assert_int_equal(apply(&job, found), 0);
    assert_int_equal(rules_apply(&nobody, found), 0);
}

static void a_slow_worker_is_named_with_what_it_does(void **state)
{
    static const struct {
        enum counter time;
        const char *doing;
    } faults[] = {{COUNTER_TIME_DATA, "it waits for data"},
                  {COUNTER_TIME_COMPUTE, "it computes longer"},
                  {COUNTER_TIME_PUSH, "its gradients leave slowly"},
                  {COUNTER_TIME_PULL, "values come slowly"},
                  {COUNTER_TIME_HOOKS, "its hooks take time"}};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct job job = healthy();
        char text[FINDING_TEXT_MAX];
        worker(&job, 3)->counters.at[faults[i].time] += 112.2;
        snprintf(text, sizeof text, "worker/3 is 2.1 x slower than the median (2.14 s a step): %s",
                 faults[i].doing);
        finds(&job, "slow_worker", text);
    }
    struct job job = healthy(); /* it waits for a slow one, and is none itself */
    struct finding found[FINDINGS_MAX];
    worker(&job, 1)->counters.at[COUNTER_TIME_OTHERS] = 500;
    assert_int_equal(apply(&job, found), 0);
    for (int i = 0; i < WORKERS; i++) worker(&job, i)->counters.at[COUNTER_STALENESS_COUNT] = 99;
    finds(&job, "slow_worker",
          "worker/1 is 4.9 x slower than the median (6.02 s a step): it is "
          "answered late"); /* asynchronously nobody waits for others */
}

/* Of which a part of a millisecond is no news: so much a line of a log takes, or another program.
 */
static void of_short_steps_a_trifle_more_is_not_named(void **state)
{
    struct finding found[FINDINGS_MAX];
    struct job job = healthy();
    for (int i = 0; i < WORKERS; i++) worker(&job, i)->counters.at[COUNTER_STEPS] = 1e6;
    worker(&job, 1)->counters.at[COUNTER_TIME_HOOKS] = 900;
    assert_int_equal(apply(&job, found), 0);
    worker(&job, 1)->counters.at[COUNTER_TIME_HOOKS] = 1100;
    finds(&job, "slow_worker", "worker/1 is 11.8 x slower than the median (0.0012 s a step): its");
}

static void what_those_did_that_have_left_is_no_measure(void **state)
{
    struct finding found[FINDINGS_MAX];
    struct job job = healthy();
    for (int i = 0; i < WORKERS; i++) worker(&job, i)->counters.at[COUNTER_TIME_COMPUTE] += 200;
    for (int i = 1; i < WORKERS; i++) {
        worker(&job, i)->counters.at[COUNTER_TIME_COMPUTE] -= 200; /* as fast as they were */
        snprintf(worker(&job, i)->state, STATUS_STATE_MAX, "%s", task_status_gone);
    }
    const int count = apply(&job, found);
    for (int i = 0; i < count; i++) assert_string_not_equal(found[i].rule, "slow_worker");
}

static void a_worker_that_rounds_wait_for_is_named_once(void **state)
{
    struct finding found[FINDINGS_MAX];
    struct job job = healthy();
    ps(&job, 1)->counters.at[COUNTER_LATE] = 240;
    ps(&job, 1)->counters.at[COUNTER_LATEST] = 3;
    finds(&job, "late_worker", "worker/3 is waited for 40 % of the time");
    worker(&job, 3)->counters.at[COUNTER_TIME_COMPUTE] = 300; /* which says why */
    finds(&job, "slow_worker", "worker/3 is ");
    assert_int_equal(apply(&job, found), 1);
    job = healthy();
    ps(&job, 1)->counters.at[COUNTER_LATE] = 240;
    for (int i = 0; i < PS; i++) ps(&job, i)->counters.at[COUNTER_UPDATES] = 1e6;
    assert_int_equal(apply(&job, found), 0);
}

/* The last seconds of a job that was well for ten minutes. */
static struct job turned(void)
{
    struct job job = healthy();
    for (int i = 0; i < WORKERS; i++) {
        struct task_status *t = worker(&job, i);
        t->recent_s = 20;
        t->recent.at[COUNTER_STEPS] = 50;
        t->recent.at[COUNTER_TIME_COMPUTE] = 15;
        t->recent.at[COUNTER_TIME_DATA] = 1;
    }
    return job;
}

static void a_worker_that_has_left_is_not_missing(void **state)
{
    struct finding found[FINDINGS_MAX];
    struct job job = healthy();
    worker(&job, 3)->heard_ms = NOW_MS - 42000;
    worker(&job, 3)->counters.at[COUNTER_CLOCK] = 1e9 - 42;
    snprintf(worker(&job, 3)->state, STATUS_STATE_MAX, "%s", task_status_gone);
    ps(&job, 0)->counters.at[COUNTER_PEERS_UP] = 3;
    assert_int_equal(apply(&job, found), 0);
    ps(&job, 0)->counters.at[COUNTER_PEERS_UP] = 2;
    worker(&job, 2)->index = 1; /* nothing is known of it */
    finds(&job, "missing", "ps/0 is not connected to 1 of 4 workers: worker/2");
}

static void what_is_wrong_since_a_moment_is_named(void **state)
{
    struct finding found[FINDINGS_MAX];
    struct job job = turned();
    assert_int_equal(apply(&job, found), 0);
    worker(&job, 2)->recent.at[COUNTER_TIME_COMPUTE] = 31;
    finds(&job, "slow_worker", "worker/2 is 2.0 x slower than the median (0.64 s a step)");
    job = turned(); /* its link is so slow that it hardly takes a step */
    worker(&job, 2)->recent = (struct counters){0};
    worker(&job, 2)->recent.at[COUNTER_STEPS] = 2;
    worker(&job, 2)->recent.at[COUNTER_TIME_PULL] = 19.2;
    finds(&job, "slow_worker", "worker/2 is 20.0 x slower than the median (6.4 s a step): values");
    job = turned(); /* an evaluation takes so long */
    worker(&job, 0)->recent = (struct counters){0};
    worker(&job, 0)->recent.at[COUNTER_TIME_HOOKS] = 20;
    assert_int_equal(apply(&job, found), 0);
    job = turned();
    worker(&job, 1)->recent = (struct counters){0}; /* its reader stands still */
    worker(&job, 1)->recent.at[COUNTER_TIME_DATA] = 19;
    finds(&job, "starved", "worker/1 waits for data 100 % of its time");
    job = turned();
    for (int i = 0; i < WORKERS; i++) worker(&job, i)->counters.at[COUNTER_TIME_DATA] = 80;
    assert_int_equal(apply(&job, found), 0); /* that is over */
    job = turned();
    ps(&job, 1)->recent_s = 20;
    ps(&job, 1)->recent.at[COUNTER_TIME_APPLY] = 18;
    finds(&job, "busy_ps", "ps/1 updates values 90 % of its time");
}

/* The last that is known of one may be a second older than of the other. */
static void ps_that_tell_at_different_moments_are_equal(void **state)
{
    struct finding found[FINDINGS_MAX];
    struct job job = healthy();
    for (int i = 0; i < PS; i++) {
        ps(&job, i)->counters.at[COUNTER_UPDATES] = i ? 60 : 20;
        ps(&job, i)->counters.at[COUNTER_SENT_VALUES] = i ? 60e6 : 20e6;
    }
    assert_int_equal(apply(&job, found), 0);
}

/* Of which only one or two are taken in the last seconds */
static void a_slow_worker_is_named_where_steps_are_long(void **state)
{
    struct finding found[FINDINGS_MAX];
    struct job job = healthy();
    for (int i = 0; i < WORKERS; i++) {
        struct task_status *t = worker(&job, i);
        t->recent_s = 20;
        t->recent.at[COUNTER_STEPS] = 1 + i % 2;
        t->recent.at[COUNTER_TIME_COMPUTE] = 10 * (2 - i % 2);
    }
    assert_int_equal(apply(&job, found), 0);
    worker(&job, 3)->counters.at[COUNTER_TIME_COMPUTE] = 200;
    finds(&job, "slow_worker", "worker/3 is 2.0 x slower than the median (2.02 s a step)");
}

static void faults_of_the_job_are_named(void **state)
{
    struct job job = healthy();
    for (int i = 0; i < WORKERS; i++) worker(&job, i)->counters.at[COUNTER_TIME_DATA] = 80;
    finds(&job, "starved", "wait for data 40 %");
    job = healthy();
    ps(&job, 1)->counters.at[COUNTER_TABLE_BYTES] = 9e8;
    finds(&job, "unequal_ps", "ps/1 holds 91 % of the bytes of 2 ps");
    job = healthy();
    ps(&job, 0)->counters.at[COUNTER_SENT_VALUES] = 9e9;
    finds(&job, "unequal_ps", "ps/0 moves 100 % of the bytes");
    job = healthy();
    worker(&job, 2)->heard_ms = NOW_MS - 42000;
    finds(&job, "silent", "worker/2 has sent nothing for 42 s");
    job = healthy();
    worker(&job, 1)->counters.at[COUNTER_LOSS] = (double)NAN;
    finds(&job, "loss", "the loss of worker/1 is not finite");
    job = healthy();
    ps(&job, 0)->counters.at[COUNTER_PEERS_UP] = 3;
    finds(&job, "missing", "ps/0 is not connected to 1 of 4 workers");
    worker(&job, 2)->index = 1; /* nothing is known of it */
    finds(&job, "missing", "ps/0 is not connected to 1 of 4 workers: worker/2");
    worker(&job, 2)->index = 2;
    for (int i = 0; i < WORKERS; i++) worker(&job, i)->counters.at[COUNTER_PEERS] = PS + 1;
    finds(&job, "missing", "nothing is known of 1 of 3 ps: --ps_hosts names too few");
    job = healthy();
    ps(&job, 0)->counters.at[COUNTER_PEERS_LOST] = 5;
    finds(&job, "unstable", "ps/0 has lost its workers 5 times");
    job = healthy();
    worker(&job, 0)->counters.at[COUNTER_WITHOUT_PS] = 1;
    finds(&job, "without", "the job continues without 1 ps");
    job = healthy();
    ps(&job, 1)->counters.at[COUNTER_TIME_APPLY] = 540;
    finds(&job, "busy_ps", "ps/1 updates values 90 % of its time");
    job = healthy();
    for (int i = 0; i < TASKS; i++) {
        job.tasks[i].counters.at[COUNTER_MEMORY_LIMIT] = 16e9;
        job.tasks[i].counters.at[COUNTER_MEMORY_LEFT] = i == 1 ? 0.8e9 : i == 2 ? 1.5e9 : 9e9;
    }
    finds(&job, "memory", "ps/1, as 1 more, has little memory left, 0.8 of 16 GB");
    job = healthy();
    ps(&job, 1)->counters.at[COUNTER_THROTTLED] = 240;
    finds(&job, "throttled", "ps/1 is held up by its CPU quota in 40 % of the time");
    job = healthy();
    worker(&job, 2)->counters.at[COUNTER_RETRIES] = 4;
    finds(&job, "retries", "worker/2 has had to ask storage or the coordinator again 4 times");
    worker(&job, 2)->counters.at[COUNTER_RETRIES] = 40;
    finds(&job, "retries", "worker/2 had to ask storage or the coordinator again 40 times lately");
    worker(&job, 2)->recent_s = 20;
    finds(&job, "retries", "worker/2 has had to ask storage or the coordinator again 40 times");
    job = healthy();
    ps(&job, 0)->counters.at[COUNTER_DROPPED_STALE] = 100;
    finds(&job, "dropped", "20 % of the gradients came too late");
    job = healthy();
    worker(&job, 0)->counters.at[COUNTER_QUEUED] = 1e8;
    finds(&job, "queue", "100 MB wait to leave worker/0");
    job = healthy();
    worker(&job, 0)->counters.at[COUNTER_STALENESS_SUM] = 1000;
    worker(&job, 0)->counters.at[COUNTER_STALENESS_COUNT] = 100;
    finds(&job, "stale", "10.0 updates old in the mean, with 4 workers");
    job = healthy();
    worker(&job, 0)->counters.at[COUNTER_CHECKPOINTS] = 20;
    worker(&job, 0)->counters.at[COUNTER_CHECKPOINT_SECONDS] = 25;
    finds(&job, "checkpoints", "a checkpoint takes 25 s, and one is begun every 30 s");
    job = healthy();
}

static void what_was_set_is_no_loss(void **state)
{
    struct job job = healthy();
    ps(&job, 0)->counters.at[COUNTER_GENERATION] = 3;
    finds(&job, "events", "all tasks have begun anew 2 times: after a loss");
    ps(&job, 0)->counters.at[COUNTER_SETTINGS] = 1;
    finds(&job, "events", "all tasks have begun anew 1 times: after a loss");
    finds(&job, "events", "all tasks have begun anew 1 times for dtrain set");
    ps(&job, 0)->counters.at[COUNTER_GENERATION] = 2;
    finds(&job, "events", "all tasks have begun anew 1 times for dtrain set");
}

/* By when each has told it; ps and workers may have told nothing for a while. */
static void a_clock_that_is_off_is_named(void **state)
{
    struct finding found[FINDINGS_MAX];
    struct job job = healthy();
    worker(&job, 1)->counters.at[COUNTER_CLOCK] += 40;
    finds(&job, "clocks", "the clock of worker/1 is 40 s ahead of the others'");
    worker(&job, 1)->counters.at[COUNTER_CLOCK] -= 3640;
    finds(&job, "clocks", "the clock of worker/1 is 3600 s behind the others'");
    assert_int_equal(apply(&job, found), 1);
    job = healthy();
    worker(&job, 1)->heard_ms -= 20000;
    worker(&job, 1)->counters.at[COUNTER_CLOCK] -= 20;
    ps(&job, 1)->counters.at[COUNTER_CLOCK] = 0; /* it has told nothing yet */
    assert_int_equal(apply(&job, found), 0);
    for (int i = 0; i < TASKS; i++) job.tasks[i].counters.at[COUNTER_CLOCK] += 500; /* ours is */
    ps(&job, 1)->counters.at[COUNTER_CLOCK] = 0;
    worker(&job, 0)->counters.at[COUNTER_CHECKPOINT_TIME] += 500;
    worker(&job, 0)->counters.at[COUNTER_UPTIME] = 1e6;
    assert_int_equal(apply(&job, found), 0);
}

static void a_ps_that_does_not_answer_is_named(void **state)
{
    const struct job job = healthy();
    struct finding found[FINDINGS_MAX];
    const struct unanswered unanswered[] = {{3, 10000, ""}, {4, 0, "Connection refused"}};
    const struct job_facts facts = {job.tasks, TASKS, NOW_MS, 1e9, true, unanswered, 2};
    assert_int_equal(rules_apply(&facts, found), 2);
    assert_non_null(strstr(found[0].text, "ps/3 does not answer (10 s): it is busy or stopped"));
    assert_non_null(strstr(found[1].text, "ps/4 does not answer: Connection refused"));
}

static void of_many_silent_ps_some_are_named_and_the_rest_is_counted(void **state)
{
    enum { SILENT_PS = 100, NAMED = 8 };
    struct job job = healthy();
    struct finding found[FINDINGS_MAX];
    struct unanswered unanswered[SILENT_PS] = {0};
    for (int i = 0; i < SILENT_PS; i++) unanswered[i] = (struct unanswered){i + PS, 10000, ""};
    const struct job_facts facts = {job.tasks, TASKS, NOW_MS, 1e9, true, unanswered, SILENT_PS};
    worker(&job, 1)->counters.at[COUNTER_LOSS] = (double)NAN;
    assert_int_equal(rules_apply(&facts, found), NAMED + 2);
    assert_string_equal(found[NAMED].text, "92 more ps do not answer");
    assert_string_equal(found[NAMED + 1].rule, "loss");
}

static void a_worker_that_has_never_told_anything_is_named(void **state)
{
    struct job job = healthy();
    struct finding found[FINDINGS_MAX];
    const struct job_facts facts = {job.tasks, TASKS - 1, NOW_MS, 1e9, true, NULL, 0};
    assert_int_equal(rules_apply(&facts, found), 1);
    assert_non_null(strstr(
        found[0].text, "nothing has been heard of 1 of 4 workers: worker/3, connected for 600 s"));
    ps(&job, 0)->counters.at[COUNTER_PEERS_STEADY] = 10; /* it has just come */
    ps(&job, 0)->counters.at[COUNTER_TIME_APPLY] = 1;
    assert_int_equal(rules_apply(&facts, found), 0);
}

/* As ps/0 alone knows it, on its page. */
static void who_hears_of_one_ps_misses_no_other(void **state)
{
    const struct job job = healthy();
    struct finding found[FINDINGS_MAX];
    struct task_status tasks[TASKS - 1];
    tasks[0] = job.tasks[0];
    memcpy(tasks + 1, job.tasks + PS, WORKERS * sizeof *tasks);
    struct job_facts facts = {tasks, TASKS - 1, NOW_MS, 1e9, true, NULL, 0};
    assert_int_equal(rules_apply(&facts, found), 1);
    assert_non_null(strstr(found[0].text, "nothing is known of 1 of 2 ps"));
    facts.all_asked = false;
    assert_int_equal(rules_apply(&facts, found), 0);
}

static void checkpoints_that_are_old_or_fail_are_named(void **state)
{
    struct job job = healthy();
    double *at = worker(&job, 0)->counters.at;
    at[COUNTER_UPTIME] = 7200;
    at[COUNTER_CHECKPOINT_TIME] = 1e9 - 2400;
    finds(&job, "checkpoints", "no checkpoint for 40 min");
    at[COUNTER_CHECKPOINT_TIME] = 1e9 - 60;
    at[COUNTER_CHECKPOINT_SECONDS] = 90;
    finds(&job, "checkpoints", "the last checkpoint took 90 s");
    at[COUNTER_CHECKPOINT_SECONDS] = 1;
    at[COUNTER_SAVING] = 75;
    finds(&job, "checkpoints", "the checkpoint being made has taken 75 s so far");
    at[COUNTER_SAVING] = 0;
    at[COUNTER_CHECKPOINT_TIME] = 0;
    finds(&job, "checkpoints", "no checkpoint for 120 min");
    at[COUNTER_SAVES_TO] = 0;
    finds(&job, "checkpoints", "nothing is saved");
    at[COUNTER_CHECKPOINT_FAILURES] = 3;
    finds(&job, "checkpoints", "3 checkpoints have failed");
    at[COUNTER_CHECKPOINT_FAILURES] = 0;
    at[COUNTER_DELTA_FAILURES] = 2;
    finds(&job, "checkpoints", "2 deltas for servers (train.publish) have failed since worker/0");
}

/* What a chief that is gone has told stays. */
static void the_chief_is_the_last_to_have_come_to_lead(void **state)
{
    struct job job = healthy();
    struct finding found[FINDINGS_MAX];
    assert_ptr_equal(tasks_chief(job.tasks, TASKS), worker(&job, 0));
    worker(&job, 3)->counters.at[COUNTER_IS_CHIEF] = 1;
    worker(&job, 3)->counters.at[COUNTER_TERM] = 3;
    worker(&job, 3)->counters.at[COUNTER_CHECKPOINT_FAILURES] = 2;
    assert_ptr_equal(tasks_chief(job.tasks, TASKS), worker(&job, 3));
    finds(&job, "checkpoints", "2 checkpoints have failed since worker/3 came");
    worker(&job, 0)->counters.at[COUNTER_TERM] = 4;
    assert_ptr_equal(tasks_chief(job.tasks, TASKS), worker(&job, 0));
    assert_int_equal(apply(&job, found), 0);
    assert_null(tasks_chief(job.tasks, PS));
}

/* Whatever tasks say, which may be lies. */
static void any_numbers_are_looked_at(void **state)
{
    static const double numbers[] = {0, 1, 1e-300, 1e300, 9e15};
    struct finding found[FINDINGS_MAX];
    for (int c = 0; c < COUNTERS; c++)
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
            struct job job = healthy();
            for (int t = 0; t < TASKS; t++) job.tasks[t].counters.at[c] = numbers[i];
            const int count = apply(&job, found);
            assert_in_range(count, 0, FINDINGS_MAX);
            for (int k = 1; k < count; k++) assert_true(found[k - 1].level >= found[k].level);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_found_where_nothing_is_wrong),
        cmocka_unit_test(a_slow_worker_is_named_with_what_it_does),
        cmocka_unit_test(of_short_steps_a_trifle_more_is_not_named),
        cmocka_unit_test(what_those_did_that_have_left_is_no_measure),
        cmocka_unit_test(a_worker_that_rounds_wait_for_is_named_once),
        cmocka_unit_test(a_worker_that_has_left_is_not_missing),
        cmocka_unit_test(what_is_wrong_since_a_moment_is_named),
        cmocka_unit_test(ps_that_tell_at_different_moments_are_equal),
        cmocka_unit_test(a_slow_worker_is_named_where_steps_are_long),
        cmocka_unit_test(faults_of_the_job_are_named),
        cmocka_unit_test(what_was_set_is_no_loss),
        cmocka_unit_test(a_clock_that_is_off_is_named),
        cmocka_unit_test(a_ps_that_does_not_answer_is_named),
        cmocka_unit_test(of_many_silent_ps_some_are_named_and_the_rest_is_counted),
        cmocka_unit_test(a_worker_that_has_never_told_anything_is_named),
        cmocka_unit_test(who_hears_of_one_ps_misses_no_other),
        cmocka_unit_test(checkpoints_that_are_old_or_fail_are_named),
        cmocka_unit_test(the_chief_is_the_last_to_have_come_to_lead),
        cmocka_unit_test(any_numbers_are_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
