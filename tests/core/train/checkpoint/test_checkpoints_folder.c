/* test_checkpoints_folder.c - what a run's folder holds: the state file, whoever wrote it;
 * temporary things of dead runs; tokens; and how others find a checkpoint in it. */
#include "tests/core/train/checkpoint/run.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/random.h"
#include "core/train/checkpoint/ended.h"

enum { NOW = 1700000000, DAY = 24 * 60 * 60, TAG = 0x1234, NOISE = 3000 };

/* ---- finding ---- */

static void assert_finds(const char *path, const char *wanted)
{
    char prefix[CHECKPOINT_PATH_MAX];
    if (checkpoint_find(path, prefix)) fail_msg("%s", error_text());
    assert_string_equal(prefix, wanted);
}

static void a_checkpoint_is_found_by_its_folder_its_prefix_and_its_index(void **state)
{
    char wanted[FOLDER_PATH_MAX];
    struct checkpoints *c = run_open(*state, 5, NOW);
    run_publish(c, 7, NOW);
    snprintf(wanted, sizeof wanted, "%s", run_publish(c, 12, NOW));
    checkpoints_close(c);
    assert_finds(*state, wanted);
    assert_finds(wanted, wanted);
    assert_finds(folder_path(*state, "model.ckpt-12.index"), wanted);
    assert_finds(folder_path(*state, "model.ckpt-7"), folder_path(*state, "model.ckpt-7"));
}

static void assert_not_found(const char *path, const char *looked_for)
{
    char prefix[CHECKPOINT_PATH_MAX] = "untouched";
    assert_int_equal(checkpoint_find(path, prefix), ERR_INPUT);
    if (!strstr(error_text(), looked_for)) fail_msg("%s not in: %s", looked_for, error_text());
    assert_string_equal(prefix, "untouched");
}

static void what_is_not_found_is_told_with_what_was_looked_for(void **state)
{
    char **list = NULL;
    int count = 0;
    assert_not_found(*state, folder_path(*state, "checkpoint"));
    assert_not_found(folder_path(*state, "absent"), folder_path(*state, "absent.index"));
    assert_not_found(folder_path(*state, "x.index"), folder_path(*state, "x.index"));
    file_write(*state, "checkpoint", "model_checkpoint_path: \"model.ckpt-5\"\n");
    assert_not_found(*state, folder_path(*state, "model.ckpt-5.index"));
    file_write(*state, "checkpoint", "model_checkpoint_path = 5");
    assert_not_found(*state, folder_path(*state, "checkpoint: line 1: expected a colon"));
    assert_int_equal(checkpoint_list(*state, &list, &count), ERR_INPUT);
    assert_int_equal(checkpoint_list(folder_path(*state, "absent"), &list, &count), ERR_INPUT);
    assert_null(list);
}

static void the_step_is_read_from_the_name(void **state)
{
    assert_int_equal(checkpoint_step("/run/model.ckpt-0"), 0);
    assert_int_equal(checkpoint_step("model.ckpt-1234567890123"), 1234567890123);
    assert_int_equal(checkpoint_step("/a-5/model.ckpt-007"), 7);
    static const char *const without[] = {"",
                                          "/",
                                          "model.ckpt",
                                          "model.ckpt-",
                                          "model.ckpt-x",
                                          "model.ckpt-5.index",
                                          "5",
                                          "x",
                                          "model.ckpt--5",
                                          "my.model.ckpt-5",
                                          "model.ckpt-5/",
                                          "model.ckpt-99999999999999999999"};
    for (int i = 0; i < (int)(sizeof without / sizeof *without); i++) {
        assert_int_equal(checkpoint_step(without[i]), -1);
    }
}

static void tensorflows_folder_is_read(void **state)
{
    const char *folder = FIXTURES "/cluster_adam";
    assert_finds(folder, FIXTURES "/cluster_adam/model.ckpt-3");
    assert_string_equal(run_list(folder), "model.ckpt-0 model.ckpt-3");
}

/* ---- the state file ---- */

