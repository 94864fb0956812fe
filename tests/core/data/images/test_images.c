/* Images: what TensorFlow makes of the same files, and files that are cut, changed, or lie about
 * their size. */
#include "tests/core/data/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <zlib.h>

#include "core/base/random.h"
#include "core/data/images/image.h"

enum {
    FILE_MAX = 4 << 20,
    CHANGES = 4000,
    PNG_SIZE_AT = 16,
    PNG_HEAD_BYTES = 33,
    CHUNK_BESIDE = 12, /* its length, name and sum */
    NOTE_BYTES = 1 << 20,
    SCANS = 120,
};

static uint8_t file[FILE_MAX];

#define complain(...)                                                                              \
    do {                                                                                           \
        print_error(__VA_ARGS__);                                                                  \
        assert_true(false);                                                                        \
    } while (0)

static size_t load(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "images/%s", name);
    return fixture_load(path, file, sizeof file);
}

static json_t *told(void)
{
    json_t *json = json_load_file(FIXTURES "/images/images.json", 0, NULL);
    assert_non_null(json);
    return json;
}

static uint8_t byte_of(const char *hex)
{
    char text[3] = {hex[0], hex[1], 0};
    return (uint8_t)strtoul(text, NULL, 16);
}

static void assert_pixels(const char *name, const uint8_t *got, const char *hex, int most)
{
    for (size_t i = 0; i < strlen(hex) / 2; i++)
        if (abs(got[i] - byte_of(hex + 2 * i)) > most)
            complain("%s: byte %zu is %d, not %d", name, i, got[i], byte_of(hex + 2 * i));
}

static void files_of_each_kind_are_what_tensorflow_reads(void **state)
{
    json_t *json = told(), *of_name, *pixels;
    const char *name, *channels;
    json_object_foreach(json_object_get(json, "decoded"), name, of_name)
        json_object_foreach(of_name, channels, pixels)
    {
        struct picture p = {.channels = atoi(channels)};
        const size_t bytes = load(name);
        if (picture_decode(file, bytes, &p)) complain("%s: %s", name, error_text());
        assert_int_equal(p.y, json_integer_value(json_object_get(json, "y")));
        assert_int_equal(p.x, json_integer_value(json_object_get(json, "x")));
        assert_int_equal(p.y * p.x * p.channels * 2, strlen(json_string_value(pixels)));
        assert_pixels(name, p.at, json_string_value(pixels), 0);
        picture_free(&p);
    }
    json_decref(json);
}

/* Where TensorFlow's number is the middle of two, it may be rounded to either. */
static void other_sizes_are_what_tensorflow_makes_of_them(void **state)
{
    json_t *json = told(), *size;
    size_t i;
    struct picture p = {.channels = 3};
    const size_t bytes = load("rgb.png");
    assert_int_equal(picture_decode(file, bytes, &p), OK);
    json_array_foreach(json_object_get(json, "resized"), i, size)
    {
        uint8_t got[4096];
        const char *how = json_string_value(json_object_get(size, "how"));
        const int64_t y = json_integer_value(json_object_get(size, "y"));
        const int64_t x = json_integer_value(json_object_get(size, "x"));
        assert_true(y * x * 3 <= (int64_t)sizeof got);
        picture_resize(&p, strcmp(how, "crop") ? FIT_STRETCH : FIT_CROP, y, x, got);
        assert_pixels(how, got, json_string_value(json_object_get(size, "pixels")), 1);
    }
    picture_free(&p);
    json_decref(json);
}

static const char *const kinds[] = {
    "rgb.jpg",     "progressive.jpg", "inks.jpg", "grey.jpg", "rgb.png",
    "palette.png", "alpha.png",       "bits.png", "deep.png", NULL};

