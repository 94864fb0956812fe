/* test_checkpoints.c - which checkpoints there are, which stay and which go, over restarts too. */
#include "core/base/random.h"
#include "tests/core/train/checkpoint/run.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { HOUR = 3600, NOW = 1700000000 };

static void assert_newest(const struct checkpoints *c, int index, const char *name)
{
    const char *prefix = checkpoints_newest(c, index);
    assert_non_null(prefix);
    assert_string_equal(strrchr(prefix, '/') + 1, name);
}

static void the_folder_is_made_with_its_parents_and_named_absolutely(void **state)
{
    const char *folder = folder_path(*state, "a/b//c/");
    struct checkpoints *c = run_open(folder, 5, NOW);
    assert_int_equal(checkpoints_directory(c)[0], '/');
    assert_true(folder_has(*state, "a/b/c"));
    assert_string_equal(strrchr(checkpoints_directory(c), '/'), "/c");
    assert_null(checkpoints_newest(c, 0));
    assert_int_equal(folder_count(folder, "*"), 0);
    checkpoints_close(c);
    checkpoints_close(NULL);
}

static void a_folder_that_cannot_be_made_or_written_is_an_error_with_its_path(void **state)
{
    const struct retention retention = {.keep_max = 5};
    struct checkpoints *c = NULL;
    file_write(*state, "file", "");
    const char *folder = folder_path(*state, "file/run");
    assert_int_equal(checkpoints_open(folder, &retention, NOW, &c), ERR_IO);
    assert_non_null(strstr(error_text(), "file"));
    assert_int_equal(checkpoints_open("/proc/1", &retention, NOW, &c), ERR_IO);
    assert_non_null(strstr(error_text(), "/proc/1"));
    assert_int_equal(mkdir(folder_path(*state, "checkpoint"), 0777),
                     0); /* a list cannot replace it */
    assert_int_equal(checkpoints_open(*state, &retention, NOW, &c), ERR_INPUT);
    assert_non_null(strstr(error_text(), "/checkpoint: a folder"));
    assert_int_equal(checkpoints_open("", &retention, NOW, &c), ERR_INPUT);
    char long_path[CHECKPOINT_PATH_MAX + 8];
    memset(long_path, 'x', sizeof long_path - 1);
    long_path[sizeof long_path - 1] = '\0';
    assert_int_equal(checkpoints_open(long_path, &retention, NOW, &c), ERR_INPUT);
    assert_null(c);
}

static void what_is_published_is_the_newest_and_the_state_file_names_it(void **state)
{
    struct checkpoints *c = run_open(*state, 5, NOW);
    run_check(run_publish(c, 0, NOW + 1), 0);
    const char *prefix = run_publish(c, 100, NOW + 2.5);
    run_check(prefix, 100);
    assert_int_equal(checkpoint_step(prefix), 100);
    assert_string_equal(checkpoints_newest(c, 0), prefix);
    assert_newest(c, 1, "model.ckpt-0");
    assert_null(checkpoints_newest(c, 2));
    assert_null(checkpoints_newest(c, -1));
    assert_string_equal(file_read(*state, "checkpoint"),
                        "model_checkpoint_path: \"model.ckpt-100\"\n"
                        "all_model_checkpoint_paths: \"model.ckpt-0\"\n"
                        "all_model_checkpoint_paths: \"model.ckpt-100\"\n"
                        "all_model_checkpoint_timestamps: 1700000001\n"
                        "all_model_checkpoint_timestamps: 1700000002.5\n"
                        "last_preserved_timestamp: 1700000000\n");
    assert_int_equal(folder_count(*state, "*"), 1 + 2 * 3); /* and no temporary folder */
    checkpoints_close(c);
}