/* The list of a folder whose state file is this text, "-" where it cannot be understood. */
static const char *list_of(const char *folder, const char *text)
{
    char **list = NULL;
    int count = 0;
    file_write(folder, "checkpoint", text);
    const err e = checkpoint_list(folder, &list, &count);
    free(list);
    if (e) assert_int_equal(e, ERR_INPUT);
    return e ? "-" : run_list(folder);
}

static void others_state_files_are_understood(void **state)
{
    static const struct {
        const char *text, *list;
    } cases[] = {
        {"model_checkpoint_path: \"a\"", "a"},
        {"# by hand\nmodel_checkpoint_path:'a' # the last\n\n", "a"},
        {"model_checkpoint_path: \"/x/y/b\"\nall_model_checkpoint_paths: \"/x/y/a\"\n"
         "all_model_checkpoint_paths: \"/x/y/b\"\n",
         "a b"},
        {"all_model_checkpoint_paths: \"b\"\nall_model_checkpoint_paths: \"a\"\n"
         "all_model_checkpoint_paths: \"c\"\nmodel_checkpoint_path: \"a\"\n",
         "b c a"},
        {"all_model_checkpoint_paths: \"a\" model_checkpoint_path: \"b\"", "a b"},
        {"all_model_checkpoint_timestamps: 1.7e9\nmodel_checkpoint_path: \"a\";\n"
         "all_model_checkpoint_paths: \"a\",\nlast_preserved_timestamp: 5",
         "a"},
        {"later: 5\nmore: \"text\" and: -1.5e-3 so { on: \"}\" { } x: [1, 2, 'z'] }\n"
         "less: <a: <b: c>>\nmodel_checkpoint_path: \"a\"\nlist: [ {a: 1}, {b: 2} ]",
         "a"},
        {"model_checkpoint_path: \"\\141\\x62\\\"\\'\\\\\\t\\303\\244\"", "ab\"'\\\t\303\244"},
    };
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        assert_string_equal(list_of(*state, cases[i].text), cases[i].list);
    }
}

static void what_is_no_state_file_is_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "# nothing",
        "all_model_checkpoint_paths: \"a\"",
        "model_checkpoint_path",
        "model_checkpoint_path:",
        "model_checkpoint_path: a",
        "model_checkpoint_path: \"\"",
        "model_checkpoint_path: \"a",
        "model_checkpoint_path: \"a\n\"",
        "model_checkpoint_path: \"a'",
        "model_checkpoint_path: \"\\q\"",
        "model_checkpoint_path: \"\\000\"",
        "model_checkpoint_path: \"\\777\"",
        "model_checkpoint_path: \"\\x\"",
        "model_checkpoint_path { x: 1 }",
        "model_checkpoint_path: \"a\" }",
        "model_checkpoint_path: \"a\" x: { ",
        "model_checkpoint_path: \"a\" x: ]",
        "model_checkpoint_path: \"a\" x: [ }",
        "model_checkpoint_path: \"a\" last_preserved_timestamp: x",
        "model_checkpoint_path: \"a\" last_preserved_timestamp: inf",
        "model_checkpoint_path: \"a\" all_model_checkpoint_timestamps: -1",
        "{\"model_checkpoint_path\": \"a\"}",
    };
    for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++) {
        if (strcmp(list_of(*state, texts[i]), "-") != 0) fail_msg("understood: %s", texts[i]);
    }
    char deep[512] = "model_checkpoint_path: \"a\" x: ";
    memset(deep + strlen(deep), '{', 200);
    assert_string_equal(list_of(*state, deep), "-");
    static char wide[8192] = "model_checkpoint_path: \"";
    memset(wide + strlen(wide), 'a', CHECKPOINT_PATH_MAX);
    strcat(wide, "\"");
    assert_string_equal(list_of(*state, wide), "-");
}

