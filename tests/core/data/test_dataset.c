/* skip and take, the checks of labels, plain reading, and the table of the spec. */
#include "tests/core/data/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void skip_and_take_split_a_source(void **state)
{
    struct dataset all, front, back;
    source_open_ok("{'format': 'digits', 'rows': 50}", &all);
    source_open_ok("{'format': 'digits', 'rows': 50, 'take': 20}", &front);
    source_open_ok("{'format': 'digits', 'rows': 50, 'skip': 20}", &back);
    assert_int_equal(front.rows, 20);
    assert_int_equal(back.rows, 30);
    assert_memory_equal(front.columns[FEATURES].at, all.columns[FEATURES].at, 20 * 784);
    assert_memory_equal(back.columns[FEATURES].at,
                        (const char *)all.columns[FEATURES].at + 20 * 784, 30 * 784);
    assert_memory_equal(back.columns[LABELS].at, (const int32_t *)all.columns[LABELS].at + 20,
                        30 * 4);
    dataset_close(&all);
    dataset_close(&front);
    dataset_close(&back);
}

static void a_split_that_is_not_there_is_refused(void **state)
{
    assert_refused("{'format': 'digits', 'rows': 50, 'skip': 50}", "skip 50", "50 rows", NULL);
    assert_refused("{'format': 'digits', 'rows': 50, 'take': 51}", "take 51", "only 50", NULL);
    assert_refused("{'format': 'digits', 'rows': 50, 'skip': 9007199254740992, 'take': 1}", "skip",
                   NULL);
    assert_refused("{'format': 'digits', 'rows': 50, 'skip': -1}", "skip", NULL);
    assert_refused("{'format': 'digits', 'rows': 50, 'take': -1}", "take", NULL);
    assert_refused("{'format': 'digit'}", "\"digits\"", NULL);
}

static void the_defaults_of_the_spec_are_those_of_the_documentation(void **state)
{
    struct arena arena = {0};
    struct data_spec spec;
    json_t *json = json_pack("{s:s}", "train", "digits");
    assert_int_equal(fields_parse(&data_spec_object, json, "data", &arena, &spec), OK);
    assert_string_equal(spec.train.format.kind->object->name, "digits");
    assert_null(spec.eval.format.kind);
    assert_int_equal(spec.batch_size, 100);
    assert_int_equal(spec.eval_batch_size, 0);
    assert_true(spec.shuffle);
    assert_true(spec.scale == 1 && spec.offset == 0);
    assert_in_range(spec.prefetch, 1, PREFETCH_MAX);
    arena_free(&arena);
    json_decref(json);
}

static const struct transform to_any = {1, .labels = {{.dtype = FLOAT32, .loss = "squares"}},
                                        .label_count = 1};
static const struct transform to_shares = {
    1, .labels = {{.dtype = FLOAT32, .rule = LABELS_SHARES, .loss = "yes_or_no"}},
    .label_count = 1};
static const struct transform to_3_classes = {
    1, .labels = {{.dtype = INT32, .rule = LABELS_CLASSES, .classes = 3, .loss = "one_of"}},
    .label_count = 1};

/* Of 4 rows. */
static err check(const struct transform *t, enum dtype have, const void *labels)
{
    struct counted memory;
    struct dataset d = counted_dataset(&memory, FLOAT32, 4);
    d.columns[LABELS].dtype = have;
    d.columns[LABELS].at = labels;
    return transform_check(t, &d);
}

#define INTS(...)                                                                                  \
    INT32, (int32_t[4])                                                                            \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define FLOATS(...)                                                                                \
    FLOAT32, (float[4])                                                                            \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static void assert_told(err e, const char *text)
{
    assert_int_equal(e, ERR_INPUT);
    assert_string_equal(error_text(), text);
}

