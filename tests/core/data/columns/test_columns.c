/* columns: what each kind makes of cells, hashes and crosses as TensorFlow has them, and faults
 * that are named by file, line and column. */
#include "tests/core/data/support.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/fingerprint.h"
#include "core/data/columns/column.h"

#define CSV "{'format': 'csv', 'file': 'table', 'label': 'y'}, 'columns': "
#define SVM "{'format': 'libsvm', 'file': 'rows'}, 'columns': "

static const struct column *named(const struct dataset *d, const char *name)
{
    const int column = column_find(d->columns, d->column_count, name);
    assert_true(column >= 0);
    return &d->columns[column];
}

/* Of one column: the ids of all rows, as many per row as it has */
static void assert_ids(const char *source, const char *name, int64_t buckets, int count,
                       const int64_t *wanted)
{
    struct dataset d;
    source_open_ok(source, &d);
    const struct column *c = named(&d, name);
    assert_int_equal(c->dtype, INT64);
    assert_int_equal(c->buckets, buckets);
    assert_int_equal(d.rows * column_width(c), count);
    for (int i = 0; i < count; i++) assert_int_equal(((const int64_t *)c->at)[i], wanted[i]);
    dataset_close(&d);
}

static void assert_numbers(const char *source, const char *name, int count, const float *wanted)
{
    struct dataset d;
    source_open_ok(source, &d);
    const struct column *c = named(&d, name);
    assert_int_equal(c->dtype, FLOAT32);
    assert_int_equal(d.rows * column_width(c), count);
    assert_memory_equal(c->at, wanted, (size_t)count * sizeof(float));
    dataset_close(&d);
}

/* ---- hashes ---- */

static json_t *load_fixture(void)
{
    json_t *root = json_load_file(FIXTURES "/hashes.json", 0, NULL);
    assert_non_null(root);
    return root;
}

static void words_hash_as_in_tensorflow(void **state)
{
    json_t *root = load_fixture(), *word;
    size_t i;
    json_array_foreach(json_object_get(root, "words"), i, word)
    {
        const uint64_t hash = fingerprint(json_string_value(word), json_string_length(word));
        const json_t *wanted = json_array_get(json_object_get(root, "fingerprint_mod_2_62"), i);
        const json_t *bucket = json_array_get(json_object_get(root, "bucket_of_1000"), i);
        assert_int_equal(hash % (UINT64_C(1) << 62), strtoull(json_string_value(wanted), NULL, 10));
        assert_int_equal(hash % 1000, json_integer_value(bucket));
    }
    assert_true(i > 50);
    json_decref(root);
}

/* ---- several labels ---- */

static void assert_labels(const char *label, int count, const float *wanted)
{
    char text[512];
    snprintf(text, sizeof text,
             "{'format': 'csv', 'file': 'table', 'labels': [{'name': 'l', %s}]}, 'columns': "
             "[{'column': 'numeric', 'name': 'x'}]",
             label);
    assert_numbers(text, "l", count, wanted);
    struct dataset d;
    source_open_ok(text, &d);
    assert_true(named(&d, "l")->is_label && !named(&d, "x")->is_label);
    dataset_close(&d);
    file_write_text("table", "x\n1\n2\n3\n"); /* to predict the cells need not be there */
    assert_int_equal(source_open_to_predict(text, &d), OK);
    for (int i = 0; i < count; i++) assert_true(((const float *)named(&d, "l")->at)[i] == 0);
    dataset_close(&d);
}

#define LABELS_TABLE "x,word,n,list\n1,yes,3,0|1|0\n2,no,4,1|0|0\n3,?,5.5,0|0|1\n"
static void labels_are_made_of_cells(void **state)
{
    static const struct {
        const char *label;
        int count;
        float wanted[9];
    } cases[] = {
        {"'cell': 'word', 'positive': 'yes'", 3, {1, 0, 0}},
        {"'cell': 'word', 'classes': ['no', 'yes', '?']", 3, {1, 0, 2}},
        {"'cell': 'n'", 3, {3, 4, 5.5f}},
        {"'cell': 'n', 'threshold': 4", 3, {0, 1, 1}},
        {"'cell': 'n', 'scale': 2, 'offset': -1", 3, {5, 7, 10}},
        {"'cell': 'list', 'one_hot': true, 'count': 3, 'separator': '|'", 3, {1, 0, 2}},
        {"'cell': 'list', 'count': 3, 'separator': '|'", 9, {0, 1, 0, 1, 0, 0, 0, 0, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        file_write_text("table", LABELS_TABLE);
        assert_labels(cases[i].label, cases[i].count, cases[i].wanted);
    }
}

static void what_labels_have_wrong_is_said(void **state)
{
    static const char *const cases[][3] = {
        {"'cell': 'wrod'", "label \"l\"", "no cell \"wrod\" (did you mean \"word\"?)"},
        {"'cell': 'word'", "line 2", "expected a number, got \"yes\""},
        {"'cell': 'word', 'classes': ['no', 'yes']", "line 4", "expected a word of \"classes\""},
        {"'cell': 'n', 'count': 2", "line 2", "expected 2 values"},
        {"'cell': 'list', 'one_hot': true, 'count': 2, 'separator': '|'", "line 2", "got more"},
        {"'cell': 'word', 'positive': 'ja'", "label \"l\"", "no row has its \"positive\" word"},
        {"'cell': 'n', 'one_hot': true", "labels[0]", "count"},
        {"'cell': 'n', 'threshold': 'x'", "labels[0]", "threshold"},
        {"'cell': 'word', 'positive': 'yes', 'threshold': 2", "labels[0]", "at most one of"},
    };
    char text[512];
    file_write_text("table", LABELS_TABLE);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text,
                 "{'format': 'csv', 'file': 'table', 'labels': [{'name': 'l', %s}]}, 'columns': "
                 "[{'column': 'numeric', 'name': 'x'}]",
                 cases[i][0]);
        assert_refused(text, cases[i][1], cases[i][2], NULL);
    }
    assert_refused("{'format': 'csv', 'file': 'table', 'labels': [{'name': 'n'}]}", "labels",
                   "data.columns", NULL);
    assert_refused("{'format': 'csv', 'file': 'table'}, 'columns': "
                   "[{'column': 'numeric', 'name': 'x'}]",
                   "\"label\"", "\"labels\"", NULL);
}

static void a_bucket_is_the_rest_of_a_division(void **state)
{
    static const uint64_t numbers[] = {0,
                                       1,
                                       2,
                                       3,
                                       999,
                                       UINT64_MAX,
                                       1u << 31,
                                       UINT64_MAX - 1,
                                       1ull << 53,
                                       1ull << 63,
                                       0xDECAFCAFFE,
                                       UINT64_MAX / 3};
    for (size_t i = 1; i < sizeof numbers / sizeof *numbers; i++) {
        struct column_maker m = {0};
        if (numbers[i] > (uint64_t)BUCKETS_MAX) continue;
        column_makes_ids(&m, 1, (int64_t)numbers[i]);
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            for (uint64_t near = 0; near < 3; near++)
                assert_int_equal(column_bucket(&m, numbers[k] * numbers[i] - near),
                                 (numbers[k] * numbers[i] - near) % numbers[i]);
    }
}

static void take_ids(const json_t *list, int64_t *ret)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        ret[i] = json_integer_value(json_array_get(list, i));
}

/* Words from cells, and ids of a column between them */
static void crosses_are_those_of_tensorflow(void **state)
{
    json_t *root = load_fixture(), *cross = json_object_get(root, "cross");
    char text[2048] = "a,b,c,y\n";
    int64_t two[6], three[6];
    for (size_t i = 0; i < 6; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s,%s,%lld,0\n",
                 json_string_value(json_array_get(json_object_get(cross, "a"), i)),
                 json_string_value(json_array_get(json_object_get(cross, "b"), i)),
                 (long long)json_integer_value(json_array_get(json_object_get(cross, "c"), i)));
    take_ids(json_object_get(cross, "ab_of_10000"), two);
    take_ids(json_object_get(cross, "abc_of_1000000"), three);
    json_decref(root);
    file_write_text("table", text);
    const char *columns = CSV "[{'column': 'hash', 'name': 'a', 'buckets': 7},"
                              "{'column': 'identity', 'name': 'id', 'source': 'c', 'buckets': 9},"
                              "{'column': 'crossed', 'name': 'two', 'keys': ['a', 'b'],"
                              " 'buckets': 10000},"
                              "{'column': 'crossed', 'name': 'three', 'keys': ['a', 'b', 'id'],"
                              " 'buckets': 1000000}]";
    assert_ids(columns, "two", 10000, 6, two);
    assert_ids(columns, "three", 1000000, 6, three);
}

