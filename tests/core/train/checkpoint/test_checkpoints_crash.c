/* test_checkpoints_crash.c - whatever fails and whenever the chief is killed, the folder's newest
 * checkpoint is whole, and nothing is left behind for ever. */
#include "tests/core/train/checkpoint/run.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/random.h"
#include "core/train/hooks/best_keeper.h"
#include "tests/core/train/checkpoint/faults.h"

enum {
    CALLS_MAX = 400, /* more than publishing takes */
    CALLS_MIN = 20,  /* less than it takes, so that the loop is known to have reached them */
    KILLS = 40,
    PAUSES_MAX = 4000,
    PAUSE_NS = 500,
    NOW = 1700000000,
    FILES = 1 + 2 * (RUN_SHARDS + 1), /* of a folder that keeps two */
};

/* What the child or the failing call does: publishes `step` into a folder that holds 1 and 2. */
struct attempt {
    uint64_t step;
    float value, value_before; /* of the newest: after it, and if it did not happen */
};
static const struct attempt attempts[] = {
    {.step = 3, .value = 3, .value_before = 2},
    {.step = 2, .value = 70, .value_before = 2}, /* the same again */
};

static void prepare(const char *folder)
{
    struct checkpoints *c = run_open(folder, 2, NOW);
    run_publish(c, 1, NOW);
    run_publish(c, 2, NOW);
    checkpoints_close(c);
}

/* All that are listed are whole; what the newest holds is returned. */
static float check_all(const struct checkpoints *c)
{
    float newest = -1;
    for (int i = 0; checkpoints_newest(c, i); i++) {
        struct bundle *bundle = NULL;
        float values[RUN_SHARDS * RUN_FLOATS];
        const char *prefix = checkpoints_newest(c, i);
        if (bundle_open(prefix, &bundle) || bundle_verify(bundle)) fail_msg("%s", error_text());
        assert_int_equal(bundle_read(bundle, bundle_find(bundle, "w"), NULL, values, sizeof values),
                         OK);
        bundle_close(bundle);
        run_check(prefix, values[0]);
        if (i == 0) newest = values[0];
    }
    return newest;
}

/* After whatever happened: another process opens the folder, continues, and nothing is left over.
 */
static void check_goes_on(const char *folder)
{
    struct checkpoints *c = run_open(folder, 2, NOW);
    check_all(c);
    run_publish(c, 4, NOW);
    run_publish(c, 5, NOW);
    assert_string_equal(run_list(folder), "model.ckpt-4 model.ckpt-5");
    assert_int_equal(folder_count(folder, "*"), FILES);
    checkpoints_close(c);
}

/* false: publishing takes less calls than that */
static bool fail_at(const char *folder, const struct attempt *attempt, int call, int error)
{
    struct checkpoints *c = run_open(folder, 2, NOW);
    faults_arm(call, error);
    const err e = run_try(c, attempt->step, attempt->value, NOW);
    const bool has_struck = faults_disarm();
    if (e) {
        assert_int_equal(e, ERR_IO);
        assert_non_null(strstr(error_text(), checkpoints_directory(c)));
    }
    assert_true(check_all(c) == (e ? attempt->value_before : attempt->value));
    checkpoints_close(c);
    assert_true(e == OK || has_struck);
    return has_struck;
}

static void each_system_call_that_fails_leaves_the_old_checkpoint_or_the_new_one(void **state)
{
    static const int errors[] = {ENOSPC, EIO};
    for (int i = 0; i < 2; i++) {
        int call = 1;
        for (; call <= CALLS_MAX; call++) {
            char name[64];
            snprintf(name, sizeof name, "run-%d-%d", i, call);
            char *folder = strdup(folder_path(*state, name));
            prepare(folder);
            const bool has_struck = fail_at(folder, &attempts[i], call, errors[i]);
            check_goes_on(folder);
            free(folder);
            if (!has_struck) break;
        }
        assert_in_range(call, CALLS_MIN, CALLS_MAX);
    }
}

/* A child that is killed in its call number `call`. true: it was; false: it ended before. */
static bool kill_at(const char *folder, const struct attempt *attempt, int call)
{
    int status = 0;
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct checkpoints *c = run_open(folder, 2, NOW);
        faults_arm(call, 0);
        _exit(run_try(c, attempt->step, attempt->value, NOW) ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status)) assert_int_equal(WEXITSTATUS(status), 0);
    return WIFSIGNALED(status);
}

