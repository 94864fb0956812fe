/* test_shard.c - what ps write is read by any number of ps, cut in any other way; so is what
 * TensorFlow wrote on a cluster. */
#include "tests/core/train/checkpoint/cluster.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void read_back(const char *prefix, int ps_count, int axis, int parts)
{
    struct cluster *cluster = cluster_open(VARIABLES, ps_count, axis, parts);
    assert_int_equal(cluster_restore(cluster, prefix, NULL), OK);
    for (int array = 0; array < ARRAYS; array++) {
        cluster_check(cluster, array);
        /* what lies between the slices was left alone */
        assert_true(cluster_poisoned(cluster, array) >=
                    ps_count * BLOCK_FLOATS - (33 + 12 + 4 + 1));
    }
    for (int ps = 0; ps < ps_count; ps++) {
        assert_true(cluster->shards[ps].powers[0] == 0.6561f);
        assert_true(cluster->shards[ps].powers[1] == 0.996006f);
        assert_int_equal(cluster->shards[ps].global_step, 41);
    }
    cluster_close(cluster);
}

static void two_ps_write_and_any_number_reads_whatever_the_cut(void **state)
{
    char *folder = *state, prefix[FOLDER_PATH_MAX];
    cluster_save_some(folder, prefix);
    for (int ps_count = 1; ps_count <= PS_SOME; ps_count++) {
        read_back(prefix, ps_count, 0, 0);
        for (int axis = 0; axis < 2; axis++) {
            for (int parts = 1; parts <= 5; parts++) read_back(prefix, ps_count, axis, parts);
        }
    }
}

static void what_was_cut_along_columns_is_read_along_rows(void **state)
{
    char *folder = *state, prefix[FOLDER_PATH_MAX];
    struct cluster *cluster = cluster_open(VARIABLES, 3, 1, 2);
    cluster_fill(cluster);
    cluster_save(cluster, folder, prefix);
    cluster_close(cluster);
    read_back(prefix, 2, 0, 4);
    read_back(prefix, 1, 0, 0);
}

static void the_checkpoint_has_tensorflows_names_and_nothing_else_but_ledgers(void **state)
{
    static const char *const names[] = {"beta1_power",
                                        "beta2_power",
                                        "dtrain/ledger/ps_00000",
                                        "dtrain/ledger/ps_00001",
                                        "global_step",
                                        "hidden/bias",
                                        "hidden/bias/Adam",
                                        "hidden/bias/Adam_1",
                                        "hidden/kernel",
                                        "hidden/kernel/Adam",
                                        "hidden/kernel/Adam_1",
                                        "scale",
                                        "scale/Adam",
                                        "scale/Adam_1",
                                        "words/embedding_weights",
                                        "words/embedding_weights/Adam",
                                        "words/embedding_weights/Adam_1"};
    char *folder = *state, prefix[FOLDER_PATH_MAX];
    struct bundle *bundle = NULL;
    cluster_save_some(folder, prefix);
    assert_int_equal(bundle_open(prefix, &bundle), OK);
    assert_int_equal(bundle_entries(bundle), sizeof names / sizeof *names);
    for (int i = 0; i < bundle_entries(bundle); i++) {
        assert_string_equal(bundle_at(bundle, i)->name, names[i]);
    }
    const struct bundle_entry *step = bundle_find(bundle, "global_step");
    assert_int_equal(step->dtype, BUNDLE_INT64);
    assert_int_equal(step->shape.rank, 0);
    const struct bundle_entry *words = bundle_find(bundle, "words/embedding_weights");
    assert_int_equal(words->slice_count, 3);
    assert_int_equal(words->shape.dim[0], 11);
    bundle_close(bundle);
}

/* ---- TensorFlow's ---- */

static void check_floats(json_t *expected, const char *name, const float *got)
{
    float wanted[WHOLE_FLOATS];
    json_t *tensor = json_object_get(json_object_get(expected, "variables"), name);
    const int count = fixture_floats(tensor, wanted, WHOLE_FLOATS);
    for (int i = 0; i < count; i++) assert_true(got[i] == wanted[i]);
}

static void check_fixture(const struct cluster *cluster, const char *fixture)
{
    char path[256];
    snprintf(path, sizeof path, "%s/expected.json", fixture);
    json_t *expected = fixture_load(path);
    for (int v = 0; v < cluster->layout->variable_count; v++) {
        float whole[WHOLE_FLOATS];
        for (int array = 0; array < ARRAYS; array++) {
            const char *slot = array ? cluster->shards[0].slot_names[0].at[array - 1] : "";
            snprintf(path, sizeof path, "%s%s%s", variables[v].name, array ? "/" : "", slot);
            cluster_gather(cluster, array, v, whole);
            check_floats(expected, path, whole);
        }
    }
    for (int i = 0; i < cluster->shards[0].power_count; i++) {
        const char *name = cluster->shards[0].power_names[i];
        json_t *power = json_object_get(json_object_get(expected, "variables"), name);
        assert_true(cluster->shards[0].powers[i] == (float)json_real_value(power));
    }
    json_decref(expected);
}

