/* skip and take, the checks of labels, plain reading, and the table of the spec. */
#include "tests/data/support.h"

#include <math.h>
#include <string.h>

static void skip_and_take_split_a_source(void **state)
{
    struct dataset all, front, back;
    source_open_ok("{'format': 'digits', 'rows': 50}", &all);
    source_open_ok("{'format': 'digits', 'rows': 50, 'take': 20}", &front);
    source_open_ok("{'format': 'digits', 'rows': 50, 'skip': 20}", &back);
    assert_int_equal(front.rows, 20);
    assert_int_equal(back.rows, 30);
    assert_memory_equal(front.features, all.features, 20 * 784);
    assert_memory_equal(back.features, (const char *)all.features + 20 * 784, 30 * 784);
    assert_memory_equal(back.labels, (const int32_t *)all.labels + 20, 30 * 4);
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

static err check(struct dataset d, enum dtype have, const void *labels, enum dtype wanted,
                 int64_t classes)
{
    const struct transform t = {.scale = 1, .label_dtype = wanted, .classes = classes};
    d.label_dtype = have;
    d.labels = labels;
    return transform_check(&t, &d, &(struct shape){0});
}

static void labels_out_of_range_are_refused_with_row_and_value(void **state)
{
    struct counted memory;
    struct dataset d = counted_dataset(&memory, FLOAT32, 4);
    assert_int_equal(check(d, INT32, (int32_t[]){0, 2, 1, 2}, INT32, 3), OK);
    assert_int_equal(check(d, INT32, (int32_t[]){0, 2, 3, 2}, INT32, 3), ERR_INPUT);
    assert_non_null(strstr(error_text(), "row 2"));
    assert_non_null(strstr(error_text(), "label 3"));
    assert_non_null(strstr(error_text(), "0 to 2"));
    assert_int_equal(check(d, INT32, (int32_t[]){-1, 2, 3, 2}, INT32, 3), ERR_INPUT);
    assert_non_null(strstr(error_text(), "label -1"));
    assert_int_equal(check(d, INT32, (int32_t[]){-1, 2, 3, 2}, INT32, 0), OK);
}

static void labels_become_integers_only_where_they_are_whole(void **state)
{
    struct counted memory;
    struct dataset d = counted_dataset(&memory, FLOAT32, 2);
    assert_int_equal(check(d, FLOAT32, (float[]){0, 5}, INT32, 0), OK);
    assert_int_equal(check(d, FLOAT32, (float[]){0, 5.5f}, INT32, 0), ERR_INPUT);
    assert_non_null(strstr(error_text(), "row 1"));
    assert_non_null(strstr(error_text(), "5.5 is not a whole number"));
    assert_int_equal(check(d, FLOAT32, (float[]){0, 5.5f}, FLOAT32, 0), OK);
    assert_int_equal(check(d, FLOAT32, (float[]){0, 4e9f}, INT32, 0), ERR_INPUT);
    assert_int_equal(check(d, FLOAT32, (float[]){0, NAN}, FLOAT32, 0), ERR_INPUT);
    assert_int_equal(check(d, FLOAT32, (float[]){INFINITY, 0}, INT32, 0), ERR_INPUT);
    assert_int_equal(check(d, INT32, (int32_t[]){1, 2}, FLOAT32, 0), OK);
    assert_int_equal(check(d, INT32, (int32_t[]){1, 2}, UINT8, 0), ERR_INPUT);
}

static void the_shape_of_a_label_must_be_what_the_loss_wants(void **state)
{
    struct counted memory;
    struct dataset d = counted_dataset(&memory, FLOAT32, 4);
    const struct transform t = {.scale = 1, .label_dtype = INT32};
    const struct shape one = {.rank = 1, .dim = {1}}, two = {.rank = 1, .dim = {2}};
    assert_int_equal(transform_check(&t, &d, &one), OK);
    assert_int_equal(transform_check(&t, &d, &two), ERR_INPUT);
    assert_non_null(strstr(error_text(), "wants [2]"));
    d.rows = 2;
    d.label_shape = two;
    assert_int_equal(transform_check(&t, &d, &two), OK);
    assert_int_equal(transform_check(&t, &d, &one), ERR_INPUT);
}

/* Every length up to beyond two of the widest vectors, so that all tails of the loop are run. */
static void bytes_are_scaled_exactly_at_every_length(void **state)
{
    uint8_t bytes[256];
    int32_t label = 0;
    float y[257];
    for (int i = 0; i < 256; i++) bytes[i] = (uint8_t)(i * 7);
    const struct transform t = {.scale = 1 / 255.0f, .offset = -0.5f, .label_dtype = INT32};
    for (int n = 1; n <= 256; n++) {
        struct dataset d = {.rows = 1,
                            .feature_shape = {.rank = 1, .dim = {n}},
                            .feature_dtype = UINT8,
                            .features = bytes,
                            .label_dtype = INT32,
                            .labels = &label};
        y[n] = 77;
        dataset_read(&d, &t, 0, 1, y, &label);
        for (int i = 0; i < n; i++) {
            volatile float product = t.scale * (float)bytes[i]; /* rounded on its own */
            assert_true(y[i] == product + t.offset);
        }
        assert_true(y[n] == 77);
    }
}

static void reading_scales_features_and_converts_labels(void **state)
{
    struct counted memory;
    struct dataset d = counted_dataset(&memory, FLOAT32, 10);
    const struct transform t = {.scale = 2, .offset = 1, .label_dtype = FLOAT32};
    float features[3 * COUNTED_WIDTH], labels[3];
    dataset_read(&d, &t, 4, 3, features, labels);
    for (int i = 0; i < 3 * COUNTED_WIDTH; i++)
        assert_true(features[i] == 2 * (float)(4 + i / COUNTED_WIDTH + i % COUNTED_WIDTH) + 1);
    for (int i = 0; i < 3; i++) assert_true(labels[i] == (float)(4 + i));

    const struct transform whole = {.scale = 1, .label_dtype = INT32};
    int32_t numbers[10];
    d.label_dtype = FLOAT32;
    d.labels = (float[]){0, 1, 2, 3, 4, 5, 6, 7, 8, -9};
    dataset_read(&d, &whole, 8, 2, features, numbers);
    assert_memory_equal(features, memory.floats + 8 * COUNTED_WIDTH, 2 * COUNTED_WIDTH * 4);
    assert_int_equal(numbers[0], 8);
    assert_int_equal(numbers[1], -9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(skip_and_take_split_a_source),
        cmocka_unit_test(a_split_that_is_not_there_is_refused),
        cmocka_unit_test(the_defaults_of_the_spec_are_those_of_the_documentation),
        cmocka_unit_test(labels_out_of_range_are_refused_with_row_and_value),
        cmocka_unit_test(labels_become_integers_only_where_they_are_whole),
        cmocka_unit_test(the_shape_of_a_label_must_be_what_the_loss_wants),
        cmocka_unit_test(bytes_are_scaled_exactly_at_every_length),
        cmocka_unit_test(reading_scales_features_and_converts_labels),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