static void classes_are_whole_and_have_a_logit(void **state)
{
    static const char rule[] =
        "one_of takes the number of a class, expected 0 to 2, as the node that it reads makes 3";
    char text[256];
    assert_int_equal(check(&to_3_classes, INTS(0, 2, 1, 2)), OK);
    assert_int_equal(check(&to_3_classes, FLOATS(0, 2, 1, 2)), OK);
    snprintf(text, sizeof text, "the labels: row 3: label 3 is out of range; %s", rule);
    assert_told(check(&to_3_classes, INTS(0, 2, 3, 2)), text);
    assert_told(check(&to_3_classes, FLOATS(0, 2, 3, 2)), text);
    snprintf(text, sizeof text, "the labels: row 1: label -1 is out of range; %s", rule);
    assert_told(check(&to_3_classes, INTS(-1, 2, 3, 2)), text);
    snprintf(text, sizeof text, "the labels: row 2: label 1.5 is not a whole number; %s", rule);
    assert_told(check(&to_3_classes, FLOATS(0, 1.5f, 9, 2)), text);
    snprintf(text, sizeof text, "the labels: row 4: label nan is not a finite number; %s", rule);
    assert_told(check(&to_3_classes, FLOATS(0, 1, 2, NAN)), text);
    assert_int_equal(check(&to_3_classes, FLOATS(0, 4e9f)), ERR_INPUT);
}

static void shares_are_from_0_to_1(void **state)
{
    static const char rule[] =
        "yes_or_no takes 0 (no), 1 (yes) and what is between: write the labels so, say by "
        "\"positive\" which counts as 1, list the cell in \"labels\" with a \"threshold\", or "
        "choose another loss";
    char text[320];
    assert_int_equal(check(&to_shares, INTS(0, 1, 1, 0)), OK);
    assert_int_equal(check(&to_shares, FLOATS(0, 1, 0.25f, -0.0f)), OK);
    snprintf(text, sizeof text, "the labels: row 2: label -1 is out of range; %s", rule);
    assert_told(check(&to_shares, INTS(1, -1, 1, -1)), text);
    assert_told(check(&to_shares, FLOATS(1, -1, 1, -1)), text);
    snprintf(text, sizeof text, "the labels: row 4: label 7 is out of range; %s", rule);
    assert_told(check(&to_shares, INTS(1, 0, 1, 7)), text);
    assert_int_equal(check(&to_shares, FLOATS(0, 1.0001f)), ERR_INPUT);
    assert_int_equal(check(&to_shares, FLOATS(NAN)), ERR_INPUT);
    assert_int_equal(check(&to_shares, FLOATS(0, 0, INFINITY)), ERR_INPUT);
}

static void any_label_must_be_finite(void **state)
{
    assert_int_equal(check(&to_any, INTS(-1, INT32_MAX, INT32_MIN, 0)), OK);
    assert_int_equal(check(&to_any, FLOATS(-1e38f, 3e38f, 0, 1e-40f)), OK);
    assert_told(check(&to_any, FLOATS(0, -INFINITY)),
                "the labels: row 2: label -inf is not a finite number; squares takes every "
                "finite number: mend or leave out the row");
    assert_int_equal(check(&to_any, FLOATS(0, 1, NAN)), ERR_INPUT);
    const struct transform bytes = {1, .labels = {{.dtype = UINT8}}, .label_count = 1};
    assert_int_equal(check(&bytes, INTS(1, 2)), ERR_INPUT);
}

/* Stretches are looked at as a whole before a row is searched for. */
static void a_wrong_label_is_found_wherever_it_stands(void **state)
{
    enum { ROWS = 3 * 4096 + 17 };
    static float labels[ROWS];
    struct column columns[STORED_COLUMNS] = {[LABELS] = {.dtype = FLOAT32, .at = labels}};
    const struct dataset d = {
        .rows = ROWS, .first_row = 1000, .columns = columns, .label_name = ""};
    static const int places[] = {0,    1,    4095,      4096,      4097,
                                 8191, 8192, ROWS - 18, ROWS - 17, ROWS - 1};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char row[32];
        labels[places[i]] = 2;
        assert_int_equal(transform_check(&to_shares, &d), ERR_INPUT);
        snprintf(row, sizeof row, "row %d:", 1001 + places[i]);
        assert_non_null(strstr(error_text(), row));
        labels[places[i]] = 1;
    }
    assert_int_equal(transform_check(&to_shares, &d), OK);
}