static void killed_in_any_system_call_the_newest_is_whole(void **state)
{
    for (int i = 0; i < 2; i++) {
        float newest = attempts[i].value_before;
        int call = 1;
        for (; call <= CALLS_MAX; call++) {
            char name[64];
            snprintf(name, sizeof name, "run-%d-%d", i, call);
            char *folder = strdup(folder_path(*state, name));
            prepare(folder);
            const bool was_killed = kill_at(folder, &attempts[i], call);
            char prefix[CHECKPOINT_PATH_MAX];
            assert_int_equal(checkpoint_find(folder, prefix), OK); /* as others see it */
            struct checkpoints *c = run_open(folder, 2, NOW);
            const float value = check_all(c);
            run_check(prefix, value);
            assert_true(value == newest || value == attempts[i].value);
            newest = value; /* once the new one counts it always does */
            checkpoints_close(c);
            check_goes_on(folder);
            free(folder);
            if (!was_killed) break;
        }
        assert_in_range(call, CALLS_MIN, CALLS_MAX);
        assert_true(newest == attempts[i].value);
    }
}

/* ---- the best one ---- */

enum {
    BEST_FILES = 3 + RUN_SHARDS + 1
}; /* of a folder that keeps one: with its lists and measured.json */

/* Keeps the checkpoint of this step, which is better than those before. */
static err keep_best(const char *folder, int step)
{
    struct best_checkpoints best;
    struct best_offer offer = {.entry = {step, 1.0 / step}};
    snprintf(offer.prefix, sizeof offer.prefix, "%s/model.ckpt-%d", folder, step);
    TRY(best_checkpoints_open(&best, folder, "loss", BETTER_LESS, 1));
    return best_keep(&best, folder, &offer);
}

static bool kill_keeper_at(const char *folder, int call)
{
    int status = 0;
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        faults_arm(call, 0);
        _exit(keep_best(folder, 2) ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status)) assert_int_equal(WEXITSTATUS(status), 0);
    return WIFSIGNALED(status);
}

/* All that fits has been there for so long that its holder cannot live. */
static void make_old(const char *folder, const char *pattern, time_t age_s)
{
    const time_t then = time(NULL) - age_s;
    const struct timespec times[] = {{.tv_sec = then}, {.tv_sec = then}};
    char path[FOLDER_PATH_MAX];
    glob_t found;
    snprintf(path, sizeof path, "%s/%s", folder, pattern);
    if (glob(path, 0, NULL, &found)) return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        assert_int_equal(utimensat(AT_FDCWD, found.gl_pathv[i], times, 0), 0);
    globfree(&found);
}

static void killed_while_it_keeps_the_best_one_it_leaves_nothing_for_ever(void **state)
{
    int call = 1;
    for (bool was_killed = true; was_killed && call <= CALLS_MAX; call++) {
        char name[64];
        snprintf(name, sizeof name, "run-%d", call);
        char *folder = strdup(folder_path(*state, name));
        prepare(folder);
        file_write(folder, "measured.json", "{}");
        assert_int_equal(keep_best(folder, 1), OK);
        was_killed = kill_keeper_at(folder, call);
        const time_t age_s = 5 + (call % 2 ? (time_t)LEASE_MAX_S : (time_t)(24 * 60 * 60));
        make_old(folder, ".lease-*", age_s);
        make_old(folder, "best/*.tempstate*", age_s);
        const double now_s = (double)time(NULL);
        struct checkpoints *c = run_open(folder, 2, now_s);
        for (int step = 3; step <= 5; step++) run_publish(c, step, now_s); /* 2 is not kept */
        checkpoints_close(c);
        if (keep_best(folder, 5)) fail_msg("%s", error_text());
        assert_int_equal(folder_count(folder, ".lease-*"), 0);
        assert_int_equal(folder_count(folder_path(folder, "best"), "*"), BEST_FILES);
        run_check(folder_path(folder, "best/model.ckpt-5"), 5);
        free(folder);
    }
    assert_in_range(call, CALLS_MIN, CALLS_MAX);
}

/* ---- another chief ---- */

enum { OTHER_VALUE = 33, KILLED_AFTER_MAX = 4, NAMES_MIN = 3, MEETINGS = 8 };

/* Who leads while the first one stands still, either new, and removes what seems left over, or as
 * before. */
static struct {
    const char *folder;
    uint64_t step;
    bool is_new;
    struct checkpoints *c;
} other;

static void publish_as_other(void)
{
    if (other.is_new) other.c = run_open(other.folder, 2, NOW);
    assert_int_equal(checkpoints_own(other.c, 2, 0, NOW), OK);
    if (run_try(other.c, other.step, OTHER_VALUE, NOW)) fail_msg("%s", error_text());
}

