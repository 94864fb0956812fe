/* test_events.c - files of events byte for byte, and read back. */
#include "core/train/summary/events.h"
#include "core/graph/op.h"
#include "tests/core/train/summary/reader.h"

#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEX_MAX = 256, PATH_BYTES_MAX = 512, FIXTURE_SUMMARIES = 3, NAMES_TRIED = 1000 };

/* Fields of the messages, as event.proto, summary.proto and tensor.proto number them. */
enum {
    EVENT_WALL_TIME = 1,
    EVENT_STEP = 2,
    EVENT_VERSION = 3,
    EVENT_SUMMARY = 5,
    EVENT_SESSION = 7,
    SUMMARY_VALUE = 1,
    VALUE_TAG = 1,
    VALUE_SIMPLE = 2,
    VALUE_TENSOR = 8,
    VALUE_METADATA = 9,
    TENSOR_DTYPE = 1,
    TENSOR_SHAPE = 2,
    TENSOR_CONTENT = 4,
    TENSOR_STRINGS = 8,
    SESSION_PATH = 2,
};

struct place {
    char folder[64], path[PATH_BYTES_MAX];
    struct events *events;
};

static struct place open_at(double wall_s)
{
    struct place p;
    scratch_make(p.folder);
    if (events_open(p.folder, wall_s, "", &p.events)) fail_msg("%s", error_text());
    scratch_find(p.folder, "events.out.tfevents.", p.path);
    return p;
}

static struct bytes close_and_load(struct place *p)
{
    assert_int_equal(events_flush(p->events), OK);
    events_close(p->events);
    const struct bytes file = file_load(p->path);
    scratch_remove(p->folder);
    return file;
}

static void expect_hex(struct bytes bytes, const char *hex)
{
    uint8_t wanted[HEX_MAX];
    size_t count = 0;
    for (int used; sscanf(hex, "%2hhx%n", &wanted[count], &used) == 1; hex += used) {
        count++;
        assert_true(count < HEX_MAX);
    }
    assert_int_equal(bytes.count, count);
    assert_memory_equal(bytes.at, wanted, count);
}

static void the_examples_are_made_byte_for_byte(void **state)
{
    struct place p = open_at(1700000000.75);
    assert_non_null(strstr(p.path, "/events.out.tfevents.1700000000."));
    events_begin_step(p.events, 1700000001.5, 10);
    events_scalar(p.events, "loss", 0.25);
    assert_int_equal(events_end_step(p.events), OK);
    assert_int_equal(events_session(p.events, 1700000002.0, 10, SESSION_START, NULL), OK);
    const struct bytes file = close_and_load(&p);
    expect_hex(file,
               "18 00 00 00 00 00 00 00 a3 7f 4b 22"
               "09 00 00 00 40 fc 54 d9 41 1a 0d 62 72 61 69 6e 2e 45 76 65 6e 74 3a 32 ec ed 8f 9d"
               "1a 00 00 00 00 00 00 00 12 9b d8 2d"
               "09 00 00 60 40 fc 54 d9 41 10 0a 2a 0d 0a 0b 0a 04 6c 6f 73 73 15 00 00 80 3e"
               "14 c9 74 a3"
               "0f 00 00 00 00 00 00 00 6d 53 2b 09"
               "09 00 00 80 40 fc 54 d9 41 10 0a 3a 02 08 01 76 b7 66 f3");
    free((void *)file.at);
}

static void add_values(struct histogram *h, const json_t *array)
{
    histogram_clear(h);
    size_t i;
    json_t *value;
    json_array_foreach(json_object_get(array, "data"), i, value)
        histogram_add(h, (double)(float)json_number_value(value));
}

/* The event with the same numbers again: the loss of its scalar, the histogram of its inputs. */
static void write_like(struct events *events, struct bytes event, const json_t *values)
{
    struct histogram h;
    add_values(&h, values);
    const struct bytes summary = part_of(event, EVENT_SUMMARY).content;
    const struct bytes loss = part_at(summary, SUMMARY_VALUE, 0).content;
    const bool has_step = part_count(event, EVENT_STEP) > 0;
    events_begin_step(events, part_of(event, EVENT_WALL_TIME).real,
                      has_step ? part_of(event, EVENT_STEP).integer : 0);
    events_scalar(events, "loss", part_of(loss, VALUE_SIMPLE).real);
    events_histogram(events, "x_1", &h);
    assert_int_equal(events_end_step(events), OK);
}

