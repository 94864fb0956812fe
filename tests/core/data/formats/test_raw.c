/* raw: numbers whose size must be exactly what shape and rows say. */
#include "tests/core/data/support.h"

#include <string.h>

#define SOURCE(more) "{'format': 'raw', 'file': 'x', 'labels': 'y'" more "}"

static const float floats[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
static const uint8_t byte_labels[] = {2, 0};
static const int32_t labels[] = {2, 0};

static int write_both(void **state)
{
    file_write("x", floats, sizeof floats);
    file_write("y", labels, sizeof labels);
    return 0;
}

static void assert_two_rows(const char *source)
{
    struct dataset d;
    source_open_ok(source, &d);
    const struct shape wanted = {.rank = 2, .dim = {2, 3}};
    assert_int_equal(d.rows, 2);
    assert_true(shape_equal(&d.columns[FEATURES].shape, &wanted));
    assert_int_equal(d.columns[FEATURES].dtype, FLOAT32);
    assert_memory_equal(d.columns[FEATURES].at, floats, sizeof floats);
    assert_int_equal(d.columns[LABELS].dtype, INT32);
    assert_memory_equal(d.columns[LABELS].at, labels, sizeof labels);
    dataset_close(&d);
}

static void plain_files_need_only_a_shape(void **state)
{
    assert_two_rows(SOURCE(", 'shape': [2, 3]"));
    assert_two_rows(SOURCE(", 'shape': [2, 3], 'rows': 2"));
    file_write("y", byte_labels, sizeof byte_labels);
    assert_two_rows(SOURCE(", 'shape': [2, 3], 'label_dtype': 'uint8'"));
}

static void gzip_files_need_the_number_of_rows(void **state)
{
    file_write_gzip("x", floats, sizeof floats);
    assert_refused(SOURCE(", 'shape': [2, 3]"), "say with \"rows\"", NULL);
    assert_two_rows(SOURCE(", 'shape': [2, 3], 'rows': 2"));
    file_write_gzip("y", labels, sizeof labels);
    assert_two_rows(SOURCE(", 'shape': [2, 3], 'rows': 2"));
    assert_refused(SOURCE(", 'shape': [2, 3], 'rows': 1"), "there is more", NULL);
    assert_refused(SOURCE(", 'shape': [2, 3], 'rows': 3"), "file ends after 48", NULL);
    assert_refused(SOURCE(", 'shape': [2, 3], 'rows': 1000000000"), "holds at most", NULL);
}

static void bytes_and_shaped_labels_are_kept_as_stored(void **state)
{
    struct dataset d;
    file_write("y", floats, 24);
    source_open_ok(SOURCE(", 'shape': 16, 'dtype': 'uint8', 'label_dtype': 'float32', "
                          "'label_shape': [2]"),
                   &d);
    assert_int_equal(d.rows, 3);
    assert_int_equal(d.columns[FEATURES].dtype, UINT8);
    assert_int_equal(d.columns[LABELS].dtype, FLOAT32);
    assert_int_equal(d.columns[LABELS].shape.rank, 1);
    assert_memory_equal(d.columns[FEATURES].at, floats, sizeof floats);
    assert_memory_equal(d.columns[LABELS].at, floats, 24);
    dataset_close(&d);
}

static void every_other_size_is_refused(void **state)
{
    for (size_t length = 0; length < sizeof floats; length++) {
        file_write("x", floats, length);
        assert_refused(SOURCE(", 'shape': [2, 3], 'rows': 2"), "x", NULL);
        if (length != sizeof floats / 2)
            assert_refused(SOURCE(", 'shape': [2, 3]"), "x", NULL);
        else
            assert_refused(SOURCE(", 'shape': [2, 3]"), "y", "offset 4", NULL);
    }
    file_write("x", floats, sizeof floats);
    assert_refused(SOURCE(", 'shape': [5]"), "rows of 20 bytes", "48 bytes", NULL);
    assert_refused(SOURCE(", 'shape': [2, 3], 'rows': 1"), "offset 24", "end of the file", NULL);
    for (size_t length = 0; length < sizeof labels; length++) {
        file_write("y", labels, length);
        assert_refused(SOURCE(", 'shape': [2, 3]"), "y", NULL);
    }
    file_write("y", floats, 12);
    assert_refused(SOURCE(", 'shape': [2, 3]"), "y", "offset 8", "end of the file", NULL);
}

static void shapes_beyond_all_memory_are_refused(void **state)
{
    assert_refused(SOURCE(", 'shape': [1099511627776, 1099511627776]"), "shape", NULL);
    assert_refused(SOURCE(", 'shape': [0]"), "shape", NULL);
    assert_refused(SOURCE(", 'shape': [1, 1, 1, 1, 1, 1]"), "shape", NULL);
    assert_refused(SOURCE(", 'shape': [1099511627776], 'rows': 1099511627776"), "x",
                   "more than memory", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(plain_files_need_only_a_shape, write_both),
        cmocka_unit_test_setup(gzip_files_need_the_number_of_rows, write_both),
        cmocka_unit_test_setup(bytes_and_shaped_labels_are_kept_as_stored, write_both),
        cmocka_unit_test_setup(every_other_size_is_refused, write_both),
        cmocka_unit_test_setup(shapes_beyond_all_memory_are_refused, write_both),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