/* One shard with a variable, and what counts how far the run is. */
static void publish_counted(struct checkpoints *c, int64_t step, double now_s,
                            char ret_prefix[CHECKPOINT_PATH_MAX])
{
    static const char *const counts[] = {"global_step", "dtrain/ledger/ps_00000"};
    const struct bundle_piece w = {"w", BUNDLE_FLOAT, {1, {1}}, NULL};
    const float value = (float)step;
    char folder[CHECKPOINT_PATH_MAX], prefix[CHECKPOINT_PATH_MAX];
    struct bundle_writer *writer;
    assert_int_equal(checkpoints_begin(c, (uint64_t)step, (uint64_t)step + 1, folder), OK);
    checkpoint_shard_prefix(folder, 0, 1, prefix);
    assert_int_equal(bundle_create(prefix, &writer), OK);
    assert_int_equal(bundle_add(writer, &w, &value), OK);
    for (int i = 0; i < 2; i++) {
        const struct bundle_piece count = {counts[i], BUNDLE_INT64, {0, {0}}, NULL};
        assert_int_equal(bundle_add(writer, &count, &step), OK);
    }
    assert_int_equal(bundle_finish(writer), OK);
    assert_int_equal(checkpoints_publish(c, folder, 1, (uint64_t)step, now_s, ret_prefix), OK);
}

static void expect_counted(const char *prefix, float value, int64_t step)
{
    struct bundle *b;
    float w;
    int64_t count;
    assert_int_equal(bundle_open(prefix, &b), OK);
    assert_int_equal(bundle_verify(b), OK);
    assert_int_equal(bundle_read(b, bundle_find(b, "w"), NULL, &w, sizeof w), OK);
    assert_true(w == value);
    assert_int_equal(bundle_read(b, bundle_find(b, "global_step"), NULL, &count, sizeof count), OK);
    assert_int_equal(count, step);
    assert_int_equal(
        bundle_read(b, bundle_find(b, "dtrain/ledger/ps_00000"), NULL, &count, sizeof count), OK);
    assert_int_equal(count, step);
    bundle_close(b);
}

static void the_newest_may_get_the_values_of_another_and_keeps_its_counts(void **state)
{
    char best[CHECKPOINT_PATH_MAX], last[CHECKPOINT_PATH_MAX], got[CHECKPOINT_PATH_MAX];
    struct checkpoints *c = run_open(*state, 5, NOW);
    assert_int_equal(checkpoints_take_values(c, *state, 1, NOW, got), ERR_INPUT); /* none yet */
    publish_counted(c, 3, NOW + 1, best);
    publish_counted(c, 7, NOW + 2, last);
    for (uint64_t again = 0; again < 2; again++) {
        assert_int_equal(checkpoints_take_values(c, best, 90 + again, NOW + 3, got), OK);
        assert_string_equal(got, last);
        expect_counted(last, 3, 7);
        expect_counted(best, 3, 3);
        assert_string_equal(run_list(*state), "model.ckpt-3 model.ckpt-7");
        assert_int_equal(folder_count(*state, "*_temp_*"), 0);
    }
    assert_int_equal(checkpoints_take_values(c, "nowhere", 92, NOW + 4, got), ERR_INPUT);
    expect_counted(last, 3, 7);
    assert_int_equal(folder_count(*state, "*_temp_*"), 0);
    checkpoints_close(c);
}

static void the_oldest_go_and_a_restart_goes_on_with_the_list(void **state)
{
    struct checkpoints *c = run_open(*state, 2, NOW);
    for (int step = 1; step <= 3; step++) run_publish(c, (uint64_t)step, NOW + step);
    assert_string_equal(run_list(*state), "model.ckpt-2 model.ckpt-3");
    assert_int_equal(folder_count(*state, "model.ckpt-1.*"), 0);
    checkpoints_close(c);

    c = run_open(*state, 2, NOW + 10);
    assert_newest(c, 0, "model.ckpt-3");
    run_publish(c, 4, NOW + 11);
    assert_string_equal(run_list(*state), "model.ckpt-3 model.ckpt-4");
    assert_int_equal(folder_count(*state, "*"), 1 + 2 * 3);
    checkpoints_close(c);

    c = run_open(*state, 1, NOW + 20); /* fewer than there are */
    run_publish(c, 5, NOW + 21);
    assert_string_equal(run_list(*state), "model.ckpt-5");
    assert_int_equal(folder_count(*state, "*"), 1 + 3);
    checkpoints_close(c);
}

