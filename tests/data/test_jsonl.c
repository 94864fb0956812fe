/* jsonl: members as cells, and lines that are none. */
#include "tests/data/support.h"

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
        {"{'x': 1e60, 'y': 0}", "rows: line 2: \"x\": 1e+60 is too large"},
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
    write_lines("{'x': 1, 'y': 0, 'user': {'id': 7}}\n");
    assert_refused(SOURCE("", X), "\"user\"", "got an object", NULL);
    struct dataset d;
    source_open_ok(SOURCE(", 'names': ['x']", X), &d);
    dataset_close(&d);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_cells),
        cmocka_unit_test(lists_of_numbers_are_cells),
        cmocka_unit_test(what_is_no_row_is_named),
        cmocka_unit_test(lines_have_a_limit),
        cmocka_unit_test(no_cut_and_no_flipped_byte_crashes),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
