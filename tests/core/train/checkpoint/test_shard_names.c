/* test_shard_names.c - what is taken over from another run under other names, and whose pushes are
 * in what is restored. */
#include "tests/core/train/checkpoint/cluster.h"

#include <string.h>

/* ---- warm start ---- */

static const struct variable renamed[] = {
    {"emb", {2, {11, 3}}}, {"net/kernel", {2, {3, 4}}}, {"net/bias", {1, {4}}}, {"head", {0}}};
static const struct name_map maps[] = {{"words/embedding_weights", "emb"},
                                       {"hidden/*", "net/*"},
                                       {"scale/Adam_1", "head/Adam"},
                                       {"scale", "head"}};
static const char *const skips[] = {"*/bias", "head/Adam_1"};

/* The cluster's variables under the names of `renamed`. */
static struct cluster *open_renamed(void)
{
    struct cluster *cluster = cluster_open(VARIABLES, 1, 0, 2);
    struct shard *shard = &cluster->shards[0];
    for (int i = 0; i < shard->slice_count; i++) {
        for (int v = 0; v < VARIABLES; v++) {
            if (strcmp(cluster->slices[0][i].name, variables[v].name) == 0)
                cluster->slices[0][i].name = renamed[v].name;
        }
    }
    shard->global_step = 5;
    memset(shard->ledger, 0x55, sizeof cluster->ledgers[0]);
    return cluster;
}

/* Array `array` of variable v holds what another array of the checkpoint's variable holds. */
static void assert_holds(const struct cluster *cluster, int v, int array, int stored_array)
{
    float wanted[WHOLE_FLOATS], got[WHOLE_FLOATS];
    cluster_whole(v, stored_array, wanted);
    cluster_gather(cluster, array, v, got);
    assert_memory_equal(got, wanted, (size_t)shape_count(&variables[v].shape) * sizeof(float));
}

static void assert_untouched(const struct cluster *cluster, int v, int array)
{
    float got[WHOLE_FLOATS];
    cluster_gather(cluster, array, v, got);
    for (int i = 0; i < shape_count(&variables[v].shape); i++) assert_true(got[i] == POISON);
}

static void a_warm_start_takes_what_its_maps_name_and_leaves_what_it_skips(void **state)
{
    char prefix[FOLDER_PATH_MAX];
    cluster_save_some(*state, prefix);
    struct cluster *cluster = open_renamed();
    const struct warm_start warm = {maps, 4, skips, 2, .slots = false};
    assert_int_equal(cluster_restore(cluster, prefix, &warm), OK);
    assert_holds(cluster, 0, 0, 0);
    assert_holds(cluster, 1, 0, 0);
    assert_untouched(cluster, 2, 0);
    assert_holds(cluster, 3, 0, 0);
    for (int v = 0; v < VARIABLES; v++) {
        assert_untouched(cluster, v, 1);
        assert_untouched(cluster, v, 2);
    }
    assert_true(cluster->shards[0].powers[0] == 0.0f);
    assert_int_equal(cluster->shards[0].global_step, 0);
    for (int i = 0; i < WORKERS * LEDGER_COLUMNS; i++) {
        assert_int_equal(cluster->shards[0].ledger[i], 0);
    }
    cluster_close(cluster);
}

static void a_warm_start_with_slots_maps_them_with_their_variable_or_alone(void **state)
{
    char prefix[FOLDER_PATH_MAX];
    cluster_save_some(*state, prefix);
    struct cluster *cluster = open_renamed();
    const struct warm_start warm = {maps, 4, skips, 2, .slots = true};
    assert_int_equal(cluster_restore(cluster, prefix, &warm), OK);
    for (int array = 0; array < ARRAYS; array++) {
        assert_holds(cluster, 0, array, array);
        assert_holds(cluster, 1, array, array);
        assert_untouched(cluster, 2, array);
    }
    assert_holds(cluster, 3, 0, 0);
    assert_holds(cluster, 3, 1, 2);
    assert_untouched(cluster, 3, 2);
    assert_true(cluster->shards[0].powers[1] == 0.996006f);
    assert_int_equal(cluster->shards[0].global_step, 0);
    cluster_close(cluster);
}

