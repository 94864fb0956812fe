/* jsonl: members as cells, and lines that are none. */
#include "tests/core/data/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/data/columns/column.h"

#define SOURCE(more, columns)                                                                      \
    "{'format': 'jsonl', 'file': 'rows', 'label': 'y'" more "}, 'columns': [" columns              \
    "], 'batch_size': 1"
#define X "{'column': 'numeric', 'name': 'x', 'default': -1}"
#define WORD "{'column': 'vocabulary', 'name': 'word', 'words': ['a', 'b c', '7'], 'max': 2}"

/* ' stands for " */
static void write_lines(const char *text)
{
    char *copy = strdup(text);
    assert_non_null(copy);
    for (char *c = copy; *c; c++)
        if (*c == '\'') *c = '"';
    file_write_text("rows", copy);
    free(copy);
}

static void members_are_cells(void **state)
{
    struct dataset d;
    write_lines("{'x': 1, 'y': 0, 'word': 'b c', 'unread': true}\n"
                "\n"
                "{'y': 1.0, 'word': ['7', 'a'], 'x': 2.5e0}\r\n"
                "  {'word': 7, 'y': true, 'x': null} \n"
                "{'y': 0, 'x': '4', 'word': ['', 'a']}\n"
                "{'y': '1', 'x': true, 'word': []}");
    source_open_ok(SOURCE("", X "," WORD), &d);
    assert_int_equal(d.rows, 5);
    assert_memory_equal(d.columns[LABELS].at, ((int32_t[]){0, 1, 1, 0, 1}), 20);
    assert_memory_equal(d.columns[1].at, ((float[]){1, 2.5f, -1, 4, 1}), 20);
    assert_memory_equal(d.columns[2].at, ((int64_t[]){1, -1, 2, 0, 2, -1, 0, -1, -1, -1}), 80);
    assert_non_null(strstr(d.use, "x 1, word 1"));
    dataset_close(&d);
    source_open_ok(SOURCE(", 'names': ['word'], 'positive': '1'", WORD), &d);
    assert_memory_equal(d.columns[LABELS].at, ((int32_t[]){0, 1, 1, 0, 1}), 20);
    dataset_close(&d);
}

static void lists_of_numbers_are_cells(void **state)
{
    struct dataset d;
    write_lines("{'x': [1, 2.5], 'y': 0, 'ids': [3, 9007199254740993]}\n"
                "{'x': [true, 1e-3], 'y': 1, 'ids': 5}\n");
    source_open_ok(SOURCE("", "{'column': 'numeric', 'name': 'x', 'max': 2},"
                              "{'column': 'hash', 'name': 'ids', 'buckets': 100, 'max': 2}"),
                   &d);
    assert_memory_equal(d.columns[1].at, ((float[]){1, 2.5f, 1, 0.001f}), 16);
    dataset_close(&d);
}

/* As an id, as a word, as a label, alone and in a list: what a number is does not depend on how it
 * is written, and it keeps all its digits. */
static void whole_numbers_are_one_in_any_spelling(void **state)
{
    static const char *const spellings[][4] = {
        {"16777217", "16777217.0", "1.6777217e7", "167772170e-1"},
        {"123456789012", "123456789012.0", "1.23456789012E+11", "123456789012.000"},
        {"9007199254740993", "9007199254740993.0", "9.007199254740993e15", "90071992547409930E-1"},
        {"9223372036854775806", "9223372036854775806.0", "9.223372036854775806e18",
         "92233720368547758060e-1"},
        {"0", "0.0", "-0", "0e7"},
    };
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        const long long id = strtoll(spellings[i][0], NULL, 10);
        for (int k = 0; k < 4; k++) {
            char text[512];
            struct dataset d;
            const char *now = spellings[i][k];
            snprintf(text, sizeof text,
                     "{'x': %s, 'l': [%s, 1.0], 'h': '%s', 'y': 1.0}\n"
                     "{'x': %s, 'l': [1, %s], 'h': %s, 'y': 0}\n",
                     now, now, spellings[i][0], now, now, now);
            write_lines(text);
            source_open_ok(SOURCE("", "{'column': 'identity', 'name': 'x'},"
                                      "{'column': 'identity', 'name': 'l', 'max': 2},"
                                      "{'column': 'hash', 'name': 'h', 'buckets': 1000000007}"),
                           &d);
            const int64_t *x = d.columns[1].at, *l = d.columns[2].at, *h = d.columns[3].at;
            assert_true(x[0] == id && x[1] == id);
            assert_true(l[0] == id && l[1] == 1 && l[2] == 1 && l[3] == id);
            assert_true(h[0] == h[1]);
            assert_memory_equal(d.columns[LABELS].at, ((int32_t[]){1, 0}), 8);
            dataset_close(&d);
        }
    }
}