static void every_combination_of_several_values_is_crossed(void **state)
{
    const uint64_t first = UINT64_C(0xDECAFCAFFE);
    const char *words[] = {"x", "y"};
    int64_t wanted[8] = {0};
    for (int i = 0; i < 4; i++) {
        const uint64_t one = fingerprint_join(first, fingerprint(words[i / 2], 1));
        wanted[i] = (int64_t)(fingerprint_join(one, (uint64_t)(3 + i % 2)) % 100);
    }
    for (int i = 4; i < 8; i++) wanted[i] = -1;
    file_write_text("table", "a,b,y\nx|y,3|4,0\n,3,0\n");
    assert_ids(CSV "[{'column': 'hash', 'name': 'a', 'buckets': 7, 'separator': '|', 'max': 2},"
                   "{'column': 'identity', 'name': 'b', 'buckets': 9, 'separator': '|', 'max': 2},"
                   "{'column': 'crossed', 'name': 'c', 'keys': ['a', 'b'], 'buckets': 100}]",
               "c", 100, 8, wanted);
}

/* As tf.feature_column.crossed_column takes its keys: the name of a feature is its text, a column
 * of categories its ids, those of no word included. */
static void a_vocabulary_is_crossed_by_what_its_name_means(void **state)
{
    const uint64_t first = UINT64_C(0xDECAFCAFFE);
    const uint64_t b = fingerprint("u", 1);
    int64_t words[2], ids[2];
    for (int i = 0; i < 2; i++) {
        const uint64_t word = fingerprint(i ? "z" : "y", 1), id = i ? UINT64_MAX : 1;
        words[i] = (int64_t)(fingerprint_join(fingerprint_join(first, word), b) % 1000);
        ids[i] = (int64_t)(fingerprint_join(fingerprint_join(first, id), b) % 1000);
    }
    file_write_text("table", "a,b,y\ny,u,0\nz,u,0\n");
    const char *columns =
        CSV "[{'column': 'vocabulary', 'name': 'a', 'words': ['x', 'y']},"
            "{'column': 'vocabulary', 'name': 'listed', 'source': 'a', 'words': ['x', 'y']},"
            "{'column': 'crossed', 'name': 'of_words', 'keys': ['a', 'b'], 'buckets': 1000},"
            "{'column': 'crossed', 'name': 'of_ids', 'keys': ['listed', 'b'], 'buckets': 1000}]";
    assert_ids(columns, "of_words", 1000, 2, words);
    assert_ids(columns, "of_ids", 1000, 2, ids);
}

/* By its ids, as any column; of a cell without a time by its default, or not at all. */
static void the_part_of_a_date_is_a_key(void **state)
{
    const uint64_t first = UINT64_C(0xDECAFCAFFE), u = fingerprint("u", 1);
    int64_t ids[3], fallbacks[3];
    for (int i = 0; i < 3; i++) {
        const uint64_t hour = i == 0 ? 13 : i == 1 ? 7 : 1; /* 3600 s is the hour 1 */
        const uint64_t hash = fingerprint_join(fingerprint_join(first, hour), u);
        fallbacks[i] = (int64_t)(hash % 1000);
        ids[i] = i < 2 ? fallbacks[i] : -1;
    }
    file_write_text("table", "t,b,y\n2026-03-31 13:59:59,u,0\n2026-01-01T07:00,u,0\n,u,0\n");
    const char *columns =
        CSV "[{'column': 'date', 'name': 'h', 'source': 't', 'part': 'hour'},"
            "{'column': 'date', 'name': 'd', 'source': 't', 'part': 'hour', 'default': 3600},"
            "{'column': 'crossed', 'name': 'ch', 'keys': ['h', 'b'], 'buckets': 1000},"
            "{'column': 'crossed', 'name': 'cd', 'keys': ['d', 'b'], 'buckets': 1000}]";
    assert_ids(columns, "ch", 1000, 3, ids);
    assert_ids(columns, "cd", 1000, 3, fallbacks);
    assert_refused(CSV "[{'column': 'date', 'name': 's', 'source': 't', 'part': 'seconds'},"
                       "{'column': 'crossed', 'name': 'c', 'keys': ['s', 'b'], 'buckets': 5}]",
                   "keys", "date, which cannot be crossed", NULL);
}

/* ---- kinds ---- */

static void a_hash_takes_the_cell_as_it_is(void **state)
{
    file_write_text("table", "a,y\n HS-grad ,0\n\"HS-grad\",0\n?,0\n,0\n");
    const int64_t word = (int64_t)(fingerprint("HS-grad", 7) % 1000);
    const int64_t unknown = (int64_t)(fingerprint("?", 1) % 1000);
    assert_ids(CSV "[{'column': 'hash', 'name': 'h', 'source': 'a', 'buckets': 1000}]", "h", 1000,
               4, (int64_t[]){word, word, unknown, -1});
}

static void rows_without_a_value_are_counted(void **state)
{
    struct dataset d;
    file_write_text("table", "a,b,y\n1,x,0\n,x,0\n,,0\n");
    source_open_ok(CSV "[{'column': 'numeric', 'name': 'n', 'source': 'a', 'default': 3},"
                       "{'column': 'hash', 'name': 'b', 'buckets': 9},"
                       "{'column': 'crossed', 'name': 'c', 'keys': ['a', 'b'], 'buckets': 9}]",
                   &d);
    assert_string_equal(d.use, "3 columns; rows without a value: n 2, b 1, c 2");
    dataset_close(&d);
}

static void numbers_are_scaled(void **state)
{
    file_write_text("table", "a,y\n3,0\n,0\n0,1\n");
    assert_numbers(CSV "[{'column': 'numeric', 'name': 'a', 'scale': 0.5, 'offset': 1,"
                       " 'default': 7}]",
                   "a", 3, (float[]){2.5f, 4.5f, 1});
    assert_numbers(CSV "[{'column': 'numeric', 'name': 'l', 'source': 'a', 'log1p': true,"
                       " 'scale': 0.1, 'default': 0}]",
                   "l", 3, (float[]){(float)(log1p(3) * 0.1), 0, 0});
    assert_refused(CSV "[{'column': 'numeric', 'name': 'a'}]", "table: line 3", "column \"a\"",
                   "\"default\"", NULL);
    file_write_text("table", "a,y\n1|2.5|3,0\n4| 5 |6,0\n");
    const char *list = CSV "[{'column': 'numeric', 'name': 'a', 'separator': '|', 'max': 3}]";
    assert_numbers(list, "a", 6, (float[]){1, 2.5f, 3, 4, 5, 6});
    assert_refused(CSV "[{'column': 'numeric', 'name': 'a', 'separator': '|', 'max': 2}]", "line 2",
                   "expected 2 numbers", "got 3", NULL);
    assert_refused(CSV "[{'column': 'numeric', 'name': 'a', 'separator': '|', 'max': 4}]", "line 2",
                   "expected 4 numbers", "got 3", NULL);
    assert_numbers(CSV "[{'column': 'numeric', 'name': 'a', 'separator': '|', 'max': 4,"
                       " 'padding': -1, 'scale': 2}]",
                   "a", 8, (float[]){2, 5, 6, -1, 8, 10, 12, -1});
    file_write_text("table", "a,y\n1,0\nx,0\n-1,0\n");
    assert_refused(CSV "[{'column': 'numeric', 'name': 'a'}]", "line 3", "a number", "\"x\"", NULL);
    file_write_text("table", "a,y\n1,0\n-1,0\n");
    assert_refused(CSV "[{'column': 'numeric', 'name': 'a', 'log1p': true}]", "line 3", "above -1",
                   NULL);
}