static err decode(const uint8_t *bytes, size_t count, int channels)
{
    struct picture p = {.channels = channels};
    uint8_t *exact = malloc(count + 1); /* so that a read beyond its end is seen */
    assert_non_null(exact);
    memcpy(exact, bytes, count);
    const err e = picture_decode(exact, count, &p);
    if (!e) picture_free(&p);
    free(exact);
    return e;
}

static void files_that_are_cut_are_refused(void **state)
{
    for (int i = 0; kinds[i]; i++) {
        const size_t bytes = load(kinds[i]);
        assert_int_equal(decode(file, bytes, 3), OK);
        for (size_t count = 0; count < bytes; count++)
            if (decode(file, count, 3) != ERR_INPUT)
                complain("%s: %zu of its %zu bytes are read", kinds[i], count, bytes);
    }
}

/* Some changes are of a pixel's value only. */
static void files_that_are_changed_break_nothing(void **state)
{
    uint64_t draw = 7;
    for (int i = 0; kinds[i]; i++) {
        const size_t bytes = load(kinds[i]);
        for (int k = 0; k < CHANGES; k++) {
            const uint64_t drawn = random_u64(draw, (uint64_t)(i * CHANGES + k));
            const size_t at = drawn % bytes, length = 1 + drawn / bytes % 3;
            uint8_t before[3];
            memcpy(before, file + at, sizeof before);
            for (size_t b = 0; b < length; b++) file[at + b] = (uint8_t)(drawn >> (24 + 8 * b));
            const err e = decode(file, bytes, 1 + 2 * (k % 2));
            assert_true(e == OK || e == ERR_INPUT || e == ERR_MEMORY);
            memcpy(file + at, before, sizeof before);
        }
    }
}

static void assert_refused_as(size_t bytes, const char *words)
{
    assert_int_equal(decode(file, bytes, 3), ERR_INPUT);
    if (!strstr(error_text(), words)) complain("\"%s\" lacks \"%s\"", error_text(), words);
}

static size_t find(size_t bytes, uint8_t marker)
{
    size_t at = 0;
    while (at + 1 < bytes && !(file[at] == 0xff && file[at + 1] == marker)) at++;
    return at;
}

/* The heads say 65,535 x 65,535 and 32,000 x 32,000. */
static void sizes_that_nobody_has_take_no_memory(void **state)
{
    size_t bytes = load("rgb.jpg");
    memset(file + find(bytes, 0xc0) + 5, 0xff, 4);
    assert_refused_as(bytes, "JPEG: ");
    bytes = load("rgb.jpg");
    const uint8_t large[] = {0x7d, 0x00, 0x7d, 0x00};
    memcpy(file + find(bytes, 0xc0) + 5, large, sizeof large);
    assert_refused_as(bytes, "JPEG: 32000 x 32000 pixels");
    bytes = load("rgb.png");
    memset(file + PNG_SIZE_AT, 0x7f, 4);
    assert_refused_as(bytes, "PNG: ");
}

/* Whether the library could read them depends on how it was built. */
static void arithmetic_coding_is_refused_by_its_name(void **state)
{
    static const uint8_t plain[] = {0xc0, 0xc9}, progressive[] = {0xc2, 0xca};
    size_t bytes = load("rgb.jpg");
    file[find(bytes, plain[0]) + 1] = plain[1];
    assert_refused_as(bytes, "JPEG: its numbers are packed by arithmetic coding");
    bytes = load("progressive.jpg");
    file[find(bytes, progressive[0]) + 1] = progressive[1];
    assert_refused_as(bytes, "JPEG: its numbers are packed by arithmetic coding");
}

/* Each pass over a large image takes as long as all of it. */
static void scans_without_end_are_refused(void **state)
{
    const size_t bytes = load("progressive.jpg");
    const size_t scan = find(bytes, 0xda);
    size_t behind = scan + 2;
    while (file[behind] != 0xff || file[behind + 1] == 0) behind++;
    const size_t length = behind - scan, more = SCANS * length;
    memmove(file + behind + more, file + behind, bytes - behind);
    for (size_t at = 0; at < more; at += length) memcpy(file + behind + at, file + scan, length);
    assert_refused_as(bytes + more, "more than 100 scans");
}

