/* tfrecord: what TensorFlow wrote, features that are not there, and files that are broken. */
#include "tests/core/data/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/crc32c.h"
#include "core/base/fingerprint.h"
#include "core/base/proto.h"
#include "core/data/columns/column.h"

#define SOURCE(more, columns)                                                                      \
    "{'format': 'tfrecord', 'file': 'rows', 'label': 'label'" more "}, 'columns': [" columns       \
    "], 'batch_size': 1"

#define ALL                                                                                        \
    "{'column': 'numeric', 'name': 'dense', 'max': 3},"                                            \
    "{'column': 'identity', 'name': 'ids', 'buckets': 2000000000000, 'max': 8},"                   \
    "{'column': 'hash', 'name': 'name', 'buckets': 1000}"

static uint8_t file[1 << 20];

static size_t load(const char *name)
{
    return fixture_load(name, file, sizeof file);
}

static const void *column(const struct dataset *d, const char *name)
{
    const int i = column_find(d->columns, d->column_count, name);
    assert_true(i >= 0);
    return d->columns[i].at;
}

static void assert_row(const struct dataset *d, int64_t i, const json_t *row)
{
    const float *dense = (const float *)column(d, "dense") + 3 * i;
    const int64_t *ids = (const int64_t *)column(d, "ids") + 8 * i;
    const json_t *wanted = json_object_get(row, "ids");
    assert_int_equal(((const int32_t *)d->columns[LABELS].at)[i],
                     json_integer_value(json_object_get(row, "label")));
    const char *name = json_string_value(json_array_get(json_object_get(row, "name"), 0));
    assert_int_equal(((const int64_t *)column(d, "name"))[i],
                     fingerprint(name, strlen(name)) % 1000);
    for (size_t k = 0; k < 3; k++)
        assert_true(dense[k] ==
                    (float)json_number_value(json_array_get(json_object_get(row, "dense"), k)));
    for (size_t k = 0; k < 8; k++)
        assert_int_equal(ids[k], k < json_array_size(wanted)
                                     ? json_integer_value(json_array_get(wanted, k))
                                     : NO_ID);
}

static void files_of_tensorflow_are_read(void **state)
{
    static const char *const names[] = {"examples.tfrecord", "examples.tfrecord.gz",
                                        "examples.tfrecord.zlib"};
    json_t *root = json_load_file(FIXTURES "/examples.json", 0, NULL);
    const json_t *rows = json_object_get(root, "rows");
    assert_int_equal(json_array_size(rows), 20);
    for (int n = 0; n < 3; n++) {
        struct dataset d;
        file_write("rows", file, load(names[n]));
        source_open_ok(SOURCE("", ALL), &d);
        assert_int_equal(d.rows, 20);
        for (int64_t i = 0; i < 20; i++) assert_row(&d, i, json_array_get(rows, (size_t)i));
        assert_non_null(strstr(d.use, "rows without a value: ids "));
        dataset_close(&d);
    }
    json_decref(root);
}

/* ---- records of our own ---- */

static struct buffer records;

static void begin_records(void)
{
    buffer_clear(&records);
}

static void put_record(const void *bytes, size_t count)
{
    struct buffer head = {0};
    buffer_fixed64(&head, count);
    buffer_put(&records, head.at, 8);
    buffer_fixed32(&records, crc32c_mask(crc32c(head.at, 8)));
    buffer_put(&records, bytes, count);
    buffer_fixed32(&records, crc32c_mask(crc32c(bytes, count)));
    buffer_drop(&head);
}

static void write_records(void)
{
    file_write("rows", records.at, records.used);
}

enum { BYTES_LIST = 1, FLOAT_LIST, INT64_LIST };

/* One feature of one value, not packed */
static void put_feature(struct buffer *b, const char *name, int list, const char *text)
{
    const size_t entry = proto_open(b, 1);
    proto_string(b, 1, name);
    const size_t feature = proto_open(b, 2), values = proto_open(b, list);
    if (list == BYTES_LIST) proto_bytes(b, 1, text, strlen(text));
    if (list == FLOAT_LIST) proto_float(b, 1, strtof(text, NULL));
    if (list == INT64_LIST) proto_varint(b, 1, (uint64_t)strtoll(text, NULL, 10));
    proto_close(b, values);
    proto_close(b, feature);
    proto_close(b, entry);
}

struct feature {
    const char *name;
    int list;
    const char *text;
};

static void put_example(const struct feature *features) /* ends with a name of NULL */
{
    struct buffer b = {0};
    const size_t all = proto_open(&b, 1);
    for (; features->name; features++)
        put_feature(&b, features->name, features->list, features->text);
    proto_close(&b, all);
    put_record(b.at, b.used);
    buffer_drop(&b);
}
#define EXAMPLE(...) put_example((const struct feature[]){__VA_ARGS__ __VA_OPT__(, ){0}})
#define LABEL                                                                                      \
    {                                                                                              \
        "label", INT64_LIST, "1"                                                                   \
    }