/* Times in seconds have more digits than a float: what is made of them is rounded once, at last. */
static void numbers_keep_their_digits_until_they_are_made(void **state)
{
    const float away[] = {0, 1, 60, 128};
    const int64_t buckets[] = {0, 1, 1, 1};
    const float thousandths = (float)(0.001 * 1700000000123.0 - 1700000000.0);
    file_write_text("table", "t,y\n1700000000,0\n1.700000001e9,0\n1700000060.0,1\n1700000128,1\n");
    assert_numbers(CSV "[{'column': 'numeric', 'name': 't', 'offset': -1700000000}]", "t", 4, away);
    assert_ids(CSV "[{'column': 'bucketized', 'name': 't', 'boundaries': [1700000001]}]", "t", 2, 4,
               buckets);
    file_write_text("table", "t,y\n1700000000123,0\n1700000000123|,0\n");
    assert_numbers(CSV "[{'column': 'numeric', 'name': 't', 'separator': '|', 'scale': 0.001, "
                       "'offset': -1700000000}]",
                   "t", 2, (float[]){thousandths, thousandths});
    file_write_text("table", "t,y\n1,0\n2,0\n4,0\n");
    const float logs[] = {(float)(1e9 * log1p(1) - 693147180), (float)(1e9 * log1p(2) - 693147180),
                          (float)(1e9 * log1p(4) - 693147180)};
    assert_numbers(CSV "[{'column': 'numeric', 'name': 't', 'log1p': true, 'scale': 1e9, 'offset': "
                       "-693147180}]",
                   "t", 3, logs);
}

static void ids_are_exact_in_any_spelling(void **state)
{
    const int64_t ids[] = {9007199254740993, 9007199254740993, INT64_MAX - 1, 1000};
    file_write_text("table", "t,y\n9007199254740993.0,0\n9.007199254740993e15,1\n"
                             "9223372036854775806.00,0\n1e3,1\n");
    assert_ids(CSV "[{'column': 'identity', 'name': 't'}]", "t", ANY_ID, 4, ids);
    assert_ids(CSV "[{'column': 'ids', 'name': 't', 'max': 1}]", "t", ANY_ID, 4, ids);
    for (int i = 0; i < 3; i++) {
        static const char *const bad[] = {"1.5", "9007199254740993.5", "18446744073709551616"};
        char text[64];
        snprintf(text, sizeof text, "t,y\n%s,0\n", bad[i]);
        file_write_text("table", text);
        assert_refused(CSV "[{'column': 'identity', 'name': 't'}]", "expected an id", bad[i], NULL);
    }
    file_write_text("rows", "1 9007199254740994:1\n");
    assert_ids(SVM "[{'column': 'ids', 'name': 'features', 'max': 1}]", "features", ANY_ID, 1,
               (int64_t[]){9007199254740993});
}

/* Files of words are read again, by each thread and for each file that is followed. */
static void words_that_change_while_they_are_used_are_refused(void **state)
{
    struct opened_source o;
    struct batch_source *again = NULL;
    file_write_text("table", "t,y\na,0\nb,1\n");
    file_write_text("words", "a\nb\n");
    source_open_batches_ok(CSV "[{'column': 'vocabulary', 'name': 't', 'file': 'words'}]", NULL,
                           &o);
    const struct format_context context = {.directory = folder_path(), .columns = &o.spec.columns};
    assert_int_equal(column_note_content(o.spec.columns.at, &context), OK);
    assert_int_equal(batch_source_open(&o.spec.train, &context, &again), OK);
    batch_source_close(again);
    file_write_text("words", "b\na\n");
    assert_int_equal(batch_source_open(&o.spec.train, &context, &again), ERR_INPUT);
    assert_non_null(strstr(error_text(), "its words have changed since the run began"));
    source_close_batches(&o);
}

static void an_id_with_a_number_is_not_one_number(void **state)
{
    file_write_text("rows", "1 7:0.5\n");
    assert_refused(SVM "[{'column': 'numeric', 'name': 'features'}]", "rows: line 1",
                   "expected a number, got \"6\", an id with the number 0.5", NULL);
    assert_refused(SVM "[{'column': 'bucketized', 'name': 'features', 'boundaries': [1]}]",
                   "rows: line 1", "an id with the number 0.5", NULL);
}

static void a_boundary_begins_a_bucket(void **state)
{
    file_write_text("table", "a,y\n17.9,0\n18,0\n64,0\n65,0\n,0\n-1e9,0\n");
    assert_ids(CSV "[{'column': 'bucketized', 'name': 'b', 'source': 'a',"
                   " 'boundaries': [18, 30, 65]}]",
               "b", 4, 6, (int64_t[]){0, 1, 2, 3, -1, 0});
    assert_refused(CSV "[{'column': 'bucketized', 'name': 'a', 'boundaries': [18, 18]}]",
                   "boundaries", "rising", NULL);
}

static void boundaries_may_be_lines_of_a_file(void **state)
{
    file_write_text("table", "a,y\n17.9,0\n18,0\n29,0\n30,0\n");
    file_write_text("boundaries", "18\r\n\n2.5e1\n30\n");
    assert_ids(CSV "[{'column': 'bucketized', 'name': 'a', 'file': 'boundaries'}]", "a", 4, 4,
               (int64_t[]){0, 1, 2, 3});
    file_write_text("boundaries", "18\n17\n");
    assert_refused(CSV "[{'column': 'bucketized', 'name': 'a', 'file': 'boundaries'}]",
                   "got 18 before 17", NULL);
    file_write_text("boundaries", "18\nx\n");
    assert_refused(CSV "[{'column': 'bucketized', 'name': 'a', 'file': 'boundaries'}]",
                   "boundaries: line 2: expected a number, got \"x\"", NULL);
    file_write_text("boundaries", "\n");
    assert_refused(CSV "[{'column': 'bucketized', 'name': 'a', 'file': 'boundaries'}]",
                   "boundaries: no boundary is in it", NULL);
    assert_refused(CSV "[{'column': 'bucketized', 'name': 'a'}]", "\"boundaries\" or \"file\"",
                   NULL);
}

static void words_have_the_place_in_their_list(void **state)
{
    const int64_t other = 2 + (int64_t)(fingerprint("Other", 5) % 3);
    file_write_text("table", "s,y\nMale,0\nFemale,0\nOther,0\n,0\n");
    file_write_text("words", "Female\r\n\n\t Male \n \t\n");
    assert_ids(CSV "[{'column': 'vocabulary', 'name': 's', 'words': [' Female', 'Male '],"
                   " 'oov_buckets': 3}]",
               "s", 5, 4, (int64_t[]){1, 0, other, -1});
    assert_ids(CSV "[{'column': 'vocabulary', 'name': 's', 'file': 'words'}]", "s", 2, 4,
               (int64_t[]){1, 0, -1, -1});
    assert_refused(CSV "[{'column': 'vocabulary', 'name': 's', 'words': ['a', 'a']}]", "\"a\"",
                   "twice", NULL);
    assert_refused(CSV "[{'column': 'vocabulary', 'name': 's', 'words': ['a', ' a']}]", "\"a\"",
                   "twice", NULL);
    assert_refused(CSV "[{'column': 'vocabulary', 'name': 's', 'words': ['a', ' ']}]", "words[1]",
                   "an empty cell is no word", NULL);
    assert_refused(CSV "[{'column': 'vocabulary', 'name': 's'}]", "\"words\" or \"file\"", NULL);
}

static void ids_out_of_range_are_named_or_replaced(void **state)
{
    file_write_text("table", "m,y\n4,0\n5,0\n");
    assert_refused(CSV "[{'column': 'identity', 'name': 'movie', 'source': 'm', 'buckets': 5}]",
                   "table: line 3", "column \"movie\"", "from 0 to 4", "\"5\"", NULL);
    assert_ids(CSV "[{'column': 'identity', 'name': 'm', 'buckets': 5, 'default': 2}]", "m", 5, 2,
               (int64_t[]){4, 2});
    file_write_text("table", "m,y\n-2,0\n");
    assert_refused(CSV "[{'column': 'identity', 'name': 'm', 'buckets': 5}]", "line 2", "\"-2\"",
                   NULL);
    file_write_text("table", "m,y\n1.5,0\n");
    assert_refused(CSV "[{'column': 'identity', 'name': 'm', 'buckets': 5, 'default': 2}]",
                   "line 2", "\"1.5\"", NULL);
}