static bool publish_beside_other(const char *folder, const struct attempt *attempt, int call,
                                 int killed_after)
{
    other.c = other.is_new ? NULL : run_open(folder, 2, NOW);
    struct checkpoints *c = run_open(folder, 2, NOW);
    assert_int_equal(checkpoints_own(c, 1, 0, NOW), OK);
    other.folder = folder;
    other.step = attempt->step;
    faults_arm_other(call, publish_as_other, killed_after);
    (void)run_try(c, attempt->step, attempt->value, NOW);
    const bool has_met = faults_disarm();
    if (has_met) run_check(checkpoints_newest(other.c, 0), OTHER_VALUE);
    checkpoints_close(c);
    checkpoints_close(other.c);
    return has_met;
}

/* In a child, which is killed. 0: it was not stopped, 1: the other one's is whole */
static bool is_killed_beside_other(const char *folder, const struct attempt *attempt, int call,
                                   int killed_after)
{
    int status = 0;
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(publish_beside_other(folder, attempt, call, killed_after) ? 1 : 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) < 2);
    return WIFSIGNALED(status) || WEXITSTATUS(status) == 1;
}

/* Whoever opens the folder then finds nothing that is damaged, and goes on. */
static void check_beside_other(const char *folder)
{
    struct checkpoints *c = run_open(folder, 2, NOW);
    const float newest = check_all(c);
    assert_true(newest > 0);
    run_publish(c, 4, NOW);
    run_publish(c, 5, NOW);
    check_all(c);
    assert_string_equal(run_list(folder), "model.ckpt-4 model.ckpt-5");
    checkpoints_close(c);
}

static void meet_other(const char *top, const struct attempt *attempt, int killed_after)
{
    int call = 1;
    for (bool has_met = true; has_met && call <= CALLS_MAX; call++) {
        char name[64];
        snprintf(name, sizeof name, "run-%d-%d", killed_after, call);
        char *folder = strdup(folder_path(top, name));
        prepare(folder);
        has_met = killed_after ? is_killed_beside_other(folder, attempt, call, killed_after)
                               : publish_beside_other(folder, attempt, call, 0);
        if (has_met) check_beside_other(folder);
        free(folder);
    }
    assert_in_range(call, NAMES_MIN, CALLS_MAX);
}

static void what_another_chief_makes_of_the_same_step_is_whole(void **state)
{
    for (int i = 0; i < MEETINGS; i++) {
        char name[64];
        snprintf(name, sizeof name, "beside-%d", i);
        char *top = strdup(folder_path(*state, name));
        assert_int_equal(mkdir(top, 0777), 0);
        faults_rename_replaces(i & 1);
        other.is_new = i & 2;
        for (int killed_after = 0; killed_after <= KILLED_AFTER_MAX; killed_after++)
            meet_other(top, &attempts[i / 4], killed_after);
        free(top);
    }
    faults_rename_replaces(false);
}

/* Publishes until it is killed, and tells of each time by a byte. */
static void publish_on_and_on(const char *folder, int pipe_end)
{
    struct checkpoints *c = run_open(folder, 2, NOW);
    const char *newest = checkpoints_newest(c, 0);
    const uint64_t first = newest ? (uint64_t)checkpoint_step(newest) : 0;
    for (uint64_t i = 1; i < UINT32_MAX; i++) {
        if (run_try(c, first + i, (float)(first + i), NOW)) _exit(1);
        if (write(pipe_end, "", 1) != 1) _exit(2);
    }
}

/* Killed after `count` checkpoints and then some pauses of no fixed length. */
static void run_and_kill(const char *folder, int count, int pauses)
{
    int ends[2], status = 0;
    fflush(NULL);
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        publish_on_and_on(folder, ends[1]);
        _exit(3);
    }
    close(ends[1]);
    char byte;
    for (int i = 0; i < count; i++) assert_int_equal(read(ends[0], &byte, 1), 1);
    nanosleep(&(struct timespec){.tv_nsec = (long)pauses * PAUSE_NS}, NULL);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    close(ends[0]);
}

static void killed_at_any_moment_the_newest_is_whole(void **state)
{
    char *folder = *state;
    int64_t step = 0;
    for (int i = 0; i < KILLS; i++) {
        const int count = 1 + (int)(random_u64(1, (uint64_t)i) % 3);
        run_and_kill(folder, count, (int)(random_u64(2, (uint64_t)i) % PAUSES_MAX));
        char prefix[CHECKPOINT_PATH_MAX];
        assert_int_equal(checkpoint_find(folder, prefix), OK);
        assert_true(checkpoint_step(prefix) >= step + count);
        step = checkpoint_step(prefix);
        run_check(prefix, (float)step);
    }
    struct checkpoints *c = run_open(folder, 2, NOW);
    run_publish(c, (uint64_t)step + 1, NOW);
    run_publish(c, (uint64_t)step + 2, NOW);
    checkpoints_close(c);
    assert_int_equal(folder_count(folder, "*"), FILES);
}

