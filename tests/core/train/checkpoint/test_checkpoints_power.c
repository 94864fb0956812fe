/* test_checkpoints_power.c - whenever the power fails, the last checkpoint that was reported as
 * saved is found again, whole; or the one that was about to be. */
#include "tests/core/train/checkpoint/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/train/checkpoint/best_checkpoints.h"
#include "core/base/log.h"
#include "core/train/checkpoint/bundle/file.h"
#include "tests/core/train/checkpoint/power.h"

enum { NOW = 1700000000, DISKS_MIN = 300 };

/* What the checkpoints hold; 0: none. */
struct saved {
    float reported, coming;
    bool is_best; /* it is about the folder of the best ones */
};

static float value_of(const char *prefix)
{
    struct bundle *bundle = NULL;
    float values[RUN_SHARDS * RUN_FLOATS] = {0};
    if (bundle_open(prefix, &bundle)) fail_msg("%s", error_text());
    assert_int_equal(bundle_read(bundle, bundle_find(bundle, "w"), NULL, values, sizeof values),
                     OK);
    bundle_close(bundle);
    run_check(prefix, values[0]);
    return values[0];
}

/* Nothing was reported yet, and no list is there: what a run finds by searching is whole, or it
 * starts over. */
static void look_at_first(const char *run)
{
    struct stat status;
    if (stat(run, &status)) return;
    struct checkpoints *c = run_open(run, 2, NOW);
    const char *newest = checkpoints_newest(c, 0);
    if (newest) value_of(newest);
    checkpoints_close(c);
}

/* By those who only read, and by a run that continues. */
static void look(void *context, const char *disk)
{
    const struct saved *saved = context;
    char run[FOLDER_PATH_MAX + 16], prefix[CHECKPOINT_PATH_MAX];
    snprintf(run, sizeof run, "%s/a/run%s", disk, saved->is_best ? "/best" : "");
    const err e = checkpoint_find(run, prefix);
    if (e && saved->reported == 0) {
        if (!saved->is_best) look_at_first(run);
        return;
    }
    if (e) fail_msg("%g was saved: %s", saved->reported, error_text());
    const float value = value_of(prefix);
    if (value != saved->reported && value != saved->coming)
        fail_msg("%g was saved, %g is found", saved->reported, value);
    if (saved->is_best) return;

    struct checkpoints *c = run_open(run, 2, NOW);
    const char *newest = checkpoints_newest(c, 0);
    assert_non_null(newest);
    assert_true(value_of(newest) == value);
    checkpoints_close(c);
}

static void save(struct checkpoints *c, struct saved *saved, uint64_t step)
{
    power_forget();
    saved->coming = saved->reported + 1;
    if (run_try(c, step, saved->coming, NOW)) fail_msg("%s", error_text());
    power_forget();
    saved->reported = saved->coming;
}

/* New steps, the same once more, and once more while it is read. */
static void saved_is_saved(const char *folder, int64_t keep_max)
{
    struct saved saved = {0};
    struct lease *lease = NULL;
    char watched[FOLDER_PATH_MAX], run[FOLDER_PATH_MAX + 16];
    char *disk = strdup(folder_path(folder, "disk"));
    snprintf(watched, sizeof watched, "%s", folder_path(folder, "watched"));
    snprintf(run, sizeof run, "%s/a/run", watched);
    assert_int_equal(mkdir(watched, 0777), 0);
    log_set_level(LOG_ERROR);
    power_begin(watched, disk, look, &saved);
    struct checkpoints *c = run_open(run, keep_max, NOW);
    for (uint64_t step = 1; step <= 3; step++) save(c, &saved, step);
    save(c, &saved, 3);
    assert_int_equal(lease_take(checkpoints_newest(c, 0), "reader", &lease), OK);
    save(c, &saved, 3);
    lease_drop(lease);
    save(c, &saved, 3);
    checkpoints_close(c);
    c = run_open(run, keep_max, NOW);
    save(c, &saved, 4);
    checkpoints_close(c);
    assert_true(power_end() > DISKS_MIN); /* about 2300 */
    free(disk);
}

static void what_was_reported_as_saved_outlives_a_power_cut(void **state)
{
    saved_is_saved(*state, 2);
}

static void also_where_all_are_kept(void **state)
{
    saved_is_saved(*state, 0);
}