static void one_per_so_many_hours_stays_for_good_over_restarts(void **state)
{
    const struct retention retention = {.keep_max = 1, .keep_every_hours = 1};
    struct checkpoints *c = NULL;
    for (int i = 1; i <= 12; i++) { /* every 20 minutes, each time another process */
        const double now_s = NOW + i * HOUR / 3.0;
        const double opened_s = i == 1 ? NOW : now_s - 60;
        assert_int_equal(checkpoints_open(*state, &retention, opened_s, &c), OK);
        run_publish(c, (uint64_t)i, now_s);
        checkpoints_close(c);
    }
    /* the first that is older than 1, 2, 3 h when it would go: 80, 140, 200 minutes */
    assert_string_equal(run_list(*state), "model.ckpt-12");
    assert_int_equal(folder_count(*state, "*.index"), 4);
    assert_true(folder_has(*state, "model.ckpt-4.index"));
    assert_true(folder_has(*state, "model.ckpt-7.index"));
    assert_true(folder_has(*state, "model.ckpt-10.index"));
}

static void after_a_long_pause_not_every_checkpoint_stays_for_good(void **state)
{
    const struct retention retention = {.keep_max = 1, .keep_every_hours = 1};
    struct checkpoints *c = NULL;
    assert_int_equal(checkpoints_open(*state, &retention, NOW, &c), OK);
    run_publish(c, 1, NOW + 1);
    for (int i = 2; i <= 9; i++) run_publish(c, (uint64_t)i, NOW + 100 * HOUR + i);
    assert_int_equal(folder_count(*state, "*.index"), 2);
    assert_true(folder_has(*state, "model.ckpt-2.index"));
    assert_true(folder_has(*state, "model.ckpt-9.index"));
    checkpoints_close(c);
}

static void with_keep_max_0_all_stay_and_the_state_file_names_the_last(void **state)
{
    struct checkpoints *c = run_open(*state, 0, NOW);
    const int steps[] = {1, 2, 10, 20};
    for (int i = 0; i < 4; i++) run_publish(c, (uint64_t)steps[i], NOW + i);
    assert_string_equal(run_list(*state), "model.ckpt-20");
    assert_int_equal(folder_count(*state, "*.index"), 4);
    checkpoints_close(c);

    c = run_open(*state, 0, NOW); /* those before the last are found again, by their steps */
    for (int i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof name, "model.ckpt-%d", steps[3 - i]);
        assert_newest(c, i, name);
    }
    assert_null(checkpoints_newest(c, 4));
    checkpoints_close(c);
}

/* ---- the same step again ---- */

static void the_same_step_again_replaces_what_was_there(void **state)
{
    struct checkpoints *c = run_open(*state, 3, NOW);
    run_publish(c, 1, NOW);
    run_publish(c, 2, NOW);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(run_try(c, 2, (float)(70 + i), NOW + i), OK);
        assert_newest(c, 0, "model.ckpt-2");
        run_check(checkpoints_newest(c, 0), (float)(70 + i));
        assert_string_equal(run_list(*state), "model.ckpt-1 model.ckpt-2");
        assert_int_equal(folder_count(*state, "*"), 1 + 2 * 3);
    }
    checkpoints_close(c);
}

static void a_step_reached_again_after_going_back_comes_last(void **state)
{
    struct checkpoints *c = run_open(*state, 3, NOW);
    for (int step = 1; step <= 3; step++) run_publish(c, (uint64_t)step, NOW + step);
    run_publish(c, 2, NOW + 4);
    assert_string_equal(run_list(*state), "model.ckpt-1 model.ckpt-3 model.ckpt-2");
    checkpoints_close(c);
}

/* Its index may come back. */
static void data_without_an_index_are_never_replaced(void **state)
{
    struct checkpoints *c = run_open(*state, 3, NOW);
    run_publish(c, 7, NOW);
    run_publish(c, 8, NOW);
    checkpoints_close(c);
    const char *index = folder_path(*state, "model.ckpt-8.index"),
               *kept = folder_path(*state, "kept");
    assert_int_equal(rename(index, kept), 0);
    c = run_open(*state, 3, NOW);
    assert_newest(c, 0, "model.ckpt-8");
    assert_newest(c, 1, "model.ckpt-7");
    assert_int_equal(run_try(c, 8, 80, NOW), OK);
    run_check(checkpoints_newest(c, 0), 80);
    assert_string_equal(run_list(*state), "model.ckpt-7 model.ckpt-08");
    for (int life = 0; life < 3; life++) {
        checkpoints_close(c);
        c = run_open(*state, 3, NOW);
        for (int step = 9; step < 14; step++) run_publish(c, (uint64_t)step, NOW);
    }
    checkpoints_close(c);
    assert_int_equal(rename(folder_path(*state, "kept"), folder_path(*state, "model.ckpt-8.index")),
                     0);
    run_check(folder_path(*state, "model.ckpt-8"), 8);
}

