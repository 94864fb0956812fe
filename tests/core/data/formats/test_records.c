/* records: bytes of labels before bytes of images, channels first or last, loaded or read row by
 * row */
#include "tests/core/data/support.h"

#include <string.h>

#define SOURCE(more) "{'format': 'records', 'file': 'x'" more "}"

/* Two rows of images of 1 x 2 pixels with 3 channels, before each two bytes */
static const uint8_t rows[] = {7, 1, 10, 11, 20, 21, 30, 31, 8, 2, 12, 13, 22, 23, 32, 33};
static const uint8_t turned[] = {10, 20, 30, 11, 21, 31, 12, 22, 32, 13, 23, 33};
static const uint8_t plain[] = {10, 11, 20, 21, 30, 31, 12, 13, 22, 23, 32, 33};

static int write_rows(void **state)
{
    file_write("x", rows, sizeof rows);
    return 0;
}

static void assert_rows(const char *source, const uint8_t *images, const int32_t labels[2])
{
    struct dataset d;
    source_open_ok(source, &d);
    const struct shape wanted = {.rank = 3, .dim = {1, 2, 3}};
    assert_int_equal(d.rows, 2);
    assert_true(shape_equal(&d.columns[FEATURES].shape, &wanted));
    assert_int_equal(d.columns[FEATURES].dtype, UINT8);
    assert_memory_equal(d.columns[FEATURES].at, images, sizeof plain);
    assert_int_equal(d.columns[LABELS].dtype, INT32);
    assert_memory_equal(d.columns[LABELS].at, labels, 2 * sizeof *labels);
    dataset_close(&d);
}

static void labels_and_channels_are_where_they_are_said_to_be(void **state)
{
    static const int32_t coarse[] = {7, 8}, fine[] = {1, 2};
    assert_rows(SOURCE(", 'shape': [1, 2, 3], 'label_bytes': 2"), turned, coarse);
    assert_rows(SOURCE(", 'shape': [1, 2, 3], 'label_bytes': 2, 'label_at': 1"), turned, fine);
    assert_rows(SOURCE(", 'shape': [1, 2, 3], 'label_bytes': 2, 'channels_first': false"), plain,
                coarse);
    file_write_gzip("x", rows, sizeof rows);
    assert_refused(SOURCE(", 'shape': [1, 2, 3], 'label_bytes': 2"), "say with \"rows\"", NULL);
    assert_rows(SOURCE(", 'shape': [1, 2, 3], 'label_bytes': 2, 'rows': 2"), turned, coarse);
}

static void what_does_not_fit_is_refused(void **state)
{
    assert_refused(SOURCE(", 'shape': [1, 2, 3]"), "records of 7 bytes", "16 bytes", NULL);
    assert_refused(SOURCE(", 'shape': [1, 2, 3], 'label_at': 1"), "label_at", NULL);
    assert_refused(SOURCE(", 'shape': [7]"), "channels_first", NULL);
    assert_refused(SOURCE(", 'shape': [1, 2, 3], 'label_bytes': 2, 'rows': 1"), "x", NULL);
    assert_refused(SOURCE(", 'shape': [1, 2, 3], 'label_bytes': 2, 'rows': 3"), "x", NULL);
    assert_refused(SOURCE(", 'shape': [1073741824, 1073741824, 1073741824]"), "shape", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(labels_and_channels_are_where_they_are_said_to_be, write_rows),
        cmocka_unit_test_setup(what_does_not_fit_is_refused, write_rows),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