/* The file that is named is the labels', and rows are counted as they stand in it. */
static void files_and_rows_are_named_as_they_are(void **state)
{
    struct dataset d;
    const float features[8] = {0, 1, 2, 3, 4, INFINITY, 6, 7};
    file_write("four.f32", features, sizeof features);
    file_write("four.i32", (int32_t[]){0, 1, 0, 9}, 16);
    source_open_ok("{'format': 'raw', 'file': 'four.f32', 'shape': [2], 'labels': 'four.i32', "
                   "'skip': 3}",
                   &d);
    assert_int_equal(transform_check(&to_shares, &d), ERR_INPUT);
    assert_non_null(strstr(error_text(), "four.i32: row 4: label 9 is out of range"));
    dataset_close(&d);
    assert_refused("{'format': 'raw', 'file': 'four.f32', 'shape': [2], 'labels': 'four.i32', "
                   "'skip': 1}",
                   "four.f32: row 3: feature 1 (from 0) is inf, not a finite number", NULL);
}

static void the_shape_of_a_label_must_be_what_the_loss_wants(void **state)
{
    struct counted memory;
    struct dataset d = counted_dataset(&memory, FLOAT32, 4);
    const struct shape one = {.rank = 1, .dim = {1}}, two = {.rank = 1, .dim = {2}};
    const struct transform wants_one = {
        .scale = 1, .labels = {{.dtype = INT32, .shape = one}}, .label_count = 1};
    const struct transform wants_two = {
        .scale = 1, .labels = {{.dtype = INT32, .shape = two}}, .label_count = 1};
    assert_int_equal(transform_check(&wants_one, &d), OK);
    assert_int_equal(transform_check(&wants_two, &d), ERR_INPUT);
    assert_non_null(strstr(error_text(), "wants [2]"));
    d.rows = 2;
    d.columns[LABELS].shape = two;
    assert_int_equal(transform_check(&wants_two, &d), OK);
    assert_int_equal(transform_check(&wants_one, &d), ERR_INPUT);
}

/* Every length up to beyond two of the widest vectors, so that all tails of the loop are run. */
static void bytes_are_scaled_exactly_at_every_length(void **state)
{
    uint8_t bytes[256];
    int32_t label = 0;
    float y[257];
    for (int i = 0; i < 256; i++) bytes[i] = (uint8_t)(i * 7);
    const struct transform t = {
        .scale = 1 / 255.0f, .offset = -0.5f, .labels = {{.dtype = INT32}}, .label_count = 1};
    for (int n = 1; n <= 256; n++) {
        struct column columns[STORED_COLUMNS] = {
            [FEATURES] = {.dtype = UINT8, .shape = {.rank = 1, .dim = {n}}, .at = bytes},
            [LABELS] = {.dtype = INT32, .at = &label}};
        struct dataset d = {.rows = 1, .column_count = STORED_COLUMNS, .columns = columns};
        y[n] = 77;
        source_read(&d, &t, 0, 1, y, &label);
        for (int i = 0; i < n; i++) {
            volatile float product = (float)t.scale * (float)bytes[i]; /* rounded on its own */
            assert_true(y[i] == product + (float)t.offset);
        }
        assert_true(y[n] == 77);
    }
}

static void reading_scales_features_and_converts_labels(void **state)
{
    struct counted memory;
    struct dataset d = counted_dataset(&memory, FLOAT32, 10);
    const struct transform t = {
        .scale = 2, .offset = 1, .labels = {{.dtype = FLOAT32}}, .label_count = 1};
    float features[3 * COUNTED_WIDTH], labels[3];
    source_read(&d, &t, 4, 3, features, labels);
    for (int i = 0; i < 3 * COUNTED_WIDTH; i++)
        assert_true(features[i] == 2 * (float)(4 + i / COUNTED_WIDTH + i % COUNTED_WIDTH) + 1);
    for (int i = 0; i < 3; i++) assert_true(labels[i] == (float)(4 + i));

    const struct transform whole = {.scale = 1, .labels = {{.dtype = INT32}}, .label_count = 1};
    int32_t numbers[10];
    d.columns[LABELS].dtype = FLOAT32;
    d.columns[LABELS].at = (float[]){0, 1, 2, 3, 4, 5, 6, 7, 8, -9};
    source_read(&d, &whole, 8, 2, features, numbers);
    assert_memory_equal(features, memory.floats + 8 * COUNTED_WIDTH, 2 * COUNTED_WIDTH * 4);
    assert_int_equal(numbers[0], 8);
    assert_int_equal(numbers[1], -9);
}