/* However many names of the step are taken. */
static void a_name_is_free_where_neither_data_nor_an_index_has_it(void **state)
{
    static const char *const taken[] = {
        "model.ckpt-8.data-00000-of-00001", "model.ckpt-008.data-00001-of-00002",
        "model.ckpt-0000000008.data-00000-of-00001", "model.ckpt-80.data-00000-of-00001",
        "model.ckpt-0008.data"};
    struct checkpoints *c = run_open(*state, 3, NOW);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) file_write(*state, taken[i], "x");
    run_publish(c, 8, NOW);
    assert_string_equal(run_list(*state), "model.ckpt-08");
    file_write(*state, "model.ckpt-9.data-00000-of-00001", "x");
    file_write(*state, "model.ckpt-09.index", "x");
    run_publish(c, 9, NOW);
    assert_string_equal(run_list(*state), "model.ckpt-08 model.ckpt-009");
    checkpoints_close(c);
}

/* What was copied in part is no new folder, whose steps begin at 0. */
static void data_without_an_index_are_the_newest_where_there_is_no_list(void **state)
{
    struct checkpoints *c = run_open(*state, 3, NOW);
    run_publish(c, 7, NOW);
    run_publish(c, 8, NOW);
    checkpoints_close(c);
    unlink(folder_path(*state, "checkpoint"));
    unlink(folder_path(*state, "model.ckpt-8.index"));
    c = run_open(*state, 3, NOW);
    assert_newest(c, 0, "model.ckpt-8");
    assert_newest(c, 1, "model.ckpt-7");
    checkpoints_close(c);
    unlink(folder_path(*state, "model.ckpt-7.index"));
    c = run_open(*state, 3, NOW);
    assert_newest(c, 0, "model.ckpt-8");
    assert_null(checkpoints_newest(c, 1));
    assert_int_equal(run_try(c, 8, 80, NOW), OK);
    assert_string_equal(run_list(*state), "model.ckpt-08");
    checkpoints_close(c);
    assert_int_equal(folder_count(*state, "model.ckpt-?.data-*"), 2 * 2);
}

static void one_that_the_list_does_not_know_is_never_replaced(void **state)
{
    struct checkpoints *c = run_open(*state, 3, NOW);
    run_publish(c, 7, NOW);
    run_publish(c, 8, NOW);
    checkpoints_close(c);
    unlink(folder_path(*state, "checkpoint"));
    c = run_open(*state, 3, NOW);
    assert_newest(c, 0, "model.ckpt-8"); /* found, and resumed from */
    assert_newest(c, 1, "model.ckpt-7");
    assert_int_equal(run_try(c, 8, 80, NOW), OK);
    run_check(checkpoints_newest(c, 0), 80);
    assert_string_equal(run_list(*state), "model.ckpt-7 model.ckpt-08");
    for (int life = 0; life < 3; life++) {
        for (int step = 9; step < 14; step++) run_publish(c, (uint64_t)step, NOW);
        run_check(folder_path(*state, "model.ckpt-7"), 7);
        run_check(folder_path(*state, "model.ckpt-8"), 8);
        checkpoints_close(c);
        c = run_open(*state, 3, NOW);
    }
    assert_string_equal(run_list(*state), "model.ckpt-11 model.ckpt-12 model.ckpt-13");
    checkpoints_close(c);
}

static void one_that_is_read_is_replaced_when_the_reader_is_done(void **state)
{
    struct checkpoints *c = run_open(*state, 3, NOW);
    struct lease *lease = NULL;
    run_publish(c, 7, NOW);
    assert_int_equal(lease_take(checkpoints_newest(c, 0), "evaluator", &lease), OK);
    assert_int_equal(run_try(c, 7, 70, NOW), OK);
    assert_int_equal(checkpoint_step(checkpoints_newest(c, 0)), 7);
    run_check(checkpoints_newest(c, 0), 70);
    run_check(checkpoints_newest(c, 1), 7); /* what is leased is as it was */
    lease_drop(lease);
    checkpoints_close(c);

    c = run_open(*state, 3, NOW);
    assert_int_equal(run_try(c, 7, 71, NOW), OK);
    assert_newest(c, 0, "model.ckpt-7");
    run_check(checkpoints_newest(c, 0), 71);
    assert_null(checkpoints_newest(c, 1));
    assert_int_equal(folder_count(*state, "*"), 1 + 3);
    checkpoints_close(c);
}