static void ids_without_a_number_of_them_are_any(void **state)
{
    file_write_text("table", "m,y\n0,0\n9223372036854775806,0\n9007199254740993,0\n");
    const int64_t wanted[] = {0, ANY_ID - 1, INT64_C(9007199254740993)};
    assert_ids(CSV "[{'column': 'identity', 'name': 'm'}]", "m", ANY_ID, 3, wanted);
    assert_ids(CSV "[{'column': 'ids', 'name': 'm', 'max': 1}]", "m", ANY_ID, 3, wanted);
    const int64_t hashed[] = {(int64_t)(fingerprint("0", 1) % (uint64_t)ANY_ID),
                              (int64_t)(fingerprint("9223372036854775806", 19) % (uint64_t)ANY_ID),
                              (int64_t)(fingerprint("9007199254740993", 16) % (uint64_t)ANY_ID)};
    assert_ids(CSV "[{'column': 'hash', 'name': 'm'}]", "m", ANY_ID, 3, hashed);
    file_write_text("table", "m,y\n18446744073709551616,0\n");
    assert_refused(CSV "[{'column': 'identity', 'name': 'm'}]", "line 2", "from 0 to 2^64 - 1",
                   "\"18446744073709551616\"", NULL);
    file_write_text("table", "m,y\n-2,0\n");
    assert_refused(CSV "[{'column': 'identity', 'name': 'm'}]", "line 2", "\"-2\"", NULL);
}

/* As TensorFlow's columns pass over it: rows are filled up with it, however long. */
static void minus_one_is_no_id(void **state)
{
    const uint64_t first = UINT64_C(0xDECAFCAFFE);
    const int64_t crossed = (int64_t)(fingerprint_join(fingerprint_join(first, 3), 3) % 100);
    file_write_text("table", "m,w,y\n-1|3|-1|-1,-1:2 3:4 -1,0\n-1,-1.0,0\n");
    assert_ids(CSV "[{'column': 'identity', 'name': 'm', 'buckets': 5, 'separator': '|'}]", "m", 5,
               2, (int64_t[]){3, -1});
    assert_ids(CSV "[{'column': 'identity', 'name': 'm', 'separator': '|', 'default': 4}]", "m",
               ANY_ID, 2, (int64_t[]){3, 4});
    assert_ids(CSV "[{'column': 'ids', 'name': 'w', 'rows': 5, 'max': 1}]", "w", 5, 2,
               (int64_t[]){3, -1});
    assert_ids(CSV "[{'column': 'identity', 'name': 'm', 'buckets': 5, 'separator': '|'},"
                   "{'column': 'ids', 'name': 'w', 'rows': 5, 'max': 1},"
                   "{'column': 'crossed', 'name': 'c', 'keys': ['m', 'w'], 'buckets': 100}]",
               "c", 100, 2, (int64_t[]){crossed, -1});
}

static void a_default_stands_for_what_is_missing_and_is_counted(void **state)
{
    struct dataset d;
    const char *source = CSV "[{'column': 'identity', 'name': 'm', 'buckets': 5, 'default': 2,"
                             " 'separator': '|', 'max': 2}]";
    file_write_text("table", "m,y\n4,0\n5|-2,0\n,0\n");
    assert_ids(source, "m", 5, 6, (int64_t[]){4, -1, 2, 2, 2, -1});
    source_open_ok(source, &d);
    assert_string_equal(d.use, "1 column; rows without a value: m 2");
    dataset_close(&d);
}

static void a_cell_may_have_several_values(void **state)
{
    file_write_text("table", "m,y\n1|3||2,0\n,0\n 4 ,0\n");
    assert_ids(CSV "[{'column': 'identity', 'name': 'm', 'buckets': 5, 'separator': '|',"
                   " 'max': 3}]",
               "m", 5, 9, (int64_t[]){1, 3, 2, -1, -1, -1, 4, -1, -1});
    assert_refused(CSV "[{'column': 'identity', 'name': 'm', 'buckets': 5, 'separator': '|',"
                       " 'max': 2}]",
                   "line 2", "column \"m\"", "more than 2 values", NULL);
    assert_refused(CSV "[{'column': 'identity', 'name': 'm', 'buckets': 5, 'separator': ''}]",
                   "separator", "1 to 8 characters", NULL);
}

static void lists_of_ids_may_have_weights(void **state)
{
    struct dataset d;
    file_write_text("rows", "1 1:0.5 4:-2\n0\n");
    source_open_ok(SVM "[{'column': 'ids', 'name': 'f', 'source': 'features', 'rows': 4,"
                       " 'max': 3, 'weights': true}]",
                   &d);
    assert_memory_equal(named(&d, "f")->at, ((int64_t[]){0, 3, -1, -1, -1, -1}), 48);
    assert_memory_equal(named(&d, "f/weights")->at, ((float[]){0.5f, -2, 0, 0, 0, 0}), 24);
    dataset_close(&d);
    assert_refused(SVM "[{'column': 'ids', 'name': 'f', 'source': 'features', 'rows': 3}]",
                   "rows: line 1", "column \"f\"", "from 0 to 2", "\"3\"", NULL);
    file_write_text("table", "a,y\n3:0.5 1,0\n");
    assert_ids(CSV "[{'column': 'ids', 'name': 'a', 'rows': 4, 'max': 2}]", "a", 4, 2,
               (int64_t[]){3, 1});
    file_write_text("table", "a,y\n3:x,0\n");
    assert_refused(CSV "[{'column': 'ids', 'name': 'a', 'rows': 4}]", "line 2", "\"3:x\"", NULL);
}

/* ---- specs that are wrong ---- */

static void what_is_not_there_is_named(void **state)
{
    file_write_text("table", "age,y\n1,0\n");
    assert_refused(CSV "[{'column': 'hash', 'name': 'agr', 'buckets': 5}]", "columns[0]",
                   "no cell \"agr\"", "\"age\"", NULL);
    assert_refused(CSV "[{'column': 'hash', 'name': 'y', 'buckets': 5}]", "is the label", NULL);
    assert_refused(CSV "[{'column': 'hash', 'name': 'age', 'buckets': 5},"
                       "{'column': 'numeric', 'name': 'age'}]",
                   "columns[1]", "the name is taken", NULL);
    assert_refused(CSV "[{'column': 'numeric', 'name': 'n', 'source': 'age'},"
                       "{'column': 'crossed', 'name': 'c', 'keys': ['n', 'age'], 'buckets': 5}]",
                   "keys", "numeric", NULL);
    assert_refused(CSV "[{'column': 'crossed', 'name': 'c', 'keys': ['x', 'age'], 'buckets': 5}]",
                   "\"x\"", NULL);
    assert_refused(CSV "[{'column': 'crossed', 'name': 'c', 'keys': ['age', 'y'], 'buckets': 5}]",
                   "keys", "\"y\" is the label", NULL);
    assert_refused("{'format': 'digits', 'rows': 9}, 'columns': [{'column': 'numeric',"
                   " 'name': 'x'}]",
                   "data.columns", NULL);
    assert_refused("{'format': 'csv', 'file': 'table', 'label': 'y', 'except': ['age']},"
                   " 'columns': [{'column': 'numeric', 'name': 'age'}]",
                   "\"except\"", NULL);
}

static void a_name_that_two_cells_have_is_refused_where_it_is_asked_for(void **state)
{
    file_write_text("table", "a,b,a,y\n1,2,3,0\n");
    assert_ids(CSV "[{'column': 'identity', 'name': 'b', 'buckets': 5}]", "b", 5, 1,
               (int64_t[]){2});
    assert_refused(CSV "[{'column': 'identity', 'name': 'a', 'buckets': 5}]", "source",
                   "cells 0 and 2 are both called \"a\"", NULL);
    assert_refused(CSV "[{'column': 'crossed', 'name': 'c', 'keys': ['b', 'a'], 'buckets': 5}]",
                   "keys", "cells 0 and 2 are both called \"a\"", NULL);
}

/* ---- clicks ---- */

#define CLICKS(more)                                                                               \
    "{'format': 'clicks', 'rows': 20000, 'buckets': 100" more "}, 'columns': ["                    \
    "{'column': 'identity', 'name': 'c1', 'buckets': 100},"                                        \
    "{'column': 'hash', 'name': 'c26', 'buckets': 1000},"                                          \
    "{'column': 'numeric', 'name': 'n13'}, {'column': 'numeric', 'name': 'logit'}]"

