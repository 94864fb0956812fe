/* idx files: what is read, and that no damaged file is taken for a whole one. */
#include "tests/core/data/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { ROWS = 3, HEIGHT = 4, WIDTH = 5, HEADER = 16, IMAGES = HEADER + ROWS * HEIGHT * WIDTH };
static const char source[] = "{'format': 'idx', 'features': 'images', 'labels': 'labels'}";

static uint8_t images[IMAGES] = {0, 0, 8, 3, 0, 0, 0, ROWS, 0, 0, 0, HEIGHT, 0, 0, 0, WIDTH};
static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, ROWS, 7, 0, 255};

static int make(void **state)
{
    for (int i = HEADER; i < IMAGES; i++) images[i] = (uint8_t)(37 * i);
    return folder_make(state);
}

static int write_both(void **state)
{
    file_write("images", images, sizeof images);
    file_write("labels", labels, sizeof labels);
    return 0;
}

static void assert_whole(const struct dataset *d)
{
    const struct shape wanted = {.rank = 3, .dim = {HEIGHT, WIDTH, 1}};
    assert_int_equal(d->rows, ROWS);
    assert_true(shape_equal(&d->columns[FEATURES].shape, &wanted));
    assert_int_equal(d->columns[FEATURES].dtype, UINT8);
    assert_memory_equal(d->columns[FEATURES].at, images + HEADER, IMAGES - HEADER);
    assert_int_equal(d->columns[LABELS].dtype, INT32);
    assert_int_equal(d->columns[LABELS].shape.rank, 0);
    assert_memory_equal(d->columns[LABELS].at, ((int32_t[]){7, 0, 255}), 12);
}

static void images_get_a_channel_and_byte_labels_become_integers(void **state)
{
    struct dataset d;
    source_open_ok(source, &d);
    assert_whole(&d);
    assert_non_null(strstr(d.name, "images"));
    dataset_close(&d);
    assert_null(d.columns);
    dataset_close(&d);
}

static void gzip_is_recognised_by_content_and_members_may_follow_each_other(void **state)
{
    uint8_t packed[1024];
    size_t first = gzip_pack(images, 30, packed, sizeof packed);
    size_t second = gzip_pack(images + 30, IMAGES - 30, packed + first, sizeof packed - first);
    file_write("images", packed, first + second);
    file_write_gzip("labels", labels, sizeof labels);
    struct dataset d;
    source_open_ok(source, &d);
    assert_whole(&d);
    dataset_close(&d);
}

static void floats_and_words_are_big_endian(void **state)
{
    const uint8_t floats[] = {0, 0, 13, 2, 0, 0, 0, 1, 0, 0, 0, 2, 63, 192, 0, 0, 192, 0, 0, 0};
    const uint8_t words[] = {0, 0, 12, 1, 0, 0, 0, 1, 0, 1, 0, 2};
    file_write("images", floats, sizeof floats);
    file_write("labels", words, sizeof words);
    struct dataset d;
    source_open_ok(source, &d);
    assert_int_equal(d.columns[FEATURES].dtype, FLOAT32);
    assert_int_equal(d.columns[FEATURES].shape.rank, 1);
    assert_memory_equal(d.columns[FEATURES].at, ((float[]){1.5f, -2}), 8);
    assert_int_equal(*(const int32_t *)d.columns[LABELS].at, 0x10002);
    dataset_close(&d);
}

static void float_labels_of_any_shape_stay_floats(void **state)
{
    uint8_t floats[12 + ROWS * 8] = {0, 0, 13, 2, 0, 0, 0, ROWS, 0, 0, 0, 2, 63, 128};
    file_write("labels", floats, sizeof floats);
    struct dataset d;
    source_open_ok(source, &d);
    assert_int_equal(d.columns[LABELS].dtype, FLOAT32);
    assert_int_equal(d.columns[LABELS].shape.rank, 1);
    assert_int_equal(d.columns[LABELS].shape.dim[0], 2);
    assert_memory_equal(d.columns[LABELS].at, ((float[]){1, 0}), 8);
    dataset_close(&d);
}

static void every_cut_of_either_file_is_refused(void **state)
{
    for (size_t length = 0; length < sizeof images; length++) {
        file_write("images", images, length);
        assert_refused(source, "images", length == 0 ? "empty" : "offset", NULL);
    }
    file_write("images", images, sizeof images);
    for (size_t length = 0; length < sizeof labels; length++) {
        file_write("labels", labels, length);
        assert_refused(source, "labels", length == 0 ? "empty" : "offset", NULL);
    }
}

static void every_cut_of_a_gzip_file_is_refused(void **state)
{
    uint8_t packed[1024];
    size_t count = gzip_pack(images, sizeof images, packed, sizeof packed);
    for (size_t length = 1; length < count; length++) {
        file_write("images", packed, length);
        assert_refused(source, "images", NULL);
    }
}