/* ---- leases ---- */

/* Makes the only lease in the folder so many seconds old. */
static void age_lease(const char *folder, const char *name, double age_s)
{
    struct stat status;
    assert_int_equal(stat(folder_path(folder, name), &status), 0);
    const struct timespec times[] = {{.tv_sec = status.st_mtim.tv_sec - (time_t)age_s},
                                     {.tv_sec = status.st_mtim.tv_sec - (time_t)age_s}};
    assert_int_equal(utimensat(AT_FDCWD, folder_path(folder, name), times, 0), 0);
}

static double unix_time_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec;
}

static void what_is_leased_stays_until_it_is_dropped(void **state)
{
    const double now_s = unix_time_s();
    struct checkpoints *c = run_open(*state, 1, now_s);
    struct lease *lease = NULL, *other = NULL;
    const char *first = run_publish(c, 1, now_s);
    assert_int_equal(lease_take(first, "evaluator/0", &lease), OK);
    assert_int_equal(lease_take(first, "dtrain eval", &other), OK);
    run_publish(c, 2, now_s);
    run_publish(c, 3, now_s);
    run_check(folder_path(*state, "model.ckpt-1"), 1);
    assert_string_equal(run_list(*state), "model.ckpt-1 model.ckpt-3");

    lease_drop(lease);
    checkpoints_close(c);
    c = run_open(*state, 1, now_s); /* not forgotten by a restart */
    run_publish(c, 4, now_s);
    assert_string_equal(run_list(*state), "model.ckpt-1 model.ckpt-4");
    lease_drop(other);
    run_publish(c, 5, now_s);
    assert_string_equal(run_list(*state), "model.ckpt-5");
    assert_int_equal(folder_count(*state, "*"), 1 + 3);
    checkpoints_close(c);
}

static void what_this_process_holds_stays_until_it_is_let_go_as_often(void **state)
{
    const double now_s = unix_time_s();
    struct checkpoints *c = run_open(*state, 1, now_s);
    const char *first = run_publish(c, 1, now_s);
    for (int i = 0; i < 2; i++) assert_int_equal(lease_hold(first), OK);
    run_publish(c, 2, now_s);
    lease_let_go(first);
    lease_let_go(folder_path(*state, "model.ckpt-2")); /* nobody holds it */
    run_publish(c, 3, now_s);
    run_check(folder_path(*state, "model.ckpt-1"), 1);
    assert_string_equal(run_list(*state), "model.ckpt-1 model.ckpt-3");
    lease_let_go(first);
    run_publish(c, 4, now_s);
    assert_string_equal(run_list(*state), "model.ckpt-4");
    assert_int_equal(folder_count(*state, "*"), 1 + 3);
    checkpoints_close(c);
}

static void a_lease_that_is_not_renewed_ends(void **state)
{
    static const char name[] = ".lease-model.ckpt-1.evaluator";
    const double now_s = unix_time_s();
    struct checkpoints *c = run_open(*state, 1, now_s);
    struct lease *lease = NULL;
    assert_int_equal(lease_take(run_publish(c, 1, now_s), "evaluator", &lease), OK);
    age_lease(*state, name, LEASE_MAX_S + 5);
    assert_int_equal(lease_renew(lease), OK);
    run_publish(c, 2, now_s);
    assert_true(folder_has(*state, "model.ckpt-1.index"));
    age_lease(*state, name, LEASE_MAX_S + 5);
    run_publish(c, 3, now_s);
    assert_int_equal(folder_count(*state, "model.ckpt-1.*"), 0);
    assert_false(folder_has(*state, name));

    assert_int_equal(lease_renew(lease), ERR_INPUT); /* its holder learns that it was too late */
    assert_non_null(strstr(error_text(), "gone"));
    assert_false(folder_has(*state, name));
    lease_drop(lease);
    checkpoints_close(c);
}