/* The share of rows whose first column has its most frequent id */
static double largest_share(const char *source)
{
    struct dataset d;
    int count[100] = {0}, most = 0;
    source_open_ok(source, &d);
    const int64_t *ids = named(&d, "c1")->at;
    for (int64_t i = 0; i < d.rows; i++) count[ids[i]]++;
    for (int i = 0; i < 100; i++) most = count[i] > most ? count[i] : most;
    dataset_close(&d);
    return most / 20000.0;
}

static void ids_of_clicks_are_skewed_as_asked(void **state)
{
    assert_true(largest_share(CLICKS(", 'skew': 0")) < 0.015);
    const double zipf = largest_share(CLICKS(", 'skew': 1"));
    assert_true(zipf > 0.13 && zipf < 0.17); /* log 2 of log 101 */
}

/* Of rows whose logit is about x, sigmoid(x) have the label 1. */
static void labels_of_clicks_follow_the_logit(void **state)
{
    struct dataset d;
    double ones[2] = {0}, expected[2] = {0};
    source_open_ok(CLICKS(""), &d);
    const float *logit = named(&d, "logit")->at;
    for (int64_t i = 0; i < d.rows; i++) {
        const int side = logit[i] > -1;
        ones[side] += ((const int32_t *)d.columns[LABELS].at)[i];
        expected[side] += 1 / (1 + exp(-(double)logit[i]));
    }
    for (int side = 0; side < 2; side++)
        assert_true(fabs(ones[side] - expected[side]) < 250); /* four deviations at most */
    assert_true(expected[1] > 2 * expected[0]);
    dataset_close(&d);
    assert_refused("{'format': 'clicks', 'rows': 9}", "clicks", "data.columns", NULL);
}

static void more_clicks_than_memory_holds_are_refused_before_any(void **state)
{
    assert_refused("{'format': 'clicks', 'rows': 1000000000000}, 'columns': ["
                   "{'column': 'ids', 'name': 'c1', 'rows': 1000},"
                   "{'column': 'numeric', 'name': 'n1'}]",
                   "clicks: 1000000000000 rows of 520 bytes", "the memory of this host holds",
                   NULL);
}

/* Every example would be a no, and nothing would be learned. */
static void a_positive_label_that_no_row_has_is_refused(void **state)
{
    const char *columns = "'columns': [{'column': 'hash', 'name': 'a', 'buckets': 5}]";
    char source[300];
    file_write_text("table", "a,y\n1,<=50K.\n2,>50K.\n3,<=50K.\n4,b\n5,c\n");
    for (int i = 0; i < 2; i++) {
        snprintf(source, sizeof source,
                 "{'format': 'csv', 'file': 'table', 'label': 'y', 'positive': '>50K'}%s%s",
                 i ? ", " : "", i ? columns : "");
        assert_refused(source, "table: no label is \">50K\" (\"positive\")",
                       "\"<=50K.\", \">50K.\", \"b\"", NULL);
    }
    file_write_text("rows", "-1 1:2\n-1 3:1\n");
    assert_refused("{'format': 'libsvm', 'file': 'rows', 'features': 3, 'positive': '+1'}",
                   "rows: no label is \"+1\"", "\"-1\"", NULL);
}

/* One of several may well have none. */
static void a_positive_label_that_no_file_has_is_refused(void **state)
{
    const char *columns = "'columns': [{'column': 'numeric', 'name': 'a'}]";
    char source[300];
    struct dataset d;
    file_write_text("one", "a,y\n1,no\n2,yes\n");
    file_write_text("two", "a,y\n1,no\n2,perhaps\n");
    for (int i = 0; i < 4; i++) {
        snprintf(source, sizeof source,
                 "{'format': 'csv', 'file': ['two', 'one', 'two'], 'label': 'y', 'positive': "
                 "'%s'}%s%s",
                 i % 2 ? "Yes" : "yes", i / 2 ? ", " : "", i / 2 ? columns : "");
        if (i % 2) {
            assert_refused(source, "two and 2 more: no label is \"Yes\" (\"positive\")",
                           "\"no\", \"perhaps\", \"yes\"", NULL);
            continue;
        }
        source_open_ok(source, &d);
        assert_int_equal(d.rows, 6);
        dataset_close(&d);
    }
}

static void no_flipped_byte_crashes(void **state)
{
    char text[] = "a,b,c,y\n1|3,\"x\",4:0.5 1:2,0\n?,,0,1\n";
    static const char telling[] = "\n\",. -+9ex:|?\x01\x80\xff"; /* and the NUL at its end */
    for (size_t i = 0; i < sizeof text - 1; i++) {
        for (size_t b = 0; b < sizeof telling; b++) {
            const char kept = text[i];
            struct dataset d = {0};
            text[i] = telling[b];
            file_write("table", text, sizeof text - 1);
            text[i] = kept;
            const err e = source_open(
                CSV "[{'column': 'hash', 'name': 'a', 'buckets': 9, 'separator': '|', 'max': 2},"
                    "{'column': 'bucketized', 'name': 'b', 'boundaries': [1]},"
                    "{'column': 'ids', 'name': 'c', 'rows': 5, 'max': 2, 'weights': true},"
                    "{'column': 'vocabulary', 'name': 'v', 'source': 'b', 'words': ['x']},"
                    "{'column': 'crossed', 'name': 'z', 'keys': ['a', 'v'], 'buckets': 9}]",
                &d);
            assert_true(e == OK || e == ERR_INPUT);
            dataset_close(&d);
        }
    }
}

/* Of the same rows as a table and as JSON: one rule for both */
static void words_are_trimmed_and_some_are_missing(void **state)
{
#define ONE_RULE                                                                                   \
    ", 'columns': [{'column': 'vocabulary', 'name': 'u', 'words': ['cat', 'NULL']}, "              \
    "{'column': 'numeric', 'name': 'x', 'default': -1}], 'batch_size': 1"
    const int64_t ids[] = {0, 0, NO_ID, NO_ID};
    const float numbers[] = {1, -1, 3, -1};
    static const char *const sources[] = {
        "{'format': 'csv', 'file': 'rows.csv', 'label': 'y', 'positive': 'yes', 'missing': "
        "['NULL', "
        "'\\\\N']}" ONE_RULE,
        "{'format': 'jsonl', 'file': 'rows.jsonl', 'label': 'y', 'positive': 'yes', 'missing': "
        "['NULL', '\\\\N']}" ONE_RULE,
    };
    file_write_text("rows.csv", "u,x,y\n cat ,1,yes\ncat,NULL, yes\nNULL, 3,no\n\\N,\\N,yes\n");
    file_write_text("rows.jsonl", "{\"u\": \" cat \", \"x\": 1, \"y\": \"yes\"}\n"
                                  "{\"u\": \"cat\", \"x\": \"NULL\", \"y\": \" yes\"}\n"
                                  "{\"u\": \"NULL\", \"x\": 3, \"y\": \"no\"}\n"
                                  "{\"u\": \" \\\\N\", \"x\": \"\\\\N\", \"y\": \"yes\"}\n");
    for (size_t i = 0; i < 2; i++) {
        struct dataset d;
        source_open_ok(sources[i], &d);
        assert_int_equal(d.rows, 4);
        assert_memory_equal(d.columns[1].at, ids, sizeof ids);
        assert_memory_equal(d.columns[2].at, numbers, sizeof numbers);
        assert_memory_equal(d.columns[LABELS].at, ((int32_t[]){1, 1, 0, 1}), 16);
        dataset_close(&d);
    }
}