/* Every ps count and cut, with the slots and powers of the optimizer that trained it. */
static void read_fixture(const char *fixture, const char *const slots[2], int powers)
{
    for (int ps_count = 1; ps_count <= PS_SOME; ps_count++) {
        for (int parts = 0; parts <= 4; parts += 2) {
            struct cluster *cluster = cluster_open(3, ps_count, 0, parts);
            char prefix[FOLDER_PATH_MAX];
            snprintf(prefix, sizeof prefix, "%s/%s/model.ckpt-3", FIXTURES, fixture);
            for (int ps = 0; ps < ps_count; ps++) {
                struct shard *shard = &cluster->shards[ps];
                shard->slot_names[0].at[0] = slots[0], shard->slot_names[0].at[1] = slots[1];
                shard->power_count = powers;
            }
            assert_int_equal(cluster_restore(cluster, prefix, NULL), OK);
            check_fixture(cluster, fixture);
            for (int ps = 0; ps < ps_count; ps++) {
                assert_int_equal(cluster->shards[ps].global_step, 3);
            }
            cluster_close(cluster);
        }
    }
}

static void tensorflows_adam_checkpoint_of_two_ps_is_read_by_any_number(void **state)
{
    read_fixture("cluster_adam", (const char *const[]){"Adam", "Adam_1"}, 2);
}

static void tensorflows_ftrl_checkpoint_of_three_ps_is_read_by_any_number(void **state)
{
    read_fixture("cluster_ftrl", (const char *const[]){"Ftrl", "Ftrl_1"}, 0);
}

/* ---- what does not fit ---- */

/* One float variable of that name and shape, in a cluster of one ps. */
static const char *text_for(const char *prefix, const char *name, struct shape shape)
{
    static float block[WHOLE_FLOATS];
    static int64_t ledger[LEDGER_COLUMNS];
    const struct slice slice = {.name = name,
                                .shape = shape,
                                .length = shape.rank ? shape.dim[0] : 1,
                                .count = shape_count(&shape)};
    struct shard shard = {.ps_count = 1,
                          .slices = &slice,
                          .slice_count = 1,
                          .values = block,
                          .workers = 1,
                          .ledger = ledger};
    return cluster_refusal(prefix, &shard);
}

static void an_absent_variable_is_named_with_the_nearest_name_that_is_there(void **state)
{
    char prefix[FOLDER_PATH_MAX];
    cluster_save_some(*state, prefix);
    const char *text = text_for(prefix, "hiden/kernel", (struct shape){2, {3, 4}});
    assert_says(text, prefix);
    assert_says(text, "no variable \"hiden/kernel\" (did you mean \"hidden/kernel\"?)");
    text = text_for(prefix, "quite/different", (struct shape){2, {3, 4}});
    assert_says(text, "no variable \"quite/different\"");
    assert_null(strstr(text, "did you mean"));
}

static void a_shape_that_differs_is_told_with_both_shapes(void **state)
{
    char prefix[FOLDER_PATH_MAX];
    cluster_save_some(*state, prefix);
    const char *text = text_for(prefix, "hidden/kernel", (struct shape){2, {4, 3}});
    assert_says(text, "hidden/kernel has shape [3, 4] there, [4, 3] here");
    text = text_for(prefix, "hidden/bias", (struct shape){0});
    assert_says(text, "hidden/bias has shape [4] there, [] here");
    text = text_for(prefix, "scale", (struct shape){1, {1}});
    assert_says(text, "scale has shape [] there, [1] here");
}

static void a_type_that_differs_is_told_with_both_types(void **state)
{
    char prefix[FOLDER_PATH_MAX];
    cluster_save_some(*state, prefix);
    assert_says(text_for(prefix, "global_step", (struct shape){0}),
                "global_step is int64 there, float32 here");
}

static void an_absent_slot_or_power_is_named(void **state)
{
    char prefix[FOLDER_PATH_MAX];
    cluster_save_some(*state, prefix);
    struct cluster *cluster = cluster_open(VARIABLES, 1, 0, 0);
    cluster->shards[0].slot_names[0].at[1] = "Adam_2";
    assert_says(cluster_refusal(prefix, &cluster->shards[0]),
                "no slot \"words/embedding_weights/Adam_2\" (did you mean "
                "\"words/embedding_weights/Adam_1\"?); another optimizer saved it: "
                "train.warm_start takes values without slots");
    cluster->shards[0].slot_names[0].at[1] = "Adam_1";
    cluster->shards[0].power_names[1] = "beta3_power";
    assert_says(cluster_refusal(prefix, &cluster->shards[0]),
                "no value \"beta3_power\" (did you mean \"beta1_power\"?); another optimizer saved "
                "it: train.warm_start takes values without slots");
    cluster_close(cluster);
}