/* In a child, since the limit stays: no file may grow beyond so many bytes. */
static int publish_under_limit(const char *folder, rlim_t bytes)
{
    struct checkpoints *c = run_open(folder, 2, NOW);
    const struct rlimit limit = {bytes, bytes};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 100;
    const err e = run_try(c, 3, 3, NOW);
    const bool tells_where = strstr(error_text(), checkpoints_directory(c)) != NULL;
    checkpoints_close(c);
    return e == ERR_IO && !tells_where ? 101 : (int)e;
}

static void a_disk_that_is_full_leaves_what_was_there(void **state)
{
    int failures = 0;
    prepare(*state);
    for (rlim_t bytes = 0; bytes <= 320; bytes += 16) {
        int status = 0;
        fflush(NULL);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) _exit(publish_under_limit(*state, bytes));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == OK) break;
        assert_int_equal(WEXITSTATUS(status), ERR_IO);
        assert_string_equal(run_list(*state), "model.ckpt-1 model.ckpt-2");
        run_check(folder_path(*state, "model.ckpt-2"), 2);
        assert_int_equal(folder_count(*state, "*"), FILES);
        failures++;
    }
    assert_true(failures > 10);
}

static void a_folder_that_is_gone_is_an_error_and_then_made_again(void **state)
{
    char gone[FOLDER_PATH_MAX], run[FOLDER_PATH_MAX], prefix[CHECKPOINT_PATH_MAX];
    snprintf(run, sizeof run, "%s/run", (char *)*state);
    snprintf(gone, sizeof gone, "%s/gone", (char *)*state);
    struct checkpoints *c = run_open(run, 2, NOW);
    run_publish(c, 1, NOW);
    char folder[CHECKPOINT_PATH_MAX];
    assert_int_equal(checkpoints_begin(c, 2, 1, folder), OK);
    assert_int_equal(run_write_shards(folder, 2), OK);
    assert_int_equal(rename(run, gone), 0);
    assert_int_not_equal(checkpoints_publish(c, folder, RUN_SHARDS, 2, NOW, prefix), OK);
    assert_non_null(strstr(error_text(), run));
    run_publish(c, 3, NOW);
    run_publish(c, 4, NOW);
    assert_string_equal(run_list(run), "model.ckpt-3 model.ckpt-4");
    checkpoints_close(c);
}

static void shards_that_are_absent_or_damaged_are_refused(void **state)
{
    char folder[CHECKPOINT_PATH_MAX], prefix[CHECKPOINT_PATH_MAX];
    prepare(*state);
    struct checkpoints *c = run_open(*state, 2, NOW);
    for (int shards = 0; shards <= 3; shards += 3) {
        assert_int_equal(checkpoints_begin(c, 3, 1, folder), OK);
        assert_int_equal(run_write_shards(folder, 3), OK);
        assert_int_equal(checkpoints_publish(c, folder, shards, 3, NOW, prefix), ERR_INPUT);
    }
    assert_int_equal(checkpoints_begin(c, 3, 1, folder), OK);
    assert_int_equal(run_write_shards(folder, 3), OK);
    assert_int_equal(truncate(folder_path(folder, "part-00001-of-00002.index"), 20), 0);
    assert_int_equal(checkpoints_publish(c, folder, RUN_SHARDS, 3, NOW, prefix), ERR_INPUT);
    assert_true(check_all(c) == 2);
    assert_int_equal(folder_count(*state, "*"), FILES);
    checkpoints_close(c);
    check_goes_on(*state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(each_system_call_that_fails_leaves_the_old_checkpoint_or_the_new_one),
        IN_FOLDER(killed_in_any_system_call_the_newest_is_whole),
        IN_FOLDER(killed_while_it_keeps_the_best_one_it_leaves_nothing_for_ever),
        IN_FOLDER(what_another_chief_makes_of_the_same_step_is_whole),
        IN_FOLDER(killed_at_any_moment_the_newest_is_whole),
        IN_FOLDER(a_disk_that_is_full_leaves_what_was_there),
        IN_FOLDER(a_folder_that_is_gone_is_an_error_and_then_made_again),
        IN_FOLDER(shards_that_are_absent_or_damaged_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