/* To 2^64 - 1; what is not whole is as it is written. */
static void numbers_that_are_no_ids_are_words(void **state)
{
    static const char *const same[][2] = {
        {"18446744073709551615", "18446744073709551615"},
        {"1.8446744073709551615e19", "18446744073709551615"},
        {"-1e3", "-1000"},
        {"0.1", "0.1"},
        {"1.50", "1.50"},
        {"1e-3", "1e-3"},
        {"123456789012345678901234567890", "123456789012345678901234567890"},
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        char text[512];
        struct dataset d;
        snprintf(text, sizeof text,
                 "{'x': %s, 'l': [1, %s], 'y': 0}\n{'x': '%s', 'l': ['1', '%s'], 'y': 1}\n",
                 same[i][0], same[i][0], same[i][1], same[i][1]);
        write_lines(text);
        source_open_ok(SOURCE("",
                              "{'column': 'hash', 'name': 'x', 'buckets': 1000000007},"
                              "{'column': 'hash', 'name': 'l', 'buckets': 1000000007, 'max': 2}"),
                       &d);
        const int64_t *x = d.columns[1].at, *l = d.columns[2].at;
        assert_true(x[0] == x[1]);
        assert_true(l[0] == l[2] && l[1] == l[3]);
        dataset_close(&d);
    }
    write_lines("{'x': 1.5, 'y': 0}\n");
    assert_refused(SOURCE("", "{'column': 'identity', 'name': 'x'}"), "expected an id", "1.5",
                   NULL);
    write_lines("{'x': 9007199254740993.5, 'y': 0}\n");
    assert_refused(SOURCE("", "{'column': 'identity', 'name': 'x'}"), "9007199254740993.5", NULL);
}