#define X_AND_WORD                                                                                 \
    "{'column': 'numeric', 'name': 'x', 'default': -1},"                                           \
    "{'column': 'vocabulary', 'name': 'word', 'words': ['a b', '7']}"

static void assert_x_and_word(const char *source, int64_t rows, const float *x, const int64_t *word)
{
    struct dataset d;
    source_open_ok(source, &d);
    assert_int_equal(d.rows, rows);
    assert_memory_equal(column(&d, "x"), x, (size_t)rows * sizeof *x);
    assert_memory_equal(column(&d, "word"), word, (size_t)rows * sizeof *word);
    dataset_close(&d);
}

static void a_feature_may_be_missing_and_of_any_list(void **state)
{
    begin_records();
    EXAMPLE(LABEL, {"x", FLOAT_LIST, "0.5"});
    EXAMPLE({"word", BYTES_LIST, "a b"}, LABEL, {"unread", BYTES_LIST, "z"});
    EXAMPLE(LABEL, {"x", INT64_LIST, "-3"}, {"word", INT64_LIST, "7"});
    EXAMPLE({"label", BYTES_LIST, "1"}, {"x", BYTES_LIST, "2.5"}, {"word", BYTES_LIST, ""});
    write_records();
    const float x[] = {0.5f, -1, -3, 2.5f};
    const int64_t word[] = {NO_ID, 0, 1, NO_ID};
    assert_x_and_word(SOURCE("", X_AND_WORD), 4, x, word);
    assert_x_and_word(SOURCE(", 'names': ['word', 'x']", X_AND_WORD), 4, x, word);
}

static void names_are_those_of_the_first_records_or_of_the_spec(void **state)
{
    begin_records();
    for (int i = 0; i < 1000; i++) EXAMPLE(LABEL);
    EXAMPLE(LABEL, {"x", FLOAT_LIST, "4"});
    write_records();
    assert_refused(SOURCE("", "{'column': 'numeric', 'name': 'x'}"), "has no cell \"x\"", NULL);
    assert_refused(SOURCE(", 'names': ['x', 'x']", X_AND_WORD), "twice", NULL);
    struct dataset d;
    source_open_ok(SOURCE(", 'names': ['x']", "{'column': 'numeric', 'name': 'x', 'default': 0}"),
                   &d);
    assert_int_equal(d.rows, 1001);
    assert_true(((const float *)column(&d, "x"))[1000] == 4);
    dataset_close(&d);
}

/* What the first file has the next ones need not have, and the other way round. */
static void files_have_the_cells_of_the_first(void **state)
{
    struct dataset d;
    begin_records();
    EXAMPLE(LABEL, {"x", FLOAT_LIST, "1"}, {"word", BYTES_LIST, "7"});
    write_records();
    file_write("first", records.at, records.used);
    begin_records();
    EXAMPLE({"more", FLOAT_LIST, "1"}, LABEL);
    file_write("second", records.at, records.used);
    source_open_ok("{'format': 'tfrecord', 'file': ['first', 'second'], 'label': 'label'}, "
                   "'columns': [" X_AND_WORD "], 'batch_size': 1",
                   &d);
    assert_memory_equal(column(&d, "x"), ((float[]){1, -1}), 8);
    dataset_close(&d);
}

static void labels_are_as_the_spec_says(void **state)
{
    struct dataset d;
    begin_records();
    EXAMPLE({"label", BYTES_LIST, "yes"}, {"x", FLOAT_LIST, "1"}, {"word", BYTES_LIST, "7"});
    EXAMPLE({"label", BYTES_LIST, "no"}, {"x", FLOAT_LIST, "1"});
    write_records();
    source_open_ok(SOURCE(", 'positive': 'yes'", X_AND_WORD), &d);
    assert_memory_equal(d.columns[LABELS].at, ((int32_t[]){1, 0}), 8);
    dataset_close(&d);
    assert_refused(SOURCE("", X_AND_WORD), "rows: record 1 at byte 0: \"label\"", "whole number",
                   "got \"yes\"", NULL);
    begin_records();
    EXAMPLE(LABEL, {"x", FLOAT_LIST, "1"}, {"word", BYTES_LIST, "7"});
    EXAMPLE({"x", FLOAT_LIST, "1"});
    write_records();
    assert_refused(SOURCE("", X_AND_WORD), "rows: record 2", "whole number", "got \"\"", NULL);
    assert_int_equal(source_open_to_predict(SOURCE("", X_AND_WORD), &d), OK);
    assert_int_equal(d.rows, 2);
    dataset_close(&d);
    assert_refused("{'format': 'tfrecord', 'file': 'rows', 'label': 'y'}", "data.columns", NULL);
}

