/* test_columns.c - models that read columns of a batch by name. */
#include "tests/graph/models.h"

#include <stdio.h>
#include <string.h>

static const float AGES[] = {1, 2, 3, 4, 5}, PAIRS[] = {10, 11, 20, 21, 30, 31, 40, 41, 50, 51};
static const struct column MORE[] = {
    {.name = "pairs", .shape = {1, {2}}, .at = PAIRS},
    {.name = "words", .dtype = INT64, .shape = {1, {1}}, .buckets = 9},
    {.name = "age", .shape = {1, {1}}, .at = AGES},
};
static const struct setting COLUMNS = {
    .batch = 5, .features = {1, {6}}, .training = true, .more = MORE, .more_count = 3};

/* "features" is one name among others, and need not be read. */
static void nodes_read_columns_by_name(void **state)
{
    struct device device = open_device();
    struct model m;
    model_open(&m, &device,
               "{\"model\": [{\"op\": \"concat\", \"inputs\": [\"age\", \"pairs\", \"age\"]}, "
               "{\"op\": \"dense\", \"units\": 1}]}",
               &COLUMNS);
    assert_int_equal(m.graph->input_count, 3); /* with the labels */
    for (int64_t rows = 5; rows >= 3; rows--) {
        model_forward(&m, rows, 0);
        const float *y = m.graph->nodes[0].output.value;
        for (int64_t i = 0; i < 5; i++) {
            const bool is_there = i < rows; /* those that are missing count as zeros */
            const float wanted[] = {AGES[i], PAIRS[2 * i], PAIRS[2 * i + 1], AGES[i]};
            for (int k = 0; k < 4; k++) assert_true(y[4 * i + k] == (is_there ? wanted[k] : 0));
        }
    }
    model_close(&m);
    device_close(&device);
}

/* Else the last batch of an evaluation would look up a row that no example names. */
static void rows_that_are_missing_name_no_id(void **state)
{
    static const int64_t words[] = {3, -1, 5, 6, 7, 8, 1, 2, 4, 0};
    const struct column column = {
        .name = "words", .dtype = INT64, .shape = {1, {2}}, .at = words, .buckets = 9};
    const struct setting setting = {
        .batch = 5, .features = {1, {6}}, .training = true, .more = &column, .more_count = 1};
    struct device device = open_device();
    struct model m;
    model_open(&m, &device,
               "{\"model\": [{\"op\": \"embedding\", \"inputs\": [\"words\"], \"dimension\": 4}, "
               "{\"op\": \"dense\", \"units\": 1}]}",
               &setting);
    for (int64_t rows = 5; rows >= 3; rows--) {
        model_forward(&m, rows, 0);
        int64_t got[10];
        device.kernels->download(&device, got, m.graph->nodes[0].input[0]->value, sizeof got);
        for (int64_t i = 0; i < 10; i++) assert_int_equal(got[i], i < 2 * rows ? words[i] : -1);
    }
    model_close(&m);
    device_close(&device);
}

static void columns_that_cannot_be_read_are_named(void **state)
{
    static const struct {
        const char *node, *text;
    } bad[] = {
        {"\"inputs\": [\"words\"]", "inputs: \"words\" are ids"},
        {"\"inputs\": [\"labels\"]", "inputs: no node is called \"labels\""},
        {"\"inputs\": [\"agr\"]", "did you mean \"age\"?"},
        {"\"name\": \"pairs\"", "\"pairs\" is what the data is called"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct model m;
        char text[256];
        snprintf(text, sizeof text, "{\"model\": [{\"op\": \"dense\", \"units\": 1, %s}]}",
                 bad[i].node);
        assert_int_equal(model_parse(&m, text, &COLUMNS), ERR_INPUT);
        assert_non_null(strstr(error_text(), bad[i].text));
        model_close(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_read_columns_by_name),
        cmocka_unit_test(rows_that_are_missing_name_no_id),
        cmocka_unit_test(columns_that_cannot_be_read_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