/* As of a client's request, whose bytes say how many pixels its images may have. */
static err decode_of(size_t bytes, int64_t *left)
{
    struct picture p = {.channels = 3, .left = left};
    const err e = picture_decode(file, bytes, &p);
    if (!e) picture_free(&p);
    return e;
}

static void a_stranger_s_images_have_so_many_pixels_each_pass_counted(void **state)
{
    for (int i = 0; kinds[i]; i++) {
        const size_t bytes = load(kinds[i]);
        struct picture p = {.channels = 3};
        int64_t left = INT64_MAX;
        assert_int_equal(picture_decode(file, bytes, &p), OK);
        const int64_t pixels = p.y * p.x;
        picture_free(&p);
        assert_int_equal(decode_of(bytes, &left), OK);
        const int64_t taken = INT64_MAX - left;
        assert_int_equal(taken % pixels, 0);
        assert_true(strcmp(kinds[i], "progressive.jpg") ? taken == pixels : taken > 2 * pixels);
        left = taken;
        assert_int_equal(decode_of(bytes, &left), OK);
        assert_int_equal(left, 0);
        assert_int_equal(decode_of(bytes, &left), ERR_INPUT);
        assert_non_null(strstr(error_text(), "pixels, where 0 are left"));
        left = taken - 1;
        assert_int_equal(decode_of(bytes, &left), ERR_INPUT);
    }
}

static void put_u32(uint8_t *to, size_t number)
{
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(number >> (24 - 8 * i));
}

/* Behind the head of a PNG. Returns how long the file is then. */
static size_t add_note(size_t bytes, size_t length)
{
    uint8_t *chunk = file + PNG_HEAD_BYTES;
    memmove(chunk + CHUNK_BESIDE + length, chunk, bytes - PNG_HEAD_BYTES);
    put_u32(chunk, length);
    memcpy(chunk + 4, "tEXt", 4);
    memset(chunk + 8, 'n', length);
    chunk[8 + length / 2] = 0;
    put_u32(chunk + 8 + length, crc32(0, chunk + 4, (uInt)(4 + length)));
    return bytes + CHUNK_BESIDE + length;
}

/* Programs write into a file how its image was made, which may be longer than the image. */
static void notes_beside_the_pixels_do_not_count(void **state)
{
    size_t bytes = load("rgb.png");
    bytes = add_note(bytes, 2 * NOTE_BYTES);
    for (int i = 0; i < SCANS; i++) bytes = add_note(bytes, 80);
    if (decode(file, bytes, 3)) complain("%s", error_text());
}

static void what_is_no_image_is_said(void **state)
{
    memcpy(file, "GIF89a", 6);
    assert_refused_as(6, "expected a JPEG or PNG file, got 6 bytes of something else");
    const size_t bytes = load("inks.jpg");
    assert_int_equal(decode(file, bytes, 1), ERR_INPUT);
    assert_non_null(strstr(error_text(), "no one channel that is grey"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_of_each_kind_are_what_tensorflow_reads),
        cmocka_unit_test(other_sizes_are_what_tensorflow_makes_of_them),
        cmocka_unit_test(files_that_are_cut_are_refused),
        cmocka_unit_test(files_that_are_changed_break_nothing),
        cmocka_unit_test(sizes_that_nobody_has_take_no_memory),
        cmocka_unit_test(arithmetic_coding_is_refused_by_its_name),
        cmocka_unit_test(scans_without_end_are_refused),
        cmocka_unit_test(a_stranger_s_images_have_so_many_pixels_each_pass_counted),
        cmocka_unit_test(notes_beside_the_pixels_do_not_count),
        cmocka_unit_test(what_is_no_image_is_said),
    };
    if (!picture_jpeg.decode || !picture_png.decode) return 77; /* skipped: built without */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