static void the_events_of_tensorflow_are_made_again_byte_for_byte(void **state)
{
    json_t *expected = json_load_file(EVENTS_FIXTURE "/expected.json", 0, NULL);
    const json_t *inputs = json_object_get(expected, "histogram_inputs");
    const struct bytes theirs = file_load(EVENTS_FIXTURE "/events.out.tfevents.1700000000.host");
    const int first = record_count(theirs) - FIXTURE_SUMMARIES;
    struct place p = open_at(0);
    for (int i = 0; i < FIXTURE_SUMMARIES; i++)
        write_like(p.events, record_at(theirs, first + i), json_array_get(inputs, (size_t)i));
    const struct bytes ours = close_and_load(&p);
    assert_int_equal(record_count(ours), 1 + FIXTURE_SUMMARIES);
    for (int i = 0; i < FIXTURE_SUMMARIES; i++)
        assert_true(bytes_equal(record_at(ours, 1 + i), record_at(theirs, first + i)));
    free((void *)ours.at);
    free((void *)theirs.at);
    json_decref(expected);
}

static void a_step_without_values_writes_nothing(void **state)
{
    struct place p = open_at(5);
    events_begin_step(p.events, 6, 1);
    assert_int_equal(events_end_step(p.events), OK);
    const struct bytes file = close_and_load(&p);
    assert_int_equal(record_count(file), 1);
    assert_true(bytes_are(part_of(record_at(file, 0), EVENT_VERSION).content, "brain.Event:2"));
    free((void *)file.at);
}

static void steps_and_times_are_as_given(void **state)
{
    const uint64_t steps[] = {0, 1, 127, 128, 300, INT64_MAX};
    const int count = sizeof steps / sizeof *steps;
    struct place p = open_at(1e9);
    for (int i = 0; i < count; i++) {
        events_begin_step(p.events, 1e9 + 0.25 * i, steps[i]);
        events_scalar(p.events, "a", NAN);
        events_scalar(p.events, "b", -1e300);
        assert_int_equal(events_end_step(p.events), OK);
    }
    const struct bytes file = close_and_load(&p);
    for (int i = 0; i < count; i++) {
        const struct bytes event = record_at(file, 1 + i);
        assert_true(part_of(event, EVENT_WALL_TIME).real == 1e9 + 0.25 * i);
        assert_int_equal(part_count(event, EVENT_STEP), i > 0);
        if (i > 0) assert_true(part_of(event, EVENT_STEP).integer == steps[i]);
        const struct bytes summary = part_of(event, EVENT_SUMMARY).content;
        assert_int_equal(part_count(summary, SUMMARY_VALUE), 2);
        assert_true(isnan(part_of(part_at(summary, SUMMARY_VALUE, 0).content, VALUE_SIMPLE).real));
        assert_true(part_of(part_at(summary, SUMMARY_VALUE, 1).content, VALUE_SIMPLE).real ==
                    -INFINITY);
    }
    free((void *)file.at);
}

/* Of the only event after the version. */
static struct bytes value_at(struct bytes file, int index)
{
    const struct bytes summary = part_of(record_at(file, 1), EVENT_SUMMARY).content;
    return part_at(summary, SUMMARY_VALUE, index).content;
}

static void tags_are_cleaned_as_tensorflow_does_it(void **state)
{
    static const char *const tags[][2] = {
        {"global_step/sec", "global_step/sec"},
        {"//loss", "loss"},
        {"a b:c(d)", "a_b_c_d_"},
        {"-/A.z_9", "-/A.z_9"},
        {"gr\xc3\xb6\xc3\x9f"
         "e \xe2\x82\xac",
         "gr__e__"}, /* one for a character */
        {"", ""},
    };
    const int count = sizeof tags / sizeof *tags;
    struct place p = open_at(5);
    events_begin_step(p.events, 6, 1);
    for (int i = 0; i < count; i++) events_scalar(p.events, tags[i][0], i);
    assert_int_equal(events_end_step(p.events), OK);
    const struct bytes file = close_and_load(&p);
    for (int i = 0; i < count; i++)
        assert_true(bytes_are(part_of(value_at(file, i), VALUE_TAG).content, tags[i][1]));
    free((void *)file.at);
}