static void a_lease_of_another_checkpoint_protects_nothing(void **state)
{
    const double now_s = unix_time_s();
    struct checkpoints *c = run_open(*state, 1, now_s);
    struct lease *lease = NULL;
    run_publish(c, 1, now_s);
    assert_int_equal(lease_take(run_publish(c, 11, now_s), "evaluator", &lease), OK);
    assert_false(folder_has(*state, "model.ckpt-1.index"));
    run_publish(c, 12, now_s);
    assert_string_equal(run_list(*state), "model.ckpt-11 model.ckpt-12");
    lease_drop(lease);
    lease_drop(NULL);
    checkpoints_close(c);
}

static void a_checkpoint_that_is_gone_cannot_be_leased(void **state)
{
    struct lease *lease = NULL;
    assert_int_equal(lease_take(folder_path(*state, "model.ckpt-1"), "e", &lease), ERR_INPUT);
    assert_non_null(strstr(error_text(), "model.ckpt-1"));
    assert_int_equal(lease_take(folder_path(*state, "absent/model.ckpt-1"), "e", &lease), ERR_IO);
    assert_null(lease);
    assert_int_equal(folder_count(*state, "*"), 0);
}

/* ---- others' lists ---- */

static void what_lies_elsewhere_is_never_removed(void **state)
{
    char elsewhere[FOLDER_PATH_MAX], text[3 * FOLDER_PATH_MAX];
    const char *run = folder_path(*state, "run");
    snprintf(elsewhere, sizeof elsewhere, "%s/other", (char *)*state);
    struct checkpoints *c = run_open(elsewhere, 5, NOW);
    run_publish(c, 1, NOW);
    checkpoints_close(c);
    checkpoints_close(run_open(run, 1, NOW));
    snprintf(text, sizeof text,
             "model_checkpoint_path: \"%s/model.ckpt-1\"\n"
             "all_model_checkpoint_paths: \"../other/model.ckpt-1\"\n",
             elsewhere);
    file_write(run, "checkpoint", text);
    c = run_open(run, 1, NOW);
    assert_string_equal(checkpoints_newest(c, 0), folder_path(elsewhere, "model.ckpt-1"));
    run_publish(c, 2, NOW);
    assert_string_equal(run_list(run), "model.ckpt-2");
    run_check(folder_path(elsewhere, "model.ckpt-1"), 1);
    checkpoints_close(c);
}

static void a_state_file_that_cannot_be_understood_is_no_loss(void **state)
{
    static const char *const texts[] = {"",
                                        "\n\n",
                                        "nonsense",
                                        "model_checkpoint_path: 5",
                                        "model_checkpoint_path: \"model.ckpt-2",
                                        "\x01\x02"};
    struct checkpoints *c = run_open(*state, 5, NOW);
    const int steps[] = {2, 10, 9};
    for (int i = 0; i < 3; i++) run_publish(c, (uint64_t)steps[i], NOW);
    checkpoints_close(c);
    file_write(*state, "model.ckpt-x.index", "");
    file_write(*state, "model.ckpt-99.data-00000", "");
    for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++) {
        file_write(*state, "checkpoint", texts[i]);
        c = run_open(*state, 5, NOW);
        assert_newest(c, 0, "model.ckpt-10");
        assert_newest(c, 1, "model.ckpt-9");
        assert_newest(c, 2, "model.ckpt-2");
        assert_null(checkpoints_newest(c, 3));
        checkpoints_close(c);
    }
}

/* ---- folders that are not whole ---- */

static void an_index_that_is_missing_is_told_and_its_data_stay(void **state)
{
    struct checkpoints *c = run_open(*state, 3, NOW);
    for (int step = 1; step <= 3; step++) run_publish(c, (uint64_t)step, NOW);
    checkpoints_close(c);
    unlink(folder_path(*state, "model.ckpt-2.index"));
    unlink(folder_path(*state, "model.ckpt-3.index"));
    for (int life = 0; life < 3; life++) {
        c = run_open(*state, 3, NOW);
        assert_newest(c, 0, "model.ckpt-3"); /* whoever opens it learns what is missing */
        assert_newest(c, 1, "model.ckpt-1");
        assert_null(checkpoints_newest(c, 2));
        assert_int_equal(folder_count(*state, "model.ckpt-[23].data-*"), 2 * RUN_SHARDS);
        checkpoints_close(c);
    }
    c = run_open(*state, 2, NOW); /* whose removal may have been cut short */
    run_publish(c, 4, NOW);
    assert_int_equal(folder_count(*state, "model.ckpt-3.data-*"), RUN_SHARDS);
    checkpoints_close(c);
}