static void longer_lists_are_cut_where_that_is_said(void **state)
{
#define CUT(how)                                                                                   \
    "{'format': 'csv', 'file': 'rows', 'label': 'y'}, 'columns': [{'column': 'ids', 'name': 'i', " \
    "'rows': 10, 'max': 3, 'weights': true" how "}, {'column': 'numeric', 'name': 'n', "           \
    "'separator': ' ', 'max': 2" how "}], 'batch_size': 1"
    struct dataset d;
    file_write_text("rows", "i,n,y\n1:1 2:2 3:3 4:4 5:5,1 2 3,0\n6:6,4 5,1\n");
    assert_refused(CUT(""), "more than 3 values", "truncate", NULL);
    source_open_ok(CUT(", 'truncate': 'first'"), &d);
    assert_memory_equal(d.columns[1].at, ((int64_t[]){1, 2, 3, 6, NO_ID, NO_ID}), 48);
    assert_memory_equal(d.columns[2].at, ((float[]){1, 2, 3, 6, 0, 0}), 24);
    assert_memory_equal(d.columns[3].at, ((float[]){1, 2, 4, 5}), 16);
    dataset_close(&d);
    source_open_ok(CUT(", 'truncate': 'last'"), &d);
    assert_memory_equal(d.columns[1].at, ((int64_t[]){3, 4, 5, 6, NO_ID, NO_ID}), 48);
    assert_memory_equal(d.columns[2].at, ((float[]){3, 4, 5, 6, 0, 0}), 24);
    assert_memory_equal(d.columns[3].at, ((float[]){2, 3, 4, 5}), 16);
    dataset_close(&d);
}

/* A default, or words for missing ones, suffice for what neither a file nor its first rows have. */
static void a_column_may_be_of_a_cell_that_no_row_has(void **state)
{
#define OPTIONAL(file, more, column)                                                               \
    "{'format': 'jsonl', 'file': " file ", 'label': 'y'" more "}, 'columns': [" column             \
    "], 'batch_size': 1"
#define X "{'column': 'numeric', 'name': 'x', 'default': -100}"
#define U "{'column': 'hash', 'name': 'u', 'buckets': 5}"
    struct dataset d;
    file_write_text("without", "{\"y\": 0}\n");
    file_write_text("with", "{\"x\": 7, \"u\": \"a\", \"y\": 1}\n");
    source_open_ok(OPTIONAL("'without'", "", X), &d);
    assert_memory_equal(d.columns[1].at, ((float[]){-100}), 4);
    dataset_close(&d);
    source_open_ok(OPTIONAL("['without', 'with']", "", X), &d);
    assert_memory_equal(d.columns[1].at, ((float[]){-100, 7}), 8);
    dataset_close(&d);
    source_open_ok(OPTIONAL("['with', 'without']", "", X), &d);
    assert_memory_equal(d.columns[1].at, ((float[]){7, -100}), 8);
    dataset_close(&d);
    assert_refused(OPTIONAL("'without'", "", U), "has no cell \"u\"", NULL);
    source_open_ok(OPTIONAL("['without', 'with']", ", 'missing': ['NA']", U), &d);
    assert_int_equal(((int64_t *)d.columns[1].at)[0], NO_ID);
    assert_int_not_equal(((int64_t *)d.columns[1].at)[1], NO_ID);
    dataset_close(&d);
    static char many[64 << 10];
    size_t used = 0;
    for (int i = 0; i < 1100; i++) used += (size_t)sprintf(many + used, "{\"y\": 0}\n");
    sprintf(many + used, "{\"x\": 7, \"y\": 1}\n");
    file_write_text("late", many);
    source_open_ok(OPTIONAL("'late'", "", X), &d);
    assert_true(((float *)d.columns[1].at)[1100] == 7);
    dataset_close(&d);
}

static void a_header_may_lack_what_has_a_default(void **state)
{
#define TABLES(files, more, column)                                                                \
    "{'format': 'csv', 'file': " files ", 'label': 'y'" more "}, 'columns': [" column "]"
#define BOTH X ", {'column': 'identity', 'name': 'b', 'buckets': 9}"
    static const char *const orders[] = {"['none', 'all', 'turned']", "['all', 'none', 'turned']",
                                         "['turned', 'all', 'none']"};
    static const float x[][3] = {{-100, 7, 8}, {7, -100, 8}, {8, 7, -100}};
    static const int64_t b[][3] = {{1, 2, 3}, {2, 1, 3}, {3, 2, 1}};
    char said[4096];
    file_write_text("none", "b,y\n1,0\n");
    file_write_text("all", "x,b,y\n7,2,1\n");
    file_write_text("turned", "b,y,x\n3,1,8\n");
    assert_numbers(TABLES("'none'", "", BOTH), "x", 1, (float[]){-100});
    for (int i = 0; i < 3; i++) {
        char source[512];
        sprintf(source, TABLES("%s", "", BOTH), orders[i]);
        assert_numbers(source, "x", 3, x[i]);
        assert_ids(source, "b", 9, 3, b[i]);
    }
    assert_ids(TABLES("['all', 'none']", ", 'missing': ['NA']", U ", " BOTH), "u", 5, 2,
               (int64_t[]){NO_ID, NO_ID});
    source_said(TABLES("['none', 'none', 'all']", ", 'missing': ['?']", X), said, sizeof said);
    assert_null(strstr(said, "no \"x\"")); /* it is said above, of these files */
    file_write_text("nine", "x1,y\n1,0\n");
    source_said(TABLES("['nine', 'nine']", "", X), said, sizeof said);
    assert_non_null(strstr(said, "nine: the header has no \"x\" (did you mean \"x1\"?)"));
    assert_null(strstr(strstr(said, "no \"x\"") + 1, "no \"x\""));
}

/* Of which some file has the cell, or not: in memory and as a stream */
static void assert_trains(const char *source, const char *refused)
{
    static const char *const streams[] = {"never", "always"};
    for (int i = 0; i < 2; i++) {
        char text[1024];
        struct dataset d;
        struct opened_source o = {0};
        const char *place = strstr(source, "STREAM");
        snprintf(text, sizeof text, "%.*s%s%s", (int)(place - source), source, streams[i],
                 place + strlen("STREAM"));
        err e = i ? source_open_batches(text, NULL, &o) : source_open_to_train(text, &d);
        assert_int_equal(e, refused ? ERR_INPUT : OK);
        if (refused && !strstr(error_text(), refused)) print_error("%s\n", error_text());
        if (refused) assert_non_null(strstr(error_text(), refused));
        if (i) source_close_batches(&o);
        if (!i && !e) dataset_close(&d);
    }
}

/* A misspelled name beside a default would train on a constant. */
static void what_is_trained_on_is_in_some_file(void **state)
{
#define NAMED(format, files, more, column)                                                         \
    "{'format': '" format "', 'file': " files ", 'label': 'y', 'stream': 'STREAM'" more            \
    "}, 'columns': [" column "], 'batch_size': 1"
#define PRISE "{'column': 'numeric', 'name': 'prise', 'default': 0}"
#define PRICE "{'column': 'numeric', 'name': 'p', 'source': 'price', 'default': 0}"
#define WORD "{'column': 'hash', 'name': 'worb', 'buckets': 9}"
    file_write_text("c", "price,word,y\n1,a,0\n,b,1\n");
    file_write_text("c-without", "word,y\na,0\n");
    file_write_text("c-empty", "price,word,y\n,,0\n");
    file_write_text("j", "{\"y\": 0}\n{\"price\": 3, \"word\": \"a\", \"y\": 1}\n");
    file_write_text("j-without", "{\"word\": \"a\", \"y\": 1}\n");
    file_write_text("j-null", "{\"price\": null, \"word\": \"a\", \"y\": 1}\n");
    file_write_text("j-first", "{\"price\": 3, \"y\": 1}\n{\"word\": \"a\", \"y\": 0}\n");
    file_write_text("s", "y:1 price:2 word:a\n");
    assert_trains(
        NAMED("csv", "'c'", "", PRISE),
        "column \"prise\": no row of any file has a cell \"prise\" (did you mean \"price\"?)");
    assert_trains(NAMED("csv", "['c-empty', 'c']", "", PRISE), "c-empty");
    assert_trains(NAMED("csv", "'c'", "", "{'column': 'date', 'name': 'hour', 'part': 'hour'}"),
                  "no cell \"hour\"");
    assert_trains(NAMED("csv", "'c'", ", 'missing': ['NA']",
                        "{'column': 'date', 'name': 'hour', 'part': 'hour'}"),
                  "has a cell \"hour\" (\"source\" names another)");
    assert_trains(NAMED("jsonl", "'j'", "", PRISE), "did you mean \"price\"?");
    assert_trains(NAMED("slots", "'s'", "", PRISE), "did you mean \"price\"?");
    assert_trains(NAMED("csv", "'c'", ", 'missing': ['NA']", WORD), "did you mean \"word\"?");
    assert_trains(NAMED("jsonl", "'j'", ", 'missing': ['NA']", WORD), "did you mean \"word\"?");
    assert_trains(NAMED("jsonl", "'j'", ", 'names': ['prise']", PRISE), "has a cell \"prise\"");
    assert_trains(NAMED("csv", "['c-without', 'c-without']", "", PRICE), "column \"p\": no row");
    assert_trains(NAMED("csv", "['c-without', 'c']", "", PRICE), NULL);
    assert_trains(NAMED("csv", "['c', 'c-without']", "", PRICE), NULL);
    assert_trains(NAMED("csv", "'c-empty'", "", PRICE), NULL);
    assert_trains(NAMED("jsonl", "['j-without', 'j']", "", PRICE), NULL);
    assert_trains(NAMED("jsonl", "'j-null'", "", PRICE), NULL);
    assert_trains(NAMED("jsonl", "'j-first'", ", 'take': 1", PRICE), NULL);
    assert_trains(NAMED("jsonl", "'j-first'", ", 'skip': 1", PRICE), "column \"p\": no row");
    assert_trains(NAMED("slots", "'s'", "", PRICE), NULL);
}