static void a_global_step_may_be_int32_but_not_negative_and_not_absent(void **state)
{
    char prefix[FOLDER_PATH_MAX];
    int64_t ledger[LEDGER_COLUMNS];
    struct shard shard = {.ps_count = 1, .workers = 1, .ledger = ledger};
    struct bundle_piece piece = {.name = "global_step", .dtype = BUNDLE_INT32};
    struct bundle *bundle = NULL;

    snprintf(prefix, sizeof prefix, "%s/short", (char *)*state);
    write_one(prefix, &piece, &(int32_t){77});
    assert_int_equal(bundle_open(prefix, &bundle), OK);
    assert_int_equal(shard_read(bundle, NULL, &shard), OK);
    assert_int_equal(shard.global_step, 77);
    bundle_close(bundle);

    piece.dtype = BUNDLE_INT64;
    snprintf(prefix, sizeof prefix, "%s/negative", (char *)*state);
    write_one(prefix, &piece, &(int64_t){-1});
    assert_says(cluster_refusal(prefix, &shard), "a global step of -1");

    snprintf(prefix, sizeof prefix, "%s/far", (char *)*state);
    write_one(prefix, &piece, &(int64_t){INT64_MAX});
    assert_says(cluster_refusal(prefix, &shard), "far: a global step of 9223372036854775807");

    piece.name = "global_steps";
    snprintf(prefix, sizeof prefix, "%s/absent", (char *)*state);
    write_one(prefix, &piece, &(int64_t){5});
    assert_says(cluster_refusal(prefix, &shard), "no value \"global_step\"");
}

/* A ps that is told of such numbers later refuses them, and so does each of its lives. */
static void numbers_that_no_run_has_are_refused_with_the_checkpoint(void **state)
{
    static const int64_t wrong[][LEDGER_COLUMNS] = {
        {INT64_MAX, 4, 4}, {INT64_MAX, INT64_MAX, 4}, {5, 4, INT64_MAX}, {5, -1, 4}, {5, 6, 4}};
    struct cluster *cluster = cluster_open(VARIABLES, 1, 0, 0);
    struct shard *shard = &cluster->shards[0];
    char prefix[FOLDER_PATH_MAX];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cluster_fill(cluster);
        memcpy(shard->ledger, wrong[i], sizeof wrong[i]);
        cluster_save(cluster, *state, prefix);
        assert_says(cluster_refusal(prefix, shard), "dtrain/ledger/ps_00000: ");
        assert_says(cluster_refusal(prefix, shard), prefix);
        assert_int_equal(bundle_remove(prefix), OK);
    }
    cluster_fill(cluster);
    shard->powers[1] = INFINITY;
    cluster_save(cluster, *state, prefix);
    assert_says(cluster_refusal(prefix, shard), "beta2_power is inf");
    cluster_close(cluster);
}

static void a_shard_that_cannot_be_written_leaves_nothing(void **state)
{
    char prefix[FOLDER_PATH_MAX];
    struct cluster *cluster = cluster_open(VARIABLES, 1, 0, 0);
    cluster_fill(cluster);
    snprintf(prefix, sizeof prefix, "%s/absent/part-0", (char *)*state);
    assert_int_equal(shard_write(&cluster->shards[0], prefix), ERR_IO);
    assert_says(error_text(), prefix);
    cluster->slices[0][1].name = cluster->slices[0][0].name; /* twice the same tensor */
    cluster->slices[0][1].shape = cluster->slices[0][0].shape;
    snprintf(prefix, sizeof prefix, "%s/part-0", (char *)*state);
    assert_int_not_equal(shard_write(&cluster->shards[0], prefix), OK);
    assert_int_equal(folder_count(*state, "*"), 0);
    cluster_close(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(two_ps_write_and_any_number_reads_whatever_the_cut),
        IN_FOLDER(what_was_cut_along_columns_is_read_along_rows),
        IN_FOLDER(the_checkpoint_has_tensorflows_names_and_nothing_else_but_ledgers),
        IN_FOLDER(tensorflows_adam_checkpoint_of_two_ps_is_read_by_any_number),
        IN_FOLDER(tensorflows_ftrl_checkpoint_of_three_ps_is_read_by_any_number),
        IN_FOLDER(an_absent_variable_is_named_with_the_nearest_name_that_is_there),
        IN_FOLDER(a_shape_that_differs_is_told_with_both_shapes),
        IN_FOLDER(a_type_that_differs_is_told_with_both_types),
        IN_FOLDER(an_absent_slot_or_power_is_named),
        IN_FOLDER(a_global_step_may_be_int32_but_not_negative_and_not_absent),
        IN_FOLDER(numbers_that_no_run_has_are_refused_with_the_checkpoint),
        IN_FOLDER(a_shard_that_cannot_be_written_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
