/* criteo: cells with names that the file does not have. */
#include "tests/core/data/support.h"

#include <stdio.h>
#include <string.h>

#include "core/base/fingerprint.h"
#include "core/data/columns/column.h"

#define SOURCE                                                                                     \
    "{'format': 'criteo', 'file': 'rows'}, 'columns': ["                                           \
    "{'column': 'numeric', 'name': 'I1', 'min': 0, 'log1p': true, 'default': 7},"                  \
    "{'column': 'numeric', 'name': 'I13', 'default': -1},"                                         \
    "{'column': 'hash', 'name': 'C1', 'buckets': 1000},"                                           \
    "{'column': 'hash', 'name': 'C26', 'buckets': 1000}], 'batch_size': 1"
#define ELEVEN "\t\t\t\t\t\t\t\t\t\t\t"
#define ROW(i1, i13, c1, c26) i1 "\t" ELEVEN i13 "\t" c1 "\t" ELEVEN ELEVEN "\t\t" c26 "\n"

static int64_t bucket(const char *word)
{
    return (int64_t)(fingerprint(word, strlen(word)) % 1000);
}

static void assert_rows(const struct dataset *d)
{
    assert_int_equal(d->rows, 2);
    assert_memory_equal(d->columns[1].at, ((float[]){0, 2.07944155f}), 8);
    assert_memory_equal(d->columns[2].at, ((float[]){3, -1}), 8);
    assert_memory_equal(d->columns[3].at, ((int64_t[]){bucket("68fd1e64"), NO_ID}), 16);
    assert_memory_equal(d->columns[4].at, ((int64_t[]){NO_ID, bucket("0a")}), 16);
}

static void cells_have_the_names_of_criteo(void **state)
{
    struct dataset d;
    file_write_text("rows", "1\t" ROW("-2", "3", "68fd1e64", "") "0\t" ROW("", "", "", "0a"));
    source_open_ok(SOURCE, &d);
    assert_rows(&d);
    assert_memory_equal(d.columns[LABELS].at, ((int32_t[]){1, 0}), 8);
    assert_non_null(strstr(d.use, "I1 1, I13 1, C1 1, C26 1"));
    dataset_close(&d);
}

static void rows_to_predict_may_have_no_label(void **state)
{
    struct dataset d;
    file_write_text("rows", ROW("-2", "3", "68fd1e64", "") ROW("", "", "", "0a"));
    assert_int_equal(source_open_to_predict(SOURCE, &d), OK);
    assert_rows(&d);
    dataset_close(&d);
    assert_refused(SOURCE, "rows: line 1: expected 40 cells", "got 39", NULL);
    assert_refused("{'format': 'criteo', 'file': 'rows'}", "data.columns", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_have_the_names_of_criteo),
        cmocka_unit_test(rows_to_predict_may_have_no_label),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