static void a_mapped_variable_that_is_absent_is_told_by_both_names(void **state)
{
    char prefix[FOLDER_PATH_MAX];
    cluster_save_some(*state, prefix);
    struct cluster *cluster = open_renamed();
    const struct name_map wrong[] = {
        {"hiden/*", "net/*"}, {"scale", "head"}, {"words/embedding_weights", "emb"}};
    const struct warm_start warm = {wrong, 3, NULL, 0, false};
    assert_int_equal(cluster_restore(cluster, prefix, &warm), ERR_INPUT);
    assert_says(
        error_text(),
        "no variable \"hiden/kernel\" for \"net/kernel\" (did you mean \"hidden/kernel\"?)");
    cluster_close(cluster);
}

static void a_map_with_a_star_on_one_side_only_is_refused(void **state)
{
    static const struct name_map wrong[] = {
        {"a/*", "b"}, {"a", "b/*"}, {"a/*/*", "b/*"}, {"*/*", "*/*"}};
    char prefix[FOLDER_PATH_MAX];
    cluster_save_some(*state, prefix);
    struct cluster *cluster = open_renamed();
    for (int i = 0; i < 4; i++) {
        const struct warm_start warm = {&wrong[i], 1, NULL, 0, false};
        assert_int_equal(cluster_restore(cluster, prefix, &warm), ERR_INPUT);
        assert_says(error_text(), "star");
    }
    cluster_close(cluster);
}

static void a_pattern_about_nothing_is_told_with_the_nearest(void **state)
{
    static const char *const names[] = {"net/kernel", "net/kernel/Adam", "head", "a[0]"};
    const struct name_map known[] = {{"x/*", "net/*"}, {"y", "a[0]"}}, idle = {"x/*", "nett/*"};
    const char *const skips_some[] = {"*/Adam", "hea?"}, *const skips_none[] = {"*/Adm"};
    struct arena arena = {0};
    struct warm_start warm = {known, 2, skips_some, 2, false};
    assert_int_equal(warm_start_check(&warm, names, 4, &arena), OK);
    warm = (struct warm_start){known, 2, skips_none, 1, false};
    assert_int_equal(warm_start_check(&warm, names, 4, &arena), ERR_INPUT);
    assert_says(error_text(),
                "skip[0]: no variable is called \"*/Adm\" (did you mean \"*/Adam\"?)");
    warm = (struct warm_start){&idle, 1, NULL, 0, false};
    assert_int_equal(warm_start_check(&warm, names, 4, &arena), ERR_INPUT);
    assert_says(error_text(), "map[0]: no variable is called \"nett/*\" (did you mean \"net/*\"?)");
    arena_free(&arena);
}

/* ---- ledgers ---- */

static void as_many_ps_get_their_own_ledgers(void **state)
{
    char *folder = *state, prefix[FOLDER_PATH_MAX];
    struct cluster *wrote = cluster_open(VARIABLES, 3, 0, 2);
    cluster_fill(wrote);
    cluster_save(wrote, folder, prefix);
    struct cluster *reads = cluster_open(VARIABLES, 3, 1, 4);
    assert_int_equal(cluster_restore(reads, prefix, NULL), OK);
    for (int ps = 0; ps < 3; ps++) {
        assert_memory_equal(reads->ledgers[ps], wrote->ledgers[ps], sizeof wrote->ledgers[ps]);
    }
    cluster_close(wrote);
    cluster_close(reads);
}

static void another_number_of_ps_gets_the_largest_counts_of_all_ledgers(void **state)
{
    char *folder = *state, prefix[FOLDER_PATH_MAX];
    cluster_save_some(folder, prefix);
    for (int ps_count = 1; ps_count <= 3; ps_count += 2) {
        struct cluster *reads = cluster_open(VARIABLES, ps_count, 0, 0);
        assert_int_equal(cluster_restore(reads, prefix, NULL), OK);
        for (int ps = 0; ps < ps_count; ps++) {
            for (int w = 0; w < WORKERS; w++) {
                const int64_t wanted[] = {100 * w + 11, 100 * w + 1, 40};
                assert_memory_equal(reads->ledgers[ps] + w * LEDGER_COLUMNS, wanted, sizeof wanted);
            }
        }
        cluster_close(reads);
    }
}