static void only_the_first_text_of_a_tag_says_what_it_is(void **state)
{
    static const char *const tags[] = {"spec", "spec", "note", "spec", "note"};
    const bool is_first[] = {true, false, true, false, false};
    struct place p = open_at(5);
    events_begin_step(p.events, 6, 1);
    for (int i = 0; i < 5; i++) events_text(p.events, tags[i], "**bold** \xc3\xa4");
    assert_int_equal(events_end_step(p.events), OK);
    const struct bytes file = close_and_load(&p);
    for (int i = 0; i < 5; i++) {
        const struct bytes value = value_at(file, i);
        const struct bytes tensor = part_of(value, VALUE_TENSOR).content;
        assert_int_equal(part_of(tensor, TENSOR_DTYPE).integer, 7);
        assert_int_equal(part_of(tensor, TENSOR_SHAPE).content.count, 0);
        assert_true(bytes_are(part_of(tensor, TENSOR_STRINGS).content, "**bold** \xc3\xa4"));
        assert_int_equal(part_count(value, VALUE_METADATA), is_first[i]);
        if (is_first[i])
            expect_hex(part_of(value, VALUE_METADATA).content, "0a 06 0a 04 74 65 78 74");
    }
    free((void *)file.at);
}

static void a_curve_is_a_tensor_for_its_page(void **state)
{
    static const float values[PR_ROWS * 2] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    struct place p = open_at(5);
    for (uint64_t step = 1; step <= 2; step++) {
        events_begin_step(p.events, 6, step);
        events_pr_curve(p.events, "auc/pr_curve", values, 2);
        assert_int_equal(events_end_step(p.events), OK);
    }
    const struct bytes file = close_and_load(&p);
    for (int i = 0; i < 2; i++) {
        const struct bytes summary = part_of(record_at(file, 1 + i), EVENT_SUMMARY).content;
        const struct bytes value = part_of(summary, SUMMARY_VALUE).content;
        const struct bytes tensor = part_of(value, VALUE_TENSOR).content;
        assert_int_equal(part_of(tensor, TENSOR_DTYPE).integer, 1);
        expect_hex(part_of(tensor, TENSOR_SHAPE).content, "12 02 08 06 12 02 08 02");
        const struct bytes content = part_of(tensor, TENSOR_CONTENT).content;
        assert_true(bytes_equal(content, (struct bytes){(const uint8_t *)values, sizeof values}));
        assert_int_equal(part_count(value, VALUE_METADATA), i == 0);
        if (i == 0)
            expect_hex(part_of(value, VALUE_METADATA).content,
                       "0a 0f 0a 09 70 72 5f 63 75 72 76 65 73 12 02 10 02");
    }
    free((void *)file.at);
}

/* A name of a file is any bytes, but a message with a string that is not UTF-8 cannot be read. */
static void what_is_not_utf8_becomes_question_marks(void **state)
{
    static const char *const texts[][2] = {
        {"run/m\xff"
         "del",
         "run/m?del"},
        {"\xc3", "?"},
        {"\xc0\xaf", "??"},           /* overlong */
        {"\xed\xa0\x80", "???"},      /* a surrogate */
        {"\xf4\x90\x80\x80", "????"}, /* beyond the last character */
        {"\xf0\x9f\x98\x80 \xe2\x82\xac", "\xf0\x9f\x98\x80 \xe2\x82\xac"},
    };
    const int count = sizeof texts / sizeof *texts;
    struct place p = open_at(5);
    for (int i = 0; i < count; i++)
        assert_int_equal(events_session(p.events, 6, 1, SESSION_CHECKPOINT, texts[i][0]), OK);
    const struct bytes file = close_and_load(&p);
    for (int i = 0; i < count; i++) {
        const struct bytes session = part_of(record_at(file, 1 + i), EVENT_SESSION).content;
        assert_int_equal(part_of(session, 1).integer, SESSION_CHECKPOINT);
        assert_true(bytes_are(part_of(session, SESSION_PATH).content, texts[i][1]));
    }
    free((void *)file.at);
}

static void files_of_the_same_second_have_different_names(void **state)
{
    char folder[64], path[PATH_BYTES_MAX];
    scratch_make(folder);
    for (int i = 0; i < 3; i++) {
        struct events *events;
        assert_int_equal(events_open(folder, 1700000000, ".eval", &events), OK);
        events_close(events);
    }
    static const char *const names[] = {"1700000000", "1700000001", "1700000002"};
    for (int i = 0; i < 3; i++) {
        scratch_find(folder, names[i], path);
        assert_string_equal(path + strlen(path) - 5, ".eval");
        const struct bytes file = file_load(path);
        assert_true(part_of(record_at(file, 0), EVENT_WALL_TIME).real == 1700000000 + i);
        free((void *)file.at);
    }
    scratch_remove(folder);
}