static void a_state_file_cut_off_or_changed_anywhere_is_refused_or_read(void **state)
{
    static const char whole[] = "model_checkpoint_path: \"model.ckpt-2\"\n"
                                "all_model_checkpoint_paths: \"model.ckpt-\\061\"\n"
                                "all_model_checkpoint_timestamps: 1.5\n"
                                "other { nested: \"text\" } # end\n";
    int refused = 0;
    for (int i = 0; i < NOISE; i++) {
        char text[sizeof whole];
        memcpy(text, whole, sizeof text);
        const uint64_t at = random_u64(1, (uint64_t)i) % (sizeof whole - 1);
        text[at] = i < (int)sizeof whole ? '\0' : (char)(random_u64(2, (uint64_t)i) | 1);
        refused += strcmp(list_of(*state, text), "-") == 0;
    }
    assert_in_range(refused, NOISE / 10, NOISE - 1);
}

static void names_with_strange_characters_are_written_so_that_they_are_read_again(void **state)
{
    char strange[FOLDER_PATH_MAX];
    snprintf(strange, sizeof strange, "%s/a \"b\"\\\n\303\244", (char *)*state);
    struct checkpoints *c = run_open(strange, 5, NOW);
    run_publish(c, 1, NOW);
    checkpoints_close(c);
    const char *run = folder_path(*state, "run");
    checkpoints_close(run_open(run, 5, NOW));
    file_write(run, "checkpoint",
               "model_checkpoint_path: \"../a \\\"b\\\"\\\\\\n\\303\\244/model.ckpt-1\"");
    for (int i = 0; i < 2; i++) { /* the second time from our own state file */
        c = run_open(run, 5, NOW);
        run_check(checkpoints_newest(c, i), 1);
        run_publish(c, 2, NOW);
        checkpoints_close(c);
    }
    assert_non_null(strstr(file_read(run, "checkpoint"), "a \\\"b\\\"\\\\\\012\\303\\244/model"));
}

/* ---- temporary things ---- */

/* Whoever is last, the chief or a ps, leaves nothing. */
static void who_writes_shards_removes_its_own_and_the_last_one_the_folder(void **state)
{
    char folder[CHECKPOINT_PATH_MAX], first[CHECKPOINT_PATH_MAX], second[CHECKPOINT_PATH_MAX];
    struct checkpoints *c = run_open(*state, 5, NOW);
    assert_int_equal(checkpoints_begin(c, 5, TAG, folder), OK);
    file_write(folder, "part-00000-of-00002.index", "");
    file_write(folder, "part-00000-of-00002.data-00000-of-00001", "");
    file_write(folder, "part-00001-of-00002.index.tempstate7", "");
    checkpoint_shard_prefix(folder, 0, 2, first);
    checkpoint_shard_prefix(folder, 1, 2, second);
    checkpoint_remove_shard(""); /* of a ps that never had one */
    checkpoint_remove_shard(folder);
    assert_int_equal(folder_count(folder, "*"), 3);
    checkpoint_remove_shard(first);
    assert_int_equal(folder_count(folder, "*"), 1);
    checkpoint_remove_shard(second);
    assert_int_equal(folder_count(*state, "*"), 0);
    checkpoint_remove_shard(second);
    checkpoints_close(c);
}

static void shards_go_to_a_temporary_folder_that_can_be_given_up(void **state)
{
    char folder[CHECKPOINT_PATH_MAX], wanted[CHECKPOINT_PATH_MAX], part[CHECKPOINT_PATH_MAX];
    struct checkpoints *c = run_open(*state, 5, NOW);
    assert_int_equal(checkpoints_begin(c, 5, TAG, folder), OK);
    assert_string_equal(strrchr(folder, '/'), "/model.ckpt-5_temp_0000000000001234");
    assert_int_equal(checkpoint_temporary_folder(checkpoints_directory(c), 5, TAG, wanted), OK);
    assert_string_equal(folder, wanted);
    checkpoint_shard_prefix(folder, 3, 12, part);
    assert_string_equal(strrchr(part, '/'), "/part-00003-of-00012");
    assert_int_equal(run_write_shards(folder, 1), OK);
    assert_int_equal(checkpoints_begin(c, 5, TAG, wanted), OK); /* what is there stays */
    assert_int_equal(folder_count(folder, "part-*"), 2 * RUN_SHARDS);
    checkpoints_abandon(c, folder);
    assert_int_equal(folder_count(*state, "*"), 0);
    checkpoints_abandon(c, folder);
    checkpoints_close(c);
}