/* As it is stored and as it is made: both without a thread. */
static struct batch_source *open_once(const struct dataset *d, const struct transform *t)
{
    const struct stream_options options = {
        .transform = *t, .batch = 16, .is_once = true, .workers = 1, .prefetch = 1};
    struct batch_source *source = NULL;
    assert_int_equal(source_begin(d, &options, &source), OK);
    assert_int_equal(source->calls->ready(source), -1);
    return source;
}

/* The last batch is what is left, then there are none until it is sought anew. */
static void check_once(struct batch_source *source)
{
    static const int64_t rows[] = {16, 16, 16, 2, 0, 0};
    for (int i = 0; i < 6; i++) {
        struct batch b;
        assert_int_equal(source->calls->next(source, &b), OK);
        assert_int_equal(b.rows, rows[i]);
        for (int64_t k = 0; k < b.rows; k++) {
            assert_int_equal(((const int32_t *)batch_labels(&b))[k], 16 * i + k);
            assert_true(batch_features(&b)[k * COUNTED_WIDTH] == (float)(16 * i + k));
        }
    }
    assert_int_equal(source->calls->seek(source, 0), OK);
}

static void what_is_measured_comes_once_in_stored_order(void **state)
{
    const struct transform t = {.scale = 1, .labels = {{.dtype = INT32}}, .label_count = 1};
    struct counted memory;
    for (int is_float = 0; is_float < 2; is_float++) {
        struct dataset d = counted_dataset(&memory, is_float ? FLOAT32 : UINT8, 50);
        struct batch_source *source = open_once(&d, &t);
        check_once(source);
        check_once(source);
        batch_source_close(source);
    }
}

/* As when predictions are made: what is fed is a label of every loss. */
static void without_labels_they_are_zeros_of_the_wanted_shape(void **state)
{
    static const float zeros[16 * 3];
    const struct transform t = {.scale = 1,
                                .labels = {{.dtype = FLOAT32, .shape = {.rank = 1, .dim = {3}}}},
                                .label_count = 1,
                                .without_labels = true};
    struct counted memory;
    for (int is_float = 0; is_float < 2; is_float++) {
        struct dataset d = counted_dataset(&memory, is_float ? FLOAT32 : UINT8, 50);
        d.columns[LABELS] = (struct column){.name = LABELS_NAME};
        struct batch_source *source = open_once(&d, &t);
        for (int i = 0; i < 4; i++) {
            struct batch b;
            assert_int_equal(source->calls->next(source, &b), OK);
            assert_memory_equal(batch_labels(&b), zeros, (size_t)b.rows * 3 * sizeof(float));
            assert_true(batch_features(&b)[0] == (float)(16 * i));
        }
        batch_source_close(source);
    }
}

static void a_weight_below_0_is_named_by_its_row(void **state)
{
    static float weights[50];
    const struct transform t = {
        .scale = 1, .weights = {"w"}, .labels = {{.dtype = INT32}}, .label_count = 1};
    struct counted memory;
    struct dataset d = counted_dataset(&memory, FLOAT32, 50);
    d.columns[d.column_count++] = (struct column){.name = "w", .at = weights};
    d.first_row = 100;
    assert_int_equal(transform_check(&t, &d), OK);
    weights[7] = -0.5f;
    assert_int_equal(transform_check(&t, &d), ERR_INPUT);
    assert_string_equal(error_text(), "counted: row 108: weight \"w\" is -0.5; expected 0 or more");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(skip_and_take_split_a_source),
        cmocka_unit_test(a_split_that_is_not_there_is_refused),
        cmocka_unit_test(the_defaults_of_the_spec_are_those_of_the_documentation),
        cmocka_unit_test(classes_are_whole_and_have_a_logit),
        cmocka_unit_test(shares_are_from_0_to_1),
        cmocka_unit_test(any_label_must_be_finite),
        cmocka_unit_test(a_wrong_label_is_found_wherever_it_stands),
        cmocka_unit_test(files_and_rows_are_named_as_they_are),
        cmocka_unit_test(the_shape_of_a_label_must_be_what_the_loss_wants),
        cmocka_unit_test(bytes_are_scaled_exactly_at_every_length),
        cmocka_unit_test(reading_scales_features_and_converts_labels),
        cmocka_unit_test(what_is_measured_comes_once_in_stored_order),
        cmocka_unit_test(without_labels_they_are_zeros_of_the_wanted_shape),
        cmocka_unit_test(a_weight_below_0_is_named_by_its_row),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
