/* The published data sets, byte for byte; skipped where they are absent. */
#include "tests/core/data/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { PATH_BYTES_MAX = 600, CLASSES = 10 };

struct published {
    const char *name, *split;
    int64_t rows;
    uint32_t pixels_sum; /* CRC-32 of all pixels */
    int count[CLASSES];  /* images per class */
    int32_t first[5];    /* labels */
};

static const struct published mnist_train = {
    "mnist",
    "train",
    60000,
    0xf3639b56,
    {5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949},
    {5, 0, 4, 1, 9}};
static const struct published mnist_test = {"mnist",
                                            "t10k",
                                            10000,
                                            0xe4ca5f57,
                                            {980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009},
                                            {7, 2, 1, 0, 4}};
static const struct published fashion_test = {
    "fashion-mnist",
    "t10k",
    10000,
    0x12728439,
    {1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000},
    {9, 2, 1, 1, 6}};

static void path_of(const char *file, char path[PATH_BYTES_MAX])
{
    const char *folder = getenv("DTRAIN_DATA");
    snprintf(path, PATH_BYTES_MAX, "%s/%s", folder && *folder ? folder : DATA_FOLDER, file);
    if (access(path, R_OK)) skip();
}

static void assert_as_published(const struct published *p)
{
    char file[128], images[PATH_BYTES_MAX], labels[PATH_BYTES_MAX], source[4 * PATH_BYTES_MAX];
    snprintf(file, sizeof file, "%s/%s-images-idx3-ubyte.gz", p->name, p->split);
    path_of(file, images);
    snprintf(file, sizeof file, "%s/%s-labels-idx1-ubyte.gz", p->name, p->split);
    path_of(file, labels);
    snprintf(source, sizeof source, "{'format': 'idx', 'features': '%s', 'labels': '%s'}", images,
             labels);
    struct dataset d;
    source_open_ok(source, &d);
    const struct shape wanted = {.rank = 3, .dim = {28, 28, 1}};
    assert_int_equal(d.rows, p->rows);
    assert_true(shape_equal(&d.columns[FEATURES].shape, &wanted));
    assert_int_equal(crc32(0, d.columns[FEATURES].at, (uInt)(d.rows * 784)), p->pixels_sum);
    int count[CLASSES] = {0};
    for (int64_t i = 0; i < d.rows; i++) count[((const int32_t *)d.columns[LABELS].at)[i]]++;
    assert_memory_equal(count, p->count, sizeof count);
    assert_memory_equal(d.columns[LABELS].at, p->first, sizeof p->first);
    dataset_close(&d);
}

static void mnist_is_read_as_published(void **state)
{
    assert_as_published(&mnist_train);
    assert_as_published(&mnist_test);
}

static void fashion_mnist_is_read_as_published(void **state)
{
    assert_as_published(&fashion_test);
}

/* Numeric columns only; the label is education_num, so that no text is needed. */
static void the_numbers_of_adult_are_read(void **state)
{
    char path[PATH_BYTES_MAX], source[2 * PATH_BYTES_MAX];
    path_of("adult/adult.data", path);
    snprintf(source, sizeof source,
             "{'format': 'csv', 'file': '%s', 'header': false, 'label': 4,"
             " 'except': [1, 3, 5, 6, 7, 8, 9, 13, 14]}",
             path);
    struct dataset d;
    source_open_ok(source, &d);
    assert_int_equal(d.rows, 32561);
    assert_int_equal(d.columns[FEATURES].shape.dim[0], 5);
    assert_memory_equal(d.columns[FEATURES].at, ((float[]){39, 77516, 2174, 0, 40}), 20);
    assert_int_equal(((const int32_t *)d.columns[LABELS].at)[0], 13);
    dataset_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mnist_is_read_as_published),
        cmocka_unit_test(fashion_mnist_is_read_as_published),
        cmocka_unit_test(the_numbers_of_adult_are_read),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