static void what_dead_runs_left_is_removed_and_nothing_else(void **state)
{
    static const char *const stays[] = {
        "model.ckpt-5_temp_123",
        "model.ckpt-5_temp_0123456789abcdef0",
        "model.ckpt-5_temp_0123456789ABCDEF",
        "model.ckpt-x_temp_0123456789abcdef",
        "model.ckpt-_temp_0123456789abcdef",
        "my.model.ckpt-5_temp_0123456789abcdef",
        "model.ckpt-5_temp_0123456789abcdef.txt",
        "part-00000-of-00001",
        "checkpoint.tempstate",
        "checkpoint.tempstate12x",
        "model.ckpt-5.tempstate12",
        "model.ckpt-9.data-00000-of-00001",
    };
    const int count = sizeof stays / sizeof *stays;
    struct checkpoints *c = run_open(*state, 5, NOW);
    char folder[CHECKPOINT_PATH_MAX];
    run_publish(c, 4, NOW);
    assert_int_equal(checkpoints_begin(c, 5, 1, folder), OK);
    assert_int_equal(run_write_shards(folder, 1), OK);
    assert_int_equal(checkpoints_begin(c, 6, 1, folder), OK);
    file_write(folder, "part-00000-of-00001.data-00000-of-00001.tempstate5", "");
    file_write(folder, "mine.txt", "");
    checkpoints_close(c);
    for (int i = 0; i < count; i++) {
        if (i < 7) assert_int_equal(mkdir(folder_path(*state, stays[i]), 0777), 0);
        if (i < 7) file_write(folder_path(*state, stays[i]), "part-0", "");
        if (i >= 7) file_write(*state, stays[i], "");
    }
    file_write(*state, ".writable", ""); /* whose proof that it can write was cut short */
    file_write(*state, "checkpoint.tempstate123", "");
    file_write(*state, "day.json.tempstate123", "");
    file_write(*state, "model.ckpt-5.index.tempstate123", "");
    file_write(*state, "model.ckpt-5-delta-00002.index.tempstate123", "");
    file_write(*state, "model.ckpt-5.data-00000-of-00002", ""); /* renamed, but no index came */

    c = run_open(*state, 5, NOW);
    for (int i = 0; i < count; i++) assert_true(folder_has(*state, stays[i]));
    for (int i = 0; i < 7; i++)
        assert_int_equal(folder_count(folder_path(*state, stays[i]), "*"), 1);
    assert_int_equal(folder_count(folder, "*"), 1);
    assert_true(folder_has(folder, "mine.txt"));
    assert_int_equal(folder_count(*state, "*"), 1 + 3 + count + 1);
    checkpoints_close(c);
}

static void the_token_is_seen_in_the_same_folder_only_and_there_is_one(void **state)
{
    const char *run = folder_path(*state, "run");
    struct checkpoints *c = run_open(run, 5, NOW);
    assert_false(checkpoints_token_is_seen(run, TAG));
    assert_int_equal(checkpoints_own(c, TAG, 0, NOW), OK);
    assert_int_equal(checkpoints_own(c, TAG, 0, NOW), OK);
    assert_true(checkpoints_token_is_seen(run, TAG));
    assert_false(checkpoints_token_is_seen(run, TAG + 1));
    assert_false(checkpoints_token_is_seen(*state, TAG));
    assert_false(checkpoints_token_is_seen(folder_path(*state, "absent"), TAG));
    checkpoints_token_remove(c, TAG);
    checkpoints_token_remove(c, TAG);
    assert_false(checkpoints_token_is_seen(run, TAG));
    assert_int_equal(folder_count(run, "*"), 0);

    /* lives that were killed */
    for (uint64_t token = 1; token <= 3; token++) {
        assert_int_equal(checkpoints_own(c, token, 0, NOW), OK);
        assert_true(checkpoints_token_is_seen(run, token));
        assert_false(checkpoints_token_is_seen(run, token - 1));
    }
    assert_int_equal(folder_count(run, "*"), 1);
    checkpoints_token_remove(c, 2); /* that of another one stays */
    assert_true(checkpoints_token_is_seen(run, 3));
    checkpoints_token_remove(c, 3);
    assert_int_equal(folder_count(run, "*"), 0);
    checkpoints_close(c);
}