static void faults_name_record_and_byte(void **state)
{
    begin_records();
    EXAMPLE(LABEL, {"x", FLOAT_LIST, "1"}, {"word", BYTES_LIST, "7"});
    const size_t second = records.used;
    char place[64];
    snprintf(place, sizeof place, "rows: record 2 at byte %zu:", second);
    EXAMPLE(LABEL, {"x", FLOAT_LIST, "nan"});
    write_records();
    assert_refused(SOURCE("", X_AND_WORD), place, "feature \"x\"", "no finite number", NULL);
    file_write("rows", records.at, records.used - 1);
    assert_refused(SOURCE("", X_AND_WORD), place, "bytes of a record", NULL);
    file_write("rows", records.at, second + 5);
    assert_refused(SOURCE("", X_AND_WORD), place, "head", "ends after 5", NULL);
    records.at[second]++;
    write_records();
    assert_refused(SOURCE("", X_AND_WORD), place, "checksum of its length", NULL);
    records.at[second]--;
    records.at[second + 20]++;
    write_records();
    assert_refused(SOURCE("", X_AND_WORD), place, "checksum of its bytes", NULL);
    records.used = second;
    put_record("\x0a\x7f", 2);
    write_records();
    assert_refused(SOURCE("", X_AND_WORD), place, "the tf.Example is broken", NULL);
    records.used = second;
    EXAMPLE(LABEL, {"x", BYTES_LIST, "word"});
    write_records();
    assert_refused(SOURCE("", X_AND_WORD), "rows: record 2: column \"x\"", "a number", NULL);
}

static void a_record_that_cannot_be_is_refused(void **state)
{
    uint8_t head[12] = {0, 0, 0, 0x10};
    const uint32_t sum = crc32c_mask(crc32c(head, 8));
    memcpy(head + 8, &sum, 4);
    file_write("rows", head, sizeof head);
    assert_refused(SOURCE("", X_AND_WORD), "record 1 at byte 0: longer than 16777216", NULL);
    file_write_text("rows", "x,y\n1,2\n3,4\n");
    assert_refused(SOURCE("", X_AND_WORD), "no TFRecord file", NULL);
}

/* ---- broken files ---- */

static void assert_no_crash(void)
{
    struct dataset d = {0};
    const err e = source_open(SOURCE("", ALL), &d);
    assert_true(e == OK || e == ERR_INPUT);
    if (e) assert_non_null(strstr(error_text(), "rows"));
    dataset_close(&d);
}

static void no_cut_and_no_flipped_byte_crashes(void **state)
{
    static const char *const names[] = {"examples.tfrecord", "examples.tfrecord.gz",
                                        "examples.tfrecord.zlib"};
    for (int n = 0; n < 3; n++) {
        const size_t bytes = load(names[n]);
        for (size_t i = 1; i < bytes; i += i < 64 ? 1 : 37) {
            file_write("rows", file, i);
            assert_no_crash();
            file[i] ^= (uint8_t)(1 << i % 8);
            file_write("rows", file, bytes);
            assert_no_crash();
            file[i] ^= (uint8_t)(1 << i % 8);
        }
    }
}

/* The same within a record whose checksums are right */
static void no_record_that_is_no_example_crashes(void **state)
{
    static const uint8_t telling[] = {0x00, 0x01, 0x0a, 0x12, 0x7f, 0x80, 0xff};
    load("examples.tfrecord");
    const size_t bytes = file[0] + 256u * file[1];
    uint8_t *record = file + 12;
    for (size_t i = 0; i < bytes; i += i < 100 ? 1 : 5) {
        for (size_t k = 0; k < sizeof telling; k++) {
            const uint8_t kept = record[i];
            record[i] = telling[k];
            begin_records();
            put_record(record, k ? bytes : i);
            write_records();
            assert_no_crash();
            record[i] = kept;
        }
    }
}

static int drop_records(void **state)
{
    buffer_drop(&records);
    return folder_remove(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_of_tensorflow_are_read),
        cmocka_unit_test(a_feature_may_be_missing_and_of_any_list),
        cmocka_unit_test(names_are_those_of_the_first_records_or_of_the_spec),
        cmocka_unit_test(files_have_the_cells_of_the_first),
        cmocka_unit_test(labels_are_as_the_spec_says),
        cmocka_unit_test(faults_name_record_and_byte),
        cmocka_unit_test(a_record_that_cannot_be_is_refused),
        cmocka_unit_test(no_cut_and_no_flipped_byte_crashes),
        cmocka_unit_test(no_record_that_is_no_example_crashes),
    };
    return cmocka_run_group_tests(tests, folder_make, drop_records);
}
