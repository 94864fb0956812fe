/* libsvm: sparse rows read as dense ones, and faults that are named by file and line. */
#include "tests/core/data/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SOURCE(more) "{'format': 'libsvm', 'file': 'rows'" more "}"

static void assert_rows(const char *source, int64_t rows, const float *features,
                        const int32_t *labels)
{
    struct dataset d;
    source_open_ok(source, &d);
    const int64_t width = d.columns[FEATURES].shape.dim[0];
    assert_int_equal(d.rows, rows);
    assert_int_equal(d.columns[FEATURES].shape.rank, 1);
    assert_memory_equal(d.columns[FEATURES].at, features, (size_t)(rows * width) * sizeof(float));
    assert_memory_equal(d.columns[LABELS].at, labels, (size_t)rows * sizeof(int32_t));
    dataset_close(&d);
}

static void what_is_not_there_is_zero(void **state)
{
    const char text[] = "-1 1:0.5 3:2 \n+1  2:-1e1\t\n# nothing\n1 # 2:1\n";
    const float features[] = {0.5f, 0, 2, 0, -10, 0, 0, 0, 0};
    file_write_text("rows", text);
    assert_rows(SOURCE(", 'features': 3"), 3, features, (int32_t[]){-1, 1, 1});
    assert_rows(SOURCE(", 'features': 3, 'positive': '+1'"), 3, features, (int32_t[]){0, 1, 0});
    file_write_gzip("rows", text, sizeof text - 1);
    assert_rows(SOURCE(", 'features': 3"), 3, features, (int32_t[]){-1, 1, 1});
}

static void words_have_any_blanks_around_them_and_no_quotes(void **state)
{
    file_write_text("rows", "1 1:1 # a\"\n0 2:1 # b\"\n \t\n\t1\t1:1\t 2:3 \r\n  # nothing\n");
    assert_rows(SOURCE(", 'features': 2"), 3, (float[]){1, 0, 0, 1, 1, 3}, (int32_t[]){1, 0, 1});
}

static void a_comment_may_begin_within_a_word(void **state)
{
    file_write_text("rows", "1 1:1#x\n0 2:5#1:1 2:9\n1 1:3# 2:4\n");
    assert_rows(SOURCE(", 'features': 2"), 3, (float[]){1, 0, 0, 5, 3, 0}, (int32_t[]){1, 0, 1});
    file_write_text("rows", "1 1:#5\n");
    assert_refused(SOURCE(", 'features': 2"), "line 1", "1:#5", NULL);
}

static void values_of_one_index_add_up(void **state)
{
    file_write_text("rows", "1 3:10 3:1\n0 1:0.5 2:1 1:0.25\n");
    assert_rows(SOURCE(", 'features': 3"), 2, (float[]){0, 0, 11, 0.75f, 1, 0}, (int32_t[]){1, 0});
    file_write_text("rows", "1 3:3e38 3:3e38\n");
    assert_refused(SOURCE(", 'features': 3"), "line 1", "index 3", NULL);
}

static void labels_may_be_numbers(void **state)
{
    struct dataset d;
    file_write_text("rows", "0.25 1:1\n");
    assert_refused(SOURCE(", 'features': 1"), "line 1", "whole number", "0.25", NULL);
    source_open_ok(SOURCE(", 'features': 1, 'label_type': 'number'"), &d);
    assert_int_equal(d.columns[LABELS].dtype, FLOAT32);
    assert_true(*(const float *)d.columns[LABELS].at == 0.25f);
    dataset_close(&d);
}

static void rows_to_predict_may_have_no_labels(void **state)
{
    struct dataset d;
    file_write_text("rows", "1:5 2:3\n7 2:4\nx\n");
    assert_int_equal(source_open_to_predict(SOURCE(", 'features': 2"), &d), OK);
    assert_int_equal(d.rows, 3);
    assert_memory_equal(d.columns[FEATURES].at, ((float[]){5, 3, 0, 4, 0, 0}), 24);
    dataset_close(&d);
    assert_refused(SOURCE(", 'features': 2"), "line 1", "whole number", "1:5", NULL);
}

static void what_is_no_pair_is_refused(void **state)
{
    static const char *const bad[] = {"1",   "1:",    ":1",    "0:1",   "-1:1",   "1.5:1", "x:1",
                                      "1:x", "1:1:1", "1:inf", "qid:1", "1:1e99", "1e30:1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[64] = "1 1:1\n1 ";
        file_write_text("rows", strcat(strcat(text, bad[i]), "\n"));
        assert_refused(SOURCE(", 'features': 4"), "rows: line 2", "index:value", bad[i], NULL);
    }
}

/* By its name, and with what makes it fit */
static void what_others_write_there_is_named(void **state)
{
    file_write_text("rows", "1 qid:3 1:1\n");
    assert_refused(SOURCE(", 'features': 4"), "line 1", "query of a ranking", "sed", NULL);
    file_write_text("rows", "1 0:12:1 3:5:1\n");
    assert_refused(SOURCE(", 'features': 4"), "line 1", "libffm", "sed", "\"0:12:1\"", NULL);
}

static void rows_that_do_not_fit_are_refused(void **state)
{
    file_write_text("rows", "1 1:1\n1 5:1\n");
    assert_refused(SOURCE(", 'features': 4"), "line 2", "index 5", "is 4", NULL);
    assert_refused(SOURCE(""), "\"features\"", "data.columns", NULL);
    file_write_text("rows", "\n# nothing\n");
    assert_refused(SOURCE(", 'features': 4"), "no row of data", NULL);
}

/* Longer than the first room for pairs */
static void a_long_row_is_read_whole(void **state)
{
    enum { PAIRS = 5000 };
    float features[PAIRS];
    char *text = malloc(PAIRS * 16), *at = text;
    assert_non_null(text);
    at += sprintf(at, "1");
    for (int i = 0; i < PAIRS; i++) {
        at += sprintf(at, " %d:%d", i + 1, i + 7);
        features[i] = (float)(i + 7);
    }
    file_write("rows", text, (size_t)(at - text));
    free(text);
    assert_rows(SOURCE(", 'features': 5000"), 1, features, (int32_t[]){1});
}

static void no_cut_and_no_flipped_byte_crashes(void **state)
{
    char text[] = "-1 1:0.5 3:2 \r\n+1  2:-1e1\t# x\n";
    static const char telling[] = "\n\r\t\",. -+9ex:#?\x01\x80\xff"; /* and the NUL at its end */
    for (size_t i = 0; i < sizeof text - 1; i++) {
        for (size_t b = 0; b < sizeof telling; b++) {
            const char kept = text[i];
            struct dataset d = {0};
            text[i] = telling[b];
            file_write("rows", text, b ? sizeof text - 1 : i + 1);
            text[i] = kept;
            const err e = source_open(SOURCE(", 'features': 9"), &d);
            assert_true(e == OK || e == ERR_INPUT);
            dataset_close(&d);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_there_is_zero),
        cmocka_unit_test(words_have_any_blanks_around_them_and_no_quotes),
        cmocka_unit_test(a_comment_may_begin_within_a_word),
        cmocka_unit_test(values_of_one_index_add_up),
        cmocka_unit_test(labels_may_be_numbers),
        cmocka_unit_test(rows_to_predict_may_have_no_labels),
        cmocka_unit_test(what_is_no_pair_is_refused),
        cmocka_unit_test(what_others_write_there_is_named),
        cmocka_unit_test(rows_that_do_not_fit_are_refused),
        cmocka_unit_test(a_long_row_is_read_whole),
        cmocka_unit_test(no_cut_and_no_flipped_byte_crashes),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