static void how_a_job_has_ended_is_told_until_another_one_begins(void **state)
{
    const char *run = folder_path(*state, "run");
    struct checkpoints *c = run_open(run, 5, NOW);
    struct ended ended = {.token = 1, .code = 143, .text = "worker/0: \xc3\xa9 (SIGTERM)"}, found;
    assert_int_equal(ended_find(run, 0, &found), OK);
    assert_true(found.token == 0);
    assert_int_equal(checkpoints_own(c, 1, 0, NOW), OK);
    assert_int_equal(ended_write(run, &ended), OK);
    assert_int_equal(ended_find(run, 0, &found), OK);
    assert_true(found.token == 1);
    assert_int_equal(found.code, 143);
    assert_string_equal(found.text, ended.text);
    checkpoints_token_remove(c, 1);
    assert_int_equal(ended_find(run, 0, &found), OK);
    assert_true(found.token == 1);
    /* another job has the folder, which has not taken away what was written in the same moment */
    assert_int_equal(checkpoints_own(c, 2, 0, NOW), OK);
    assert_int_equal(ended_find(run, 0, &found), OK);
    assert_true(found.token == 0);
    assert_int_equal(ended_find(run, 2, &found), OK); /* a chief that stood still */
    assert_true(found.token == 1);
    for (int i = 0; i < 2; i++) assert_int_equal(ended_remove(run), OK);
    assert_int_equal(ended_write(run, &ended), OK); /* by one that does not own it any more */
    assert_int_equal(ended_find(run, 0, &found), OK);
    assert_true(found.token == 0);
    checkpoints_token_remove(c, 2);
    assert_int_equal(folder_count(run, "*"), 0);
    checkpoints_close(c);
}

static void what_does_not_tell_how_a_job_has_ended_is_passed_over(void **state)
{
    static const char *const texts[] = {"",
                                        "\n",
                                        "0000000000000001",
                                        "0000000000000001 x done\n",
                                        "0000000000000001 256 \n",
                                        "0000000000000001 -1 \n",
                                        "x 1 \n"};
    struct ended found;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        FILE *file = fopen(folder_path(*state, ".ended"), "w");
        fputs(texts[i], file);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(ended_find(*state, 0, &found), OK);
        assert_true(found.token == 0);
    }
}

/* Also by a life that knows of fewer, as one by its first flags, and the next one after it. */
static void how_often_a_job_was_resized_is_kept_as_long_as_it_lasts(void **state)
{
    const uint64_t said[] = {0, 3, 0, 2, 4}, known[] = {0, 3, 3, 3, 4};
    for (int life = 0; life < 5; life++) {
        struct checkpoints *c = run_open(*state, 5, NOW);
        assert_int_equal(checkpoints_own(c, TAG + (uint64_t)life, said[life], NOW), OK);
        assert_int_equal(checkpoints_resizes(c), known[life]);
        assert_true(checkpoints_token_is_seen(*state, TAG + (uint64_t)life));
        if (life == 4) checkpoints_token_remove(c, TAG + 4);
        checkpoints_close(c);
    }
    struct checkpoints *c = run_open(*state, 5, NOW);
    assert_int_equal(checkpoints_own(c, TAG, 0, NOW), OK);
    assert_int_equal(checkpoints_resizes(c), 0);
    checkpoints_close(c);
}