static void a_removal_that_was_cut_short_is_finished(void **state)
{
    struct checkpoints *c = run_open(*state, 5, NOW);
    for (int step = 1; step <= 3; step++) run_publish(c, (uint64_t)step, NOW);
    checkpoints_close(c);
    unlink(folder_path(*state, "model.ckpt-1.index"));
    c = run_open(*state, 2, NOW);
    assert_newest(c, 0, "model.ckpt-3");
    assert_newest(c, 1, "model.ckpt-2");
    assert_null(checkpoints_newest(c, 2));
    assert_int_equal(folder_count(*state, "model.ckpt-1.*"), 0);
    checkpoints_close(c);
}

/* Absolute or not, of this host or of a server */
static void move_from(const char *folder, const char *before)
{
    char text[4 * FOLDER_PATH_MAX];
    snprintf(text, sizeof text,
             "model_checkpoint_path: \"%smodel.ckpt-2\"\n"
             "all_model_checkpoint_paths: \"%smodel.ckpt-1\"\n"
             "all_model_checkpoint_paths: \"%smodel.ckpt-2\"\n",
             before, before, before);
    file_write(folder, "checkpoint", text);
}

static void a_folder_that_has_moved_has_its_checkpoints_beside_the_state_file(void **state)
{
    static const char *const before[] = {"/nowhere/run/", "run/", "../elsewhere/run/", "./",
                                         "s3://nowhere/run/"};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        char name[16], run[FOLDER_PATH_MAX], prefix[CHECKPOINT_PATH_MAX];
        snprintf(name, sizeof name, "run-%d", (int)i);
        snprintf(run, sizeof run, "%s", folder_path(*state, name));
        struct checkpoints *c = run_open(run, 5, NOW);
        run_publish(c, 1, NOW);
        run_publish(c, 2, NOW);
        checkpoints_close(c);
        move_from(run, before[i]);
        assert_int_equal(checkpoint_find(run, prefix), OK); /* as those who only read see it */
        run_check(prefix, 2);
        c = run_open(run, 5, NOW);
        run_check(checkpoints_newest(c, 0), 2);
        run_check(checkpoints_newest(c, 1), 1);
        run_publish(c, 3, NOW);
        checkpoints_close(c);
    }
}

static void a_state_file_that_says_where_they_are_is_right(void **state)
{
    char text[2 * FOLDER_PATH_MAX];
    const char *run = folder_path(*state, "run"), *other = folder_path(*state, "other");
    struct checkpoints *c = run_open(run, 5, NOW);
    run_publish(c, 3, NOW);
    checkpoints_close(c);
    checkpoints_close(run_open(other, 5, NOW));
    snprintf(text, sizeof text, "model_checkpoint_path: \"%s/model.ckpt-3\"\n", run);
    file_write(other, "checkpoint", text);
    c = run_open(other, 5, NOW);
    assert_string_equal(checkpoints_newest(c, 0), folder_path(run, "model.ckpt-3"));
    checkpoints_close(c);
}

/* Checkpoints of steps 1 .. LISTED by this run, and others that nobody listed. Then indexes,
 * whole checkpoints or the state file go, and a run continues for some steps, in several lives. */
enum { LISTED = 4, STEPS = 12, KEPT = 3 };

static void lose_some(const char *folder, uint64_t seed, bool lost[1 + STEPS])
{
    for (int step = 1; step <= LISTED; step++) {
        char pattern[64];
        lost[step] = random_u64(seed, (uint64_t)step) % 3 == 0;
        snprintf(pattern, sizeof pattern, "model.ckpt-%d.index", step);
        if (lost[step]) unlink(folder_path(folder, pattern));
    }
    if (random_u64(seed, 100) % 3 == 0) unlink(folder_path(folder, "checkpoint"));
    if (random_u64(seed, 100) % 3 == 1) file_write(folder, "checkpoint", "nonsense");
}