static void assert_stands_at(const int64_t *row, int64_t step)
{
    const int64_t wanted[] = {step, step, step};
    assert_memory_equal(row, wanted, sizeof wanted);
}

static void without_ledgers_every_worker_stands_at_the_global_step(void **state)
{
    char prefix[FOLDER_PATH_MAX];
    snprintf(prefix, sizeof prefix, "%s/cluster_adam/model.ckpt-3", FIXTURES);
    struct cluster *cluster = cluster_open(3, 2, 0, 2);
    assert_int_equal(cluster_restore(cluster, prefix, NULL), OK);
    for (int ps = 0; ps < 2; ps++) {
        for (int w = 0; w < WORKERS; w++) {
            assert_stands_at(cluster->ledgers[ps] + w * LEDGER_COLUMNS, 3);
        }
    }
    cluster_close(cluster);
}

static void workers_that_are_new_stand_at_the_global_step(void **state)
{
    char *folder = *state, prefix[FOLDER_PATH_MAX];
    struct cluster *cluster = cluster_open(VARIABLES, 1, 0, 0);
    cluster_fill(cluster);
    cluster->shards[0].workers = 1;
    cluster_save(cluster, folder, prefix);
    cluster->shards[0].workers = WORKERS;
    memset(cluster->ledgers[0], 0x55, sizeof cluster->ledgers[0]);
    assert_int_equal(cluster_restore(cluster, prefix, NULL), OK);
    const int64_t *ledger = cluster->ledgers[0];
    assert_int_equal(ledger[0], 10);
    assert_int_equal(ledger[1], 0);
    assert_stands_at(ledger + LEDGER_COLUMNS, 41);
    assert_stands_at(ledger + 2 * LEDGER_COLUMNS, 41);
    cluster_close(cluster);
}

static void a_made_up_ledger_is_refused(void **state)
{
    char step[FOLDER_PATH_MAX], ledger[FOLDER_PATH_MAX], prefix[FOLDER_PATH_MAX];
    const int64_t rows[] = {5, -1, 3, 0, 0, 0, 0, 0};
    const struct bundle_piece global_step = {.name = "global_step", .dtype = BUNDLE_INT64};
    const struct bundle_shape shapes[] = {{2, {2, 4}}, {2, {4, 2}}, {1, {8}}, {3, {1, 2, 4}}};
    for (int i = 0; i < 4; i++) {
        snprintf(step, sizeof step, "%s/step", (char *)*state);
        snprintf(ledger, sizeof ledger, "%s/ledger", (char *)*state);
        snprintf(prefix, sizeof prefix, "%s/made_up-%d", (char *)*state, i);
        write_one(step, &global_step, &(int64_t){5});
        const struct bundle_piece piece = {
            .name = "dtrain/ledger/ps_00000", .dtype = BUNDLE_INT64, .shape = shapes[i]};
        write_one(ledger, &piece, rows);
        assert_int_equal(bundle_merge((const char *const[]){step, ledger}, 2, prefix), OK);
        int64_t read[WORKERS * LEDGER_COLUMNS];
        struct shard shard = {.ps_count = 1, .workers = WORKERS, .ledger = read};
        assert_says(cluster_refusal(prefix, &shard), "dtrain/ledger/ps_00000");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_warm_start_takes_what_its_maps_name_and_leaves_what_it_skips),
        IN_FOLDER(a_warm_start_with_slots_maps_them_with_their_variable_or_alone),
        IN_FOLDER(a_mapped_variable_that_is_absent_is_told_by_both_names),
        IN_FOLDER(a_map_with_a_star_on_one_side_only_is_refused),
        cmocka_unit_test(a_pattern_about_nothing_is_told_with_the_nearest),
        IN_FOLDER(as_many_ps_get_their_own_ledgers),
        IN_FOLDER(another_number_of_ps_gets_the_largest_counts_of_all_ledgers),
        IN_FOLDER(without_ledgers_every_worker_stands_at_the_global_step),
        IN_FOLDER(workers_that_are_new_stand_at_the_global_step),
        IN_FOLDER(a_made_up_ledger_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