static void every_flipped_bit_of_a_header_is_refused(void **state)
{
    for (int bit = 0; bit < HEADER * 8; bit++) {
        images[bit / 8] ^= (uint8_t)(1 << bit % 8);
        file_write("images", images, sizeof images);
        images[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_refused(source, "offset", NULL);
    }
    file_write("images", images, sizeof images);
    for (int bit = 0; bit < 8 * 8; bit++) {
        uint8_t flipped[sizeof labels];
        memcpy(flipped, labels, sizeof labels);
        flipped[bit / 8] ^= (uint8_t)(1 << bit % 8);
        file_write("labels", flipped, sizeof labels);
        assert_refused(source, "labels", "offset", NULL);
    }
}

static void a_flipped_byte_of_a_gzip_file_is_refused_or_changes_nothing(void **state)
{
    uint8_t packed[1024];
    int refused = 0;
    size_t count = gzip_pack(images, sizeof images, packed, sizeof packed);
    for (size_t i = 0; i < count; i++) {
        for (int flip = 1; flip < 256; flip += 127) {
            struct dataset d = {0};
            packed[i] ^= (uint8_t)flip;
            file_write("images", packed, count);
            packed[i] ^= (uint8_t)flip;
            err e = source_open(source, &d);
            if (!e)
                assert_whole(&d);
            else
                assert_int_equal(e, ERR_INPUT);
            refused += e != OK;
            dataset_close(&d);
        }
    }
    assert_true(refused > (int)count); /* all of the data and the sums: most of the file */
}

static void what_follows_the_last_element_is_refused(void **state)
{
    uint8_t longer[IMAGES + 1];
    memcpy(longer, images, IMAGES);
    longer[IMAGES] = 0;
    file_write("images", longer, sizeof longer);
    assert_refused(source, "images", "offset 76", "end of the file", NULL);
    file_write_gzip("images", longer, sizeof longer);
    assert_refused(source, "images", "offset 76", "end of the file", NULL);
}

static void what_follows_a_gzip_member_is_refused(void **state)
{
    uint8_t packed[1024];
    size_t count = gzip_pack(images, sizeof images, packed, sizeof packed - 9);
    memcpy(packed + count, "trailing", 9);
    file_write("images", packed, count + 9);
    assert_refused(source, "images", "gzip data", NULL);
}

static void a_bomb_is_not_unpacked_beyond_what_its_header_says(void **state)
{
    size_t bytes = 16 << 20;
    uint8_t *zeros = calloc(1, bytes);
    assert_non_null(zeros);
    memcpy(zeros, images, HEADER);
    file_write_gzip("images", zeros, bytes);
    free(zeros);
    assert_refused(source, "offset 76", "there is more", NULL);
}

static void a_header_that_promises_more_than_the_file_can_hold_is_refused(void **state)
{
    uint8_t huge[64] = {0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    file_write("images", huge, sizeof huge);
    assert_refused(source, "images", NULL);
    file_write_gzip("images", huge, sizeof huge);
    assert_refused(source, "images", NULL);
    memcpy(huge, (uint8_t[]){0, 0, 8, 3, 0, 16, 0, 0, 0, 0, 4, 0, 0, 0, 4, 0}, 16);
    file_write_gzip("images", huge, sizeof huge);
    assert_refused(source, "offset 16", "holds at most", NULL);
}

static void counts_that_differ_are_refused_with_both_of_them(void **state)
{
    const uint8_t two[] = {0, 0, 8, 1, 0, 0, 0, 2, 7, 0};
    file_write("labels", two, sizeof two);
    assert_refused(source, "labels", "expected 3 labels", "got 2", NULL);
}

static void wrong_kinds_of_elements_are_named(void **state)
{
    const uint8_t doubles[] = {0, 0, 14, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0};
    const uint8_t words[] = {0, 0, 12, 1, 0, 0, 0, 1, 0, 0, 0, 0};
    file_write("images", doubles, sizeof doubles);
    assert_refused(source, "offset 2", "got 0e", NULL);
    file_write("images", words, sizeof words);
    assert_refused(source, "offset 2", "not int32", NULL);
    file_write_text("images", "PNG, or whatever else people have");
    assert_refused(source, "offset 0", "expected an idx file", "50 4e 47", NULL);
}

static void what_is_no_file_is_refused_without_waiting(void **state)
{
    assert_refused("{'format': 'idx', 'features': 'none', 'labels': 'labels'}", "none",
                   "No such file", NULL);
    assert_refused("{'format': 'idx', 'features': '.', 'labels': 'labels'}", "folder", NULL);
    assert_refused("{'format': 'idx', 'features': 'images/x', 'labels': 'labels'}", "images/x",
                   NULL);
    assert_refused("{'format': 'idx', 'features': '/dev/zero', 'labels': 'labels'}", "device",
                   NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(images_get_a_channel_and_byte_labels_become_integers, write_both),
        cmocka_unit_test_setup(gzip_is_recognised_by_content_and_members_may_follow_each_other,
                               write_both),
        cmocka_unit_test_setup(floats_and_words_are_big_endian, write_both),
        cmocka_unit_test_setup(float_labels_of_any_shape_stay_floats, write_both),
        cmocka_unit_test_setup(every_cut_of_either_file_is_refused, write_both),
        cmocka_unit_test_setup(every_cut_of_a_gzip_file_is_refused, write_both),
        cmocka_unit_test_setup(every_flipped_bit_of_a_header_is_refused, write_both),
        cmocka_unit_test_setup(a_flipped_byte_of_a_gzip_file_is_refused_or_changes_nothing,
                               write_both),
        cmocka_unit_test_setup(what_follows_the_last_element_is_refused, write_both),
        cmocka_unit_test_setup(what_follows_a_gzip_member_is_refused, write_both),
        cmocka_unit_test_setup(a_bomb_is_not_unpacked_beyond_what_its_header_says, write_both),
        cmocka_unit_test_setup(a_header_that_promises_more_than_the_file_can_hold_is_refused,
                               write_both),
        cmocka_unit_test_setup(counts_that_differ_are_refused_with_both_of_them, write_both),
        cmocka_unit_test_setup(wrong_kinds_of_elements_are_named, write_both),
        cmocka_unit_test_setup(what_is_no_file_is_refused_without_waiting, write_both),
    };
    return cmocka_run_group_tests(tests, make, folder_remove);
}