static void what_is_no_row_is_named(void **state)
{
    static const struct {
        const char *line, *told;
    } bad[] = {
        {"{'x': 1, 'y': 0", "rows: line 2: column 15"},
        {"{'x': 1, 'y': 0} 7", "rows: line 2: column 18: end of file expected"},
        {"[1, 2]", "rows: line 2: expected an object, got a list"},
        {"{'x': 1, 'x': 2, 'y': 0}", "rows: line 2: column 12: duplicate object key"},
        {"{'x': {'a': 1}, 'y': 0}", "rows: line 2: \"x\": expected numbers, words, booleans"},
        {"{'x': [[1]], 'y': 0}", "rows: line 2: \"x\": expected numbers"},
        {"{'x': [1, null], 'y': 0}", "got null in a list"},
        {"{'x': [1, 'a'], 'y': 0}", "got a word in a list"},
        {"{'x': 1e60, 'y': 0}", "rows: line 2: column \"x\": 1e+60 is too large"},
        {"{'x': 1}", "rows: line 2: \"y\": expected a class (a whole number), got \"\""},
        {"{'x': 1, 'y': [0, 1]}", "rows: line 2: \"y\": expected a class (a whole number)"},
        {"{'x': 1, 'y': 'no'}", "got \"no\""},
        {"{'x': 'no', 'y': 0}", "rows: line 2: column \"x\": expected a number, got \"no\""},
        {"nul", "rows: line 2: column 3"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[256];
        snprintf(text, sizeof text, "{'x': 1, 'y': 0}\n%s\n", bad[i].line);
        write_lines(text);
        assert_refused(SOURCE("", X), bad[i].told, NULL);
    }
}

/* Logs of requests are such rows: who reads nothing of an object need not know of it. */
static void what_holds_others_is_no_cell(void **state)
{
    static const char *const nested[] = {"{}", "{'id': {'a': 7}}", "[{'id': 7}, {}]", "[[1], [2]]",
                                         "[null, {}]"};
    for (size_t i = 0; i < sizeof nested / sizeof *nested; i++) {
        char text[256];
        struct dataset d;
        snprintf(text, sizeof text,
                 "{'user': %s, 'x': 1, 'y': 0}\n{'x': 2, 'y': 1, 'user': null}\n", nested[i]);
        write_lines(text);
        assert_refused(SOURCE(", 'names': ['x', 'user']", X), "line 1: \"user\": expected numbers",
                       NULL);
        source_open_ok(SOURCE("", X), &d);
        assert_int_equal(d.rows, 2);
        dataset_close(&d);
        source_open_ok(SOURCE(", 'names': ['x']", X), &d);
        dataset_close(&d);
        assert_refused(SOURCE("", "{'column': 'numeric', 'name': 'age', 'source': 'user.age'}"),
                       "has no cell \"user.age\"", "\"user\" holds others, which are none", NULL);
        assert_refused(SOURCE("", "{'column': 'numeric', 'name': 'user', 'default': 0}"),
                       "line 1: \"user\": expected numbers", NULL);
    }
}

static void lines_have_a_limit(void **state)
{
    const size_t bytes = (1 << 20) + 100;
    char *text = malloc(bytes);
    assert_non_null(text);
    memset(text, ' ', bytes);
    memcpy(text, "{\"y\": 0}\n{", 10);
    file_write("rows", text, bytes);
    free(text);
    assert_refused(SOURCE("", X), "rows: line 2: longer than 1048576 bytes", NULL);
}

static void no_cut_and_no_flipped_byte_crashes(void **state)
{
    char text[] = "{\"x\":[1,2.5e0],\"y\":0}\n{\"x\":\"\\u00e9\",\"y\":true}\n";
    static const char telling[] = "\n{}[]\",:0e-\\\x01\x80\xff"; /* and the NUL at its end */
    for (size_t i = 0; i < sizeof text - 1; i++) {
        for (size_t b = 0; b < sizeof telling; b++) {
            const char kept = text[i];
            struct dataset d = {0};
            text[i] = telling[b];
            file_write("rows", text, b ? sizeof text - 1 : i + 1);
            text[i] = kept;
            const err e = source_open(SOURCE("", X), &d);
            assert_true(e == OK || e == ERR_INPUT);
            dataset_close(&d);
        }
    }
}

#define SLOTS(more, columns)                                                                       \
    "{'format': 'slots', 'file': 'rows'" more "}, 'columns': [" columns "], 'batch_size': 1"
#define SLOT_COLUMNS                                                                               \
    "{'column': 'ids', 'name': '6001', 'max': 3, 'rows': 100},"                                    \
    "{'column': 'numeric', 'name': 'dense', 'max': 2, 'default': 0}"

/* Values of a slot stand in their order, be there others between them; a label is a slot, or the
 * first word. */
static void slots_are_cells(void **state)
{
    static const struct {
        const char *text, *source;
    } ways[] = {
        {"click:0 6001:7 dense:0.5 6001:3 other:1 dense:2 6001:9\nclick:1  6001:4\tdense:1 "
         "dense:-1\n"
         "click:1 dense:3 dense:4\n",
         SLOTS(", 'label': 'click'", SLOT_COLUMNS)},
        {"0 6001:7 6001:3 6001:9 dense:0.5 dense:2\n1 6001:4 dense:1 dense:-1\n1 dense:3 dense:4",
         SLOTS(", 'label': 'label'", SLOT_COLUMNS)},
        {"0 7:6001 3:6001 9:6001 0.5:dense 2:dense\n1 4:6001 1:dense -1:dense\n1 3:dense 4:dense\n",
         SLOTS(", 'label': 'label', 'value_first': true", SLOT_COLUMNS)},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct dataset d;
        file_write_text("rows", ways[i].text);
        source_open_ok(ways[i].source, &d);
        assert_int_equal(d.rows, 3);
        assert_memory_equal(d.columns[LABELS].at, ((int32_t[]){0, 1, 1}), 12);
        assert_memory_equal(d.columns[1].at, ((int64_t[]){7, 3, 9, 4, -1, -1, -1, -1, -1}), 72);
        assert_memory_equal(d.columns[2].at, ((float[]){0.5f, 2, 1, -1, 3, 4}), 24);
        dataset_close(&d);
    }
}

static void what_is_no_slot_is_named(void **state)
{
    static const struct {
        const char *text, *place, *what;
    } bad[] = {
        {"0 6001:1 alone\n", "word 3, \"alone\"", "expected slot:value"},
        {"0 6001:\n", "word 2", "a value is missing"},
        {"0 :5\n", "word 2", "a slot is missing"},
        {"0 6001:x\n", "line 1", "\"x\""},
        {"6001:1\n", "line 1", "\"label\""},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        file_write_text("rows", bad[i].text);
        assert_refused(SLOTS(", 'label': 'label'", SLOT_COLUMNS), bad[i].place, bad[i].what, NULL);
    }
}

/* One number is one id wherever it stands, also where it is above what a column has room for. */
static void ids_have_64_bits_in_every_format(void **state)
{
    static const char *const numbers[] = {"1",
                                          "4611686018427387904",
                                          "9223372036854775806",
                                          "9223372036854775807",
                                          "9223372036854775808",
                                          "18446744073709551614",
                                          "18446744073709551615"};
    static const char *const kinds[] = {"{'column': 'ids', 'name': 'a', 'max': 2}",
                                        "{'column': 'identity', 'name': 'a', 'max': 2}"};
    enum { COUNT = sizeof numbers / sizeof *numbers };
    int64_t ids[COUNT];
    for (int i = 0; i < COUNT; i++) {
        char text[256], source[512];
        const char *const id = numbers[i];
        ids[i] = id_of_64_bits(strtoull(id, NULL, 10));
        assert_true(ids[i] >= 0 && ids[i] < ANY_ID);
        for (int k = 0; k < i; k++) assert_true(ids[i] != ids[k]);
        for (int way = 0; way < 6; way++) {
            static const char *const formats[] = {"'csv', 'label': 'y'", "'jsonl', 'label': 'y'",
                                                  "'slots', 'label': 'y'"};
            static const char *const lines[][2] = {
                {"a,y\n", ",0\n"}, {"{\"a\": [", "], \"y\": 0}\n"}, {"y:0 a:", "\n"}};
            struct dataset d;
            snprintf(text, sizeof text, "%s%s%s", lines[way % 3][0], id, lines[way % 3][1]);
            file_write_text("rows", text);
            snprintf(source, sizeof source,
                     "{'format': %s, 'file': 'rows'}, 'columns': [%s], 'batch_size': 1",
                     formats[way % 3], kinds[way / 3]);
            source_open_ok(source, &d);
            assert_true(*(const int64_t *)d.columns[1].at == ids[i]);
            dataset_close(&d);
        }
        struct dataset d;
        if (strtoull(id, NULL, 10) == UINT64_MAX) continue; /* indices are from 1 */
        snprintf(text, sizeof text, "0 %llu:2\n", strtoull(id, NULL, 10) + 1);
        file_write_text("rows", text);
        source_open_ok(
            "{'format': 'libsvm', 'file': 'rows'}, 'columns': [{'column': 'ids', 'name': "
            "'features', 'weights': true}], 'batch_size': 1",
            &d);
        assert_true(*(const int64_t *)d.columns[1].at == ids[i]);
        dataset_close(&d);
        if (ids[i] < 1000) continue;
        assert_refused(
            "{'format': 'libsvm', 'file': 'rows'}, 'columns': [{'column': 'ids', 'name': "
            "'features', 'rows': 9007199254740992}], 'batch_size': 1",
            "an id from 0 to", NULL);
    }
    file_write_text("rows", "y:0 a:18446744073709551616\n");
    assert_refused(
        "{'format': 'slots', 'file': 'rows', 'label': 'y'}, 'columns': [{'column': 'ids', "
        "'name': 'a'}], 'batch_size': 1",
        "2^64 - 1", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_cells),
        cmocka_unit_test(lists_of_numbers_are_cells),
        cmocka_unit_test(whole_numbers_are_one_in_any_spelling),
        cmocka_unit_test(numbers_that_are_no_ids_are_words),
        cmocka_unit_test(what_is_no_row_is_named),
        cmocka_unit_test(what_holds_others_is_no_cell),
        cmocka_unit_test(lines_have_a_limit),
        cmocka_unit_test(no_cut_and_no_flipped_byte_crashes),
        cmocka_unit_test(slots_are_cells),
        cmocka_unit_test(what_is_no_slot_is_named),
        cmocka_unit_test(ids_have_64_bits_in_every_format),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