static void who_came_to_own_the_folder_last_publishes_and_nobody_else(void **state)
{
    const char *run = folder_path(*state, "run");
    struct checkpoints *first = run_open(run, 5, NOW), *second;
    assert_int_equal(checkpoints_own(first, 1, 0, NOW), OK);
    run_publish(first, 10, NOW);
    second = run_open(run, 5, NOW);
    run_publish(first, 20, NOW); /* after the second one has looked */
    assert_int_equal(checkpoints_own(second, 2, 0, NOW), OK);
    assert_int_equal(run_try(first, 30, 30, NOW), ERR_PEER);
    assert_string_equal(run_list(run), "model.ckpt-10 model.ckpt-20");
    run_publish(second, 30, NOW);
    assert_string_equal(run_list(run), "model.ckpt-10 model.ckpt-20 model.ckpt-30");
    assert_int_equal(checkpoints_own(first, 1, 0, NOW), OK); /* it knows what the other one did */
    assert_int_equal(run_try(second, 40, 40, NOW), ERR_PEER);
    run_publish(first, 40, NOW);
    assert_string_equal(run_list(run), "model.ckpt-10 model.ckpt-20 model.ckpt-30 model.ckpt-40");
    checkpoints_token_remove(first, 1); /* nobody else's */
    run_publish(first, 50, NOW);
    assert_true(checkpoints_token_is_seen(run, 1));
    checkpoints_close(first);
    checkpoints_close(second);
}

/* It stood still meanwhile: what it comes with is older. */
static void what_another_one_wrote_that_is_done_is_its_own(void **state)
{
    const char *run = folder_path(*state, "run");
    struct checkpoints *first = run_open(run, 5, NOW), *second;
    assert_int_equal(checkpoints_own(first, 1, 0, NOW), OK);
    run_publish(first, 10, NOW);
    second = run_open(run, 5, NOW);
    assert_int_equal(checkpoints_own(second, 2, 0, NOW), OK);
    run_publish(second, 20, NOW + 1);
    checkpoints_token_remove(second, 2);
    checkpoints_close(second);
    assert_int_equal(run_try(first, 20, 20, NOW), ERR_PEER);
    assert_false(checkpoints_token_is_seen(run, 1));
    assert_string_equal(run_list(run), "model.ckpt-10 model.ckpt-20");
    assert_int_equal(folder_count(run, "*.index"), 2);
    assert_int_equal(checkpoints_own(first, 1, 0, NOW), OK); /* it knows what the other one did */
    run_publish(first, 30, NOW);
    assert_string_equal(run_list(run), "model.ckpt-10 model.ckpt-20 model.ckpt-30");
    checkpoints_close(first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_checkpoint_is_found_by_its_folder_its_prefix_and_its_index),
        IN_FOLDER(what_is_not_found_is_told_with_what_was_looked_for),
        IN_FOLDER(the_step_is_read_from_the_name),
        IN_FOLDER(tensorflows_folder_is_read),
        IN_FOLDER(others_state_files_are_understood),
        IN_FOLDER(what_is_no_state_file_is_refused),
        IN_FOLDER(a_state_file_cut_off_or_changed_anywhere_is_refused_or_read),
        IN_FOLDER(names_with_strange_characters_are_written_so_that_they_are_read_again),
        IN_FOLDER(shards_go_to_a_temporary_folder_that_can_be_given_up),
        IN_FOLDER(what_dead_runs_left_is_removed_and_nothing_else),
        IN_FOLDER(the_token_is_seen_in_the_same_folder_only_and_there_is_one),
        IN_FOLDER(how_a_job_has_ended_is_told_until_another_one_begins),
        IN_FOLDER(what_does_not_tell_how_a_job_has_ended_is_passed_over),
        IN_FOLDER(who_writes_shards_removes_its_own_and_the_last_one_the_folder),
        IN_FOLDER(how_often_a_job_was_resized_is_kept_as_long_as_it_lasts),
        IN_FOLDER(who_came_to_own_the_folder_last_publishes_and_nobody_else),
        IN_FOLDER(what_another_one_wrote_that_is_done_is_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