/* A misspelled positive word would train on one label, also where others, in front of or behind
 * those that are taken, have it. */
static void some_label_that_is_trained_on_is_the_positive_one(void **state)
{
#define POSITIVE(format, files, word, more)                                                        \
    NAMED(format, files, ", 'positive': '" word "'" more, "{'column': 'numeric', 'name': 'x'}")
    file_write_text("c", "x,y\n1,no\n2,no\n3,yes\n");
    file_write_text("c-no", "x,y\n1,no\n");
    file_write_text("j", "{\"x\": 1, \"y\": \"no\"}\n{\"x\": 2, \"y\": \"yes\"}\n");
    file_write_text("s", "x:1 y:no\nx:2 y:yes\n");
    assert_trains(POSITIVE("csv", "'c'", "yse", ""), "no label");
    assert_trains(POSITIVE("csv", "'c'", "yse", ", 'take': 2"), "is \"yse\" (\"positive\")");
    assert_trains(POSITIVE("csv", "['c-no', 'c-no']", "yes", ""), "no label");
    assert_trains(POSITIVE("jsonl", "'j'", "yse", ""), "no label");
    assert_trains(POSITIVE("slots", "'s'", "yse", ""), "no label");
    assert_trains(POSITIVE("csv", "'c'", "yes", ", 'take': 2"), "no label of the 2 rows");
    file_write_text("c-first", "x,y\n1,yes\n2,no\n3,no\n");
    assert_trains(POSITIVE("csv", "'c-first'", "yes", ", 'skip': 1"), "no label of the 2 rows");
    assert_trains(POSITIVE("csv", "['c-first', 'c-no']", "yes", ", 'skip': 1"),
                  "no label of the 3 rows");
    assert_trains(POSITIVE("csv", "['c-first', 'c']", "yes", ", 'skip': 3"), NULL);
    assert_trains(POSITIVE("csv", "'c'", "yes", ""), NULL);
    assert_trains(POSITIVE("csv", "['c-no', 'c']", "yes", ""), NULL);
    assert_trains(POSITIVE("jsonl", "'j'", "yes", ""), NULL);
    assert_trains(POSITIVE("slots", "'s'", "yes", ""), NULL);
}

/* What nothing stands in for, or only in one of two columns; a label; a cell too many; another
 * delimiter. */
static void other_headers_are_refused(void **state)
{
#define Z "{'column': 'numeric', 'name': 'z', 'source': 'x'}"
    file_write_text("none", "b,y\n1,0\n");
    file_write_text("all", "x,b,y\n7,2,1\n");
    file_write_text("more", "x,b,y,c\n7,2,1,4\n");
    file_write_text("last", "y,x,b\n1,7,2\n");
    file_write_text("cut", "x;b;y\n7;2;1\n");
    assert_refused(TABLES("'none'", "", U), "none has no cell \"u\"", NULL);
    assert_refused(TABLES("'none'", "", X ", " Z), "none has no cell \"x\"", NULL);
    assert_refused(TABLES("['all', 'none']", "", Z), "none: expected 3 cells", NULL);
    assert_refused(TABLES("['none', 'more']", "", X), "more: expected 3 cells", NULL);
    assert_refused(TABLES("['more', 'all']", "", X), "all: expected 4 cells", NULL);
    assert_refused(TABLES("'cut'", "", X), "is \"delimiter\" another?", NULL);
    assert_refused("{'format': 'csv', 'file': ['all', 'last'], 'label': -1}, 'columns': [" X "]",
                   "last: its label is \"b\"", NULL);
    assert_refused("{'format': 'csv', 'file': 'none', 'label': 'y', 'names': ['b', 'y']}, "
                   "'columns': [" X "]",
                   "no cell \"x\"", NULL);
}

/* libsvm's values, which a column without weights leaves out */
static void numbers_that_are_left_out_are_said(void **state)
{
#define PAIRS(name, column)                                                                        \
    "{'format': 'libsvm', 'file': 'pairs'}, 'columns': [{'column': '" column "', 'name': '" name   \
    "', 'source': 'features'"
    char said[4096];
    file_write_text("pairs", "0 1:1 3:1\n1 2:0.5 3:1\n1 1:2\n");
    source_said(PAIRS("lost", "ids") "}]", said, sizeof said);
    assert_non_null(
        strstr(said, "pairs: line 2: column \"lost\": ids come with numbers other than 1"));
    assert_null(strstr(strstr(said, "other than 1") + 1, "other than 1"));
    source_said(PAIRS("kept", "ids") ", 'weights': true}]", said, sizeof said);
    assert_null(strstr(said, "other than 1"));
    source_said(PAIRS("some", "identity") ", 'buckets': 9, 'max': 2}]", said, sizeof said);
    assert_non_null(strstr(said, "pairs: line 2: column \"some\""));
    file_write_text("pairs", "0 1:1 3:1\n1 2:1 3:1\n");
    source_said(PAIRS("ones", "ids") "}]", said, sizeof said);
    assert_null(strstr(said, "other than 1"));
}

static void weights_that_no_value_has_are_refused(void **state)
{
#define WEIGHTED                                                                                   \
    "{'format': 'jsonl', 'file': 'rows', 'label': 'y'}, 'columns': [{'column': 'ids', 'name': "    \
    "'i', 'rows': 10, 'max': 3, 'weights': true}], 'batch_size': 1"
    struct dataset d;
    file_write_text("rows", "{\"i\": [1, 2], \"y\": 0}\n{\"i\": [], \"y\": 0}\n");
    assert_refused(WEIGHTED, "column \"i\"", "\"weights\" is true, and no value has one", NULL);
    file_write_text("rows", "{\"i\": [\"1\", \"2:0.5\"], \"y\": 0}\n");
    source_open_ok(WEIGHTED, &d);
    dataset_close(&d);
}