static void the_search_for_a_name_ends(void **state)
{
    char folder[64];
    scratch_make(folder);
    struct events *events;
    for (int i = 0; i < NAMES_TRIED; i++) {
        assert_int_equal(events_open(folder, 7, "", &events), OK);
        events_close(events);
    }
    assert_int_equal(events_open(folder, 7, "", &events), ERR_IO);
    assert_non_null(strstr(error_text(), folder));
    assert_int_equal(events_open(folder, 8, ".other", &events), OK);
    events_close(events);
    scratch_remove(folder);
}

static void the_folder_is_made_with_its_parents(void **state)
{
    char folder[64], path[PATH_BYTES_MAX], found[PATH_BYTES_MAX];
    scratch_make(folder);
    snprintf(path, sizeof path, "%s/runs/first/eval", folder);
    struct events *events;
    assert_int_equal(events_open(path, 7, "", &events), OK);
    events_close(events);
    scratch_find(path, "0000000007", found);
    assert_int_not_equal(found[0], '\0');
    scratch_remove(folder);
}

static void a_folder_that_cannot_be_is_an_error_with_its_path(void **state)
{
    char folder[64], path[PATH_BYTES_MAX];
    scratch_make(folder);
    snprintf(path, sizeof path, "%s/file", folder);
    fclose(fopen(path, "w"));
    struct events *events;
    assert_int_equal(events_open(path, 7, "", &events), ERR_IO);
    assert_non_null(strstr(error_text(), path));
    snprintf(path, sizeof path, "%s/file/below", folder);
    assert_int_equal(events_open(path, 7, "", &events), ERR_IO);
    assert_non_null(strstr(error_text(), path));
    scratch_remove(folder);
}

static long size_of(const char *path)
{
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return (long)status.st_size;
}

static void events_gather_until_they_are_flushed_or_many(void **state)
{
    struct place p = open_at(7);
    const long first = size_of(p.path); /* the version is there at once */
    assert_int_not_equal(first, 0);
    char text[1000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    for (int i = 0; i < 60; i++)
        assert_int_equal(events_session(p.events, 8, 1, SESSION_CHECKPOINT, text), OK);
    assert_int_equal(size_of(p.path), first);
    for (int i = 0; i < 10; i++)
        assert_int_equal(events_session(p.events, 8, 1, SESSION_CHECKPOINT, text), OK);
    assert_true(size_of(p.path) > first);
    const struct bytes file = close_and_load(&p);
    assert_int_equal(record_count(file), 71);
    free((void *)file.at);
}

/* The same bytes, whether the thread was done at a flush or not; the last are written by the close.
 */
static void a_thread_writes_the_same_file(void **state)
{
    struct bytes files[2];
    for (int beside = 0; beside < 2; beside++) {
        struct place p = open_at(7);
        if (beside) assert_int_equal(events_write_beside(p.events), OK);
        for (int step = 1; step <= 3000; step++) {
            events_begin_step(p.events, 8, (uint64_t)step);
            events_scalar(p.events, "loss", step);
            events_text(p.events, "text", "of a step");
            assert_int_equal(events_end_step(p.events), OK);
            if (step % 3 == 0) assert_int_equal(events_flush(p.events), OK);
        }
        files[beside] = close_and_load(&p);
    }
    assert_true(files[0].count > 3000 * 20);
    assert_int_equal(files[1].count, files[0].count);
    assert_memory_equal(files[1].at, files[0].at, files[0].count);
    for (int i = 0; i < 2; i++) free((void *)files[i].at);
}

static void closing_nothing_is_fine(void **state)
{
    events_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_examples_are_made_byte_for_byte),
        cmocka_unit_test(the_events_of_tensorflow_are_made_again_byte_for_byte),
        cmocka_unit_test(a_step_without_values_writes_nothing),
        cmocka_unit_test(steps_and_times_are_as_given),
        cmocka_unit_test(tags_are_cleaned_as_tensorflow_does_it),
        cmocka_unit_test(only_the_first_text_of_a_tag_says_what_it_is),
        cmocka_unit_test(a_curve_is_a_tensor_for_its_page),
        cmocka_unit_test(what_is_not_utf8_becomes_question_marks),
        cmocka_unit_test(files_of_the_same_second_have_different_names),
        cmocka_unit_test(the_search_for_a_name_ends),
        cmocka_unit_test(the_folder_is_made_with_its_parents),
        cmocka_unit_test(a_folder_that_cannot_be_is_an_error_with_its_path),
        cmocka_unit_test(events_gather_until_they_are_flushed_or_many),
        cmocka_unit_test(a_thread_writes_the_same_file),
        cmocka_unit_test(closing_nothing_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