/* Each is better than the one before, so that one of them goes each time. */
static void the_best_one_outlives_it_too(void **state)
{
    struct saved saved = {.is_best = true};
    struct best_checkpoints best;
    char watched[FOLDER_PATH_MAX], run[FOLDER_PATH_MAX + 16];
    char *disk = strdup(folder_path(*state, "disk"));
    snprintf(watched, sizeof watched, "%s", folder_path(*state, "watched"));
    snprintf(run, sizeof run, "%s/a/run", watched);
    assert_int_equal(mkdir(watched, 0777), 0);
    power_begin(watched, disk, look, &saved);
    struct checkpoints *c = run_open(run, 2, NOW);
    assert_int_equal(best_checkpoints_open(&best, run, "loss", BETTER_LESS, 1), OK);
    for (int step = 1; step <= 3; step++) {
        const struct best_checkpoint entry = {.step = step, .value = 1.0 / step};
        const char *prefix = run_publish(c, (uint64_t)step, NOW);
        saved.coming = (float)step;
        power_forget();
        if (best_checkpoints_offer(&best, prefix, &entry)) fail_msg("%s", error_text());
        saved.reported = saved.coming;
        power_forget();
        /* a run that was done is started, and evaluated, again */
        if (best_checkpoints_offer(&best, prefix, &entry)) fail_msg("%s", error_text());
        power_forget();
    }
    checkpoints_close(c);
    assert_true(power_end() > DISKS_MIN);
    free(disk);
}

/* As a chief writes those of ps that do not see the folder. */
static void send(const char *from, const char *to, const char *ending)
{
    enum { PIECE = 100 };
    char path[CHECKPOINT_PATH_MAX + 32];
    uint8_t *bytes = NULL;
    size_t count = 0;
    snprintf(path, sizeof path, "%s%s", from, ending);
    assert_int_equal(bundle_file_load(path, 1 << 20, &bytes, &count), OK);
    assert_true(count > PIECE);
    snprintf(path, sizeof path, "%s%s", to, ending);
    assert_int_equal(bundle_file_piece(path, 0, bytes, PIECE), OK);
    assert_int_equal(bundle_file_piece(path, PIECE, bytes + PIECE, count - PIECE), OK);
    free(bytes);
}

static void shards_that_come_in_pieces_outlive_it_too(void **state)
{
    struct saved saved = {.coming = 1};
    char watched[FOLDER_PATH_MAX], run[FOLDER_PATH_MAX + 16];
    char folder[CHECKPOINT_PATH_MAX], prefix[CHECKPOINT_PATH_MAX];
    char *disk = strdup(folder_path(*state, "disk")), *afar = strdup(folder_path(*state, "afar"));
    snprintf(watched, sizeof watched, "%s", folder_path(*state, "watched"));
    snprintf(run, sizeof run, "%s/a/run", watched);
    assert_int_equal(mkdir(watched, 0777) | mkdir(afar, 0777), 0);
    assert_int_equal(run_write_shards(afar, saved.coming), OK);
    power_begin(watched, disk, look, &saved);
    struct checkpoints *c = run_open(run, 2, NOW);
    assert_int_equal(checkpoints_begin(c, 1, 1, folder), OK);
    for (int i = 0; i < RUN_SHARDS; i++) {
        char from[CHECKPOINT_PATH_MAX], to[CHECKPOINT_PATH_MAX];
        checkpoint_shard_prefix(afar, i, RUN_SHARDS, from);
        checkpoint_shard_prefix(folder, i, RUN_SHARDS, to);
        send(from, to, ".data-00000-of-00001");
        send(from, to, ".index");
    }
    assert_int_equal(checkpoints_publish(c, folder, RUN_SHARDS, 1, NOW, prefix), OK);
    saved.reported = saved.coming;
    power_forget();
    checkpoints_close(c);
    assert_true(power_end() > 10);
    free(disk);
    free(afar);
}

static void look_at_shards(void *context, const char *disk)
{
    const struct saved *saved = context;
    for (int i = 0; i < RUN_SHARDS && saved->reported > 0; i++) {
        struct bundle *bundle = NULL;
        char prefix[CHECKPOINT_PATH_MAX];
        checkpoint_shard_prefix(disk, i, RUN_SHARDS, prefix);
        if (bundle_open(prefix, &bundle) || bundle_verify(bundle)) fail_msg("%s", error_text());
        bundle_close(bundle);
    }
}

static void bundles_that_are_finished_outlive_it_too(void **state)
{
    struct saved saved = {0};
    char watched[FOLDER_PATH_MAX];
    char *disk = strdup(folder_path(*state, "disk"));
    snprintf(watched, sizeof watched, "%s", folder_path(*state, "watched"));
    assert_int_equal(mkdir(watched, 0777), 0);
    power_begin(watched, disk, look_at_shards, &saved);
    assert_int_equal(run_write_shards(watched, 1), OK);
    saved.reported = 1;
    power_forget();
    assert_true(power_end() > 0);
    free(disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(what_was_reported_as_saved_outlives_a_power_cut),
        IN_FOLDER(also_where_all_are_kept),
        IN_FOLDER(the_best_one_outlives_it_too),
        IN_FOLDER(shards_that_come_in_pieces_outlive_it_too),
        IN_FOLDER(bundles_that_are_finished_outlive_it_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