static void nothing_goes_but_what_retention_lets_go(void **state)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        char folder[FOLDER_PATH_MAX], name[64];
        bool lost[1 + STEPS] = {0}, is_foreign[1 + STEPS] = {0};
        snprintf(name, sizeof name, "run-%d", (int)seed);
        snprintf(folder, sizeof folder, "%s", folder_path(*state, name));
        struct checkpoints *c = run_open(folder, 0, NOW);
        for (int step = 1; step <= STEPS; step++) {
            is_foreign[step] = step > LISTED && random_u64(seed, 200 + (uint64_t)step) % 3 == 0;
            if (!is_foreign[step]) continue;
            assert_int_equal(run_try(c, (uint64_t)step, (float)(100 + step), NOW), OK);
        }
        checkpoints_close(c);
        unlink(folder_path(folder, "checkpoint"));
        file_write(folder, "checkpoint", "model_checkpoint_path: \"model.ckpt-0\"\n");
        c = run_open(folder, LISTED + 1, NOW);
        for (int step = 1; step <= LISTED; step++) run_publish(c, (uint64_t)step, NOW);
        checkpoints_close(c);
        lose_some(folder, seed, lost);

        for (int step = LISTED + 1; step <= STEPS; step++) {
            c = run_open(folder, KEPT, NOW);
            run_publish(c, (uint64_t)step, NOW);
            run_check(checkpoints_newest(c, 0), (float)step);
            checkpoints_close(c);
            for (int i = LISTED + 1; i <= STEPS; i++) {
                snprintf(name, sizeof name, "model.ckpt-%d", i);
                if (is_foreign[i]) run_check(folder_path(folder, name), (float)(100 + i));
            }
            /* what is among the newest KEPT of the list, with an index or without */
            for (int i = step - KEPT + 1; i <= LISTED && i >= 1; i++) {
                snprintf(name, sizeof name, "model.ckpt-%d.data-*", i);
                assert_int_equal(folder_count(folder, name), RUN_SHARDS);
                snprintf(name, sizeof name, "model.ckpt-%d", i);
                if (!lost[i]) run_check(folder_path(folder, name), (float)i);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(the_folder_is_made_with_its_parents_and_named_absolutely),
        IN_FOLDER(a_folder_that_cannot_be_made_or_written_is_an_error_with_its_path),
        IN_FOLDER(what_is_published_is_the_newest_and_the_state_file_names_it),
        IN_FOLDER(the_newest_may_get_the_values_of_another_and_keeps_its_counts),
        IN_FOLDER(the_oldest_go_and_a_restart_goes_on_with_the_list),
        IN_FOLDER(one_per_so_many_hours_stays_for_good_over_restarts),
        IN_FOLDER(after_a_long_pause_not_every_checkpoint_stays_for_good),
        IN_FOLDER(with_keep_max_0_all_stay_and_the_state_file_names_the_last),
        IN_FOLDER(the_same_step_again_replaces_what_was_there),
        IN_FOLDER(a_step_reached_again_after_going_back_comes_last),
        IN_FOLDER(data_without_an_index_are_never_replaced),
        IN_FOLDER(a_name_is_free_where_neither_data_nor_an_index_has_it),
        IN_FOLDER(data_without_an_index_are_the_newest_where_there_is_no_list),
        IN_FOLDER(one_that_the_list_does_not_know_is_never_replaced),
        IN_FOLDER(one_that_is_read_is_replaced_when_the_reader_is_done),
        IN_FOLDER(what_is_leased_stays_until_it_is_dropped),
        IN_FOLDER(what_this_process_holds_stays_until_it_is_let_go_as_often),
        IN_FOLDER(a_lease_that_is_not_renewed_ends),
        IN_FOLDER(a_lease_of_another_checkpoint_protects_nothing),
        IN_FOLDER(a_checkpoint_that_is_gone_cannot_be_leased),
        IN_FOLDER(what_lies_elsewhere_is_never_removed),
        IN_FOLDER(a_state_file_that_cannot_be_understood_is_no_loss),
        IN_FOLDER(an_index_that_is_missing_is_told_and_its_data_stay),
        IN_FOLDER(a_removal_that_was_cut_short_is_finished),
        IN_FOLDER(a_folder_that_has_moved_has_its_checkpoints_beside_the_state_file),
        IN_FOLDER(a_state_file_that_says_where_they_are_is_right),
        IN_FOLDER(nothing_goes_but_what_retention_lets_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