static void dates_have_parts(void **state)
{
#define DATE(part) "{'column': 'date', 'name': '" part "', 'source': 't', 'part': '" part "'}"
#define DATES                                                                                      \
    "{'format': 'csv', 'file': 'rows', 'label': 'y'}, 'columns': [" DATE("hour") ", " DATE(        \
        "weekday") ", " DATE("day") ", " DATE("month") ", {'column': 'date', 'name': 's', "        \
                                                       "'source': 't', 'part': 'seconds', "        \
                                                       "'offset': -1772323200, 'default': "        \
                                                       "1772323200}], 'batch_size': 1"
    static const struct {
        const char *text;
        int64_t ids[4];
        float seconds; /* since 2026-03-01 */
    } times[] = {
        {"2026-03-01", {0, 6, 0, 2}, 0},
        {"2026-03-01 23:59", {23, 6, 0, 2}, 86340},
        {"2026/03/02T00:00:01Z", {0, 0, 1, 2}, 86401},
        {"2026-03-02 01:30:00.5+02:00", {23, 6, 0, 2}, 84600.5f},
        {"2026-03-01 22:30 -02:00", {0, 0, 1, 2}, 88200},
        {"1772323200", {0, 6, 0, 2}, 0},
        {"", {NO_ID, NO_ID, NO_ID, NO_ID}, 0},
    };
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        struct dataset d;
        char text[128];
        snprintf(text, sizeof text, "t,y\n%s,0\n", times[i].text);
        file_write_text("rows", text);
        source_open_ok(DATES, &d);
        for (int k = 0; k < 4; k++)
            assert_int_equal(*(const int64_t *)d.columns[1 + k].at, times[i].ids[k]);
        assert_true(*(const float *)d.columns[5].at == times[i].seconds);
        dataset_close(&d);
    }
    static const char *const wrong[] = {"2026-02-30", "yesterday", "2026-03-01 24:00",
                                        "2026-03-01 10:00 noon", "2026-13-01"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[128];
        snprintf(text, sizeof text, "t,y\n%s,0\n", wrong[i]);
        file_write_text("rows", text);
        assert_refused(DATES, "rows: line 2: column \"hour\"", "a time such as 2026-03-31",
                       wrong[i], NULL);
    }
    struct dataset d;
    file_write_text("rows", "t,y\n20260331,0\n");
    source_open_ok("{'format': 'csv', 'file': 'rows', 'label': 'y'}, 'columns': [{'column': "
                   "'date', 'name': 't', 'part': 'day', 'format': '%Y%m%d'}], 'batch_size': 1",
                   &d);
    assert_int_equal(*(const int64_t *)d.columns[1].at, 30);
    dataset_close(&d);
    file_write_text("rows", "t,y\n1772350200999,0\n");
    source_open_ok("{'format': 'csv', 'file': 'rows', 'label': 'y'}, 'columns': [{'column': "
                   "'date', 'name': 't', 'part': 'hour', 'format': 'milliseconds'}], 'batch_size': "
                   "1",
                   &d);
    assert_int_equal(*(const int64_t *)d.columns[1].at, 7);
    dataset_close(&d);
    file_write_text("rows", "t,y\n01.03.2026 07:30,0\n");
    source_open_ok(
        "{'format': 'csv', 'file': 'rows', 'label': 'y'}, 'columns': [{'column': 'date', "
        "'name': 't', 'part': 'hour', 'format': '%d.%m.%Y %H:%M'}], 'batch_size': 1",
        &d);
    assert_int_equal(*(const int64_t *)d.columns[1].at, 7);
    dataset_close(&d);
}

static void numbers_that_nobody_writes_for_seconds_since_1970_are_no_dates(void **state)
{
    file_write_text("rows", "t,y\n1772323200000,0\n");
    assert_refused(DATES, "rows: line 2: column \"hour\"", "1772323200000 seconds",
                   "\"milliseconds\"", NULL);
    static const char *const huge[] = {"1e300", "-1e300", "9.3e18", "1e15"};
    for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
        char text[64], seconds[64];
        snprintf(text, sizeof text, "t,y\n%s,0\n", huge[i]);
        snprintf(seconds, sizeof seconds, " %.9g seconds since 1970", strtod(huge[i], NULL));
        file_write_text("rows", text);
        assert_refused(DATES, "rows: line 2: column \"hour\"", seconds, NULL);
    }
    assert_refused(
        "{'format': 'csv', 'file': 'rows', 'label': 'y'}, 'columns': [{'column': 'date', "
        "'name': 't', 'part': 'day', 'default': 1e300}], 'batch_size': 1",
        "default: expected seconds since 1970", NULL);
    file_write_text("rows", "t,y\n20260331,0\n");
    assert_refused(DATES, "rows: line 2: column \"hour\"", "\"format\": \"%Y%m%d\"", NULL);
}

/* As many as a spec may list, with weights, and labels beside them; a separator of several
 * characters is one, too */
static void a_spec_may_list_thousands_of_columns(void **state)
{
    struct dataset d;
    char *spec = malloc(1 << 20), *text = malloc(1 << 20), *to = spec, *row = text;
    for (int i = 0; i < LISTED_COLUMNS_MAX; i++) row += sprintf(row, "%sc%d", i ? "," : "", i);
    row += sprintf(row, ",y\n");
    for (int i = 0; i < LISTED_COLUMNS_MAX; i++)
        row += sprintf(row, "%s%d:2||7:1", i ? "," : "", i);
    sprintf(row, ",1\n");
    to += sprintf(to, "{'format': 'csv', 'file': 'table', 'labels': [{'name': 'y'}, {'name': 'z', "
                      "'cell': 'y'}]}, 'batch_size': 1, 'columns': [");
    for (int i = 0; i < LISTED_COLUMNS_MAX; i++)
        to += sprintf(to,
                      "%s{'column': 'ids', 'name': 'c%d', 'weights': true, 'max': 2, "
                      "'separator': '||'}",
                      i ? "," : "", i);
    sprintf(to, "]");
    file_write_text("table", text);
    source_open_ok(spec, &d);
    assert_int_equal(d.column_count, 1 + 2 * LISTED_COLUMNS_MAX + 2);
    for (int i = 0; i < LISTED_COLUMNS_MAX; i++) {
        assert_memory_equal(d.columns[1 + 2 * i].at, ((int64_t[]){i, 7}), 16);
        assert_memory_equal(d.columns[2 + 2 * i].at, ((float[]){2, 1}), 8);
    }
    dataset_close(&d);
    sprintf(to, ", {'column': 'ids', 'name': 'more', 'source': 'c0'}]");
    assert_refused(spec, "columns", "4096", NULL);
    free(spec);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dates_have_parts),
        cmocka_unit_test(numbers_that_nobody_writes_for_seconds_since_1970_are_no_dates),
        cmocka_unit_test(words_are_trimmed_and_some_are_missing),
        cmocka_unit_test(longer_lists_are_cut_where_that_is_said),
        cmocka_unit_test(a_column_may_be_of_a_cell_that_no_row_has),
        cmocka_unit_test(a_header_may_lack_what_has_a_default),
        cmocka_unit_test(what_is_trained_on_is_in_some_file),
        cmocka_unit_test(some_label_that_is_trained_on_is_the_positive_one),
        cmocka_unit_test(numbers_that_are_left_out_are_said),
        cmocka_unit_test(other_headers_are_refused),
        cmocka_unit_test(weights_that_no_value_has_are_refused),
        cmocka_unit_test(words_hash_as_in_tensorflow),
        cmocka_unit_test(a_bucket_is_the_rest_of_a_division),
        cmocka_unit_test(crosses_are_those_of_tensorflow),
        cmocka_unit_test(every_combination_of_several_values_is_crossed),
        cmocka_unit_test(a_vocabulary_is_crossed_by_what_its_name_means),
        cmocka_unit_test(the_part_of_a_date_is_a_key),
        cmocka_unit_test(a_hash_takes_the_cell_as_it_is),
        cmocka_unit_test(rows_without_a_value_are_counted),
        cmocka_unit_test(numbers_are_scaled),
        cmocka_unit_test(numbers_keep_their_digits_until_they_are_made),
        cmocka_unit_test(ids_are_exact_in_any_spelling),
        cmocka_unit_test(words_that_change_while_they_are_used_are_refused),
        cmocka_unit_test(an_id_with_a_number_is_not_one_number),
        cmocka_unit_test(a_boundary_begins_a_bucket),
        cmocka_unit_test(boundaries_may_be_lines_of_a_file),
        cmocka_unit_test(words_have_the_place_in_their_list),
        cmocka_unit_test(ids_out_of_range_are_named_or_replaced),
        cmocka_unit_test(ids_without_a_number_of_them_are_any),
        cmocka_unit_test(minus_one_is_no_id),
        cmocka_unit_test(a_default_stands_for_what_is_missing_and_is_counted),
        cmocka_unit_test(a_cell_may_have_several_values),
        cmocka_unit_test(lists_of_ids_may_have_weights),
        cmocka_unit_test(what_is_not_there_is_named),
        cmocka_unit_test(a_name_that_two_cells_have_is_refused_where_it_is_asked_for),
        cmocka_unit_test(ids_of_clicks_are_skewed_as_asked),
        cmocka_unit_test(labels_of_clicks_follow_the_logit),
        cmocka_unit_test(more_clicks_than_memory_holds_are_refused_before_any),
        cmocka_unit_test(a_positive_label_that_no_row_has_is_refused),
        cmocka_unit_test(a_positive_label_that_no_file_has_is_refused),
        cmocka_unit_test(labels_are_made_of_cells),
        cmocka_unit_test(what_labels_have_wrong_is_said),
        cmocka_unit_test(a_spec_may_list_thousands_of_columns),
        cmocka_unit_test(no_flipped_byte_crashes),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
