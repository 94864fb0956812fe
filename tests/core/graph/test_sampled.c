/* test_sampled.c - losses over some of many classes: those that are drawn, and those of a batch. */
#include "tests/core/graph/bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/ops/sparse/sampler.h"

static const struct tolerance CLOSE = {.of_largest = 1e-5};

static json_t *load(void)
{
    json_error_t error;
    json_t *json = json_load_file(FIXTURES "/sampled.json", 0, &error);
    if (!json) fail_msg("%s", error.text);
    return json;
}

static double number_at(json_t *array, int64_t index)
{
    return json_number_value(json_array_get(array, (size_t)index));
}

static void read_floats(json_t *from, const char *key, float *ret)
{
    json_t *array = json_object_get(from, key);
    assert_true(json_array_size(array) > 0);
    for (size_t i = 0; i < json_array_size(array); i++)
        ret[i] = (float)number_at(array, (int64_t)i);
}

static void check_floats(json_t *from, const char *key, const float *got)
{
    json_t *array = json_object_get(from, key);
    float want[64] = {0};
    assert_true(json_array_size(array) > 0 && json_array_size(array) <= 64);
    read_floats(from, key, want);
    assert_close(got, want, (int64_t)json_array_size(array), CLOSE, key);
}

static int64_t length(json_t *from, const char *key)
{
    return (int64_t)json_array_size(json_object_get(from, key));
}

/* The loss of the node's output, and its gradient, as a plan would have them */
static void judge(struct bench *b, const char *name, const int32_t *labels, float *ret_losses)
{
    const struct loss *loss = kinds_find(&loss_kinds, name)->descriptor;
    struct loss_node node = {
        .loss = loss, .factor = 1, .logits = &b->node.output, .losses = ret_losses};
    const int64_t rows = b->node.output.shape.dim[0];
    json_t *none = json_object();
    node.attributes = attributes_from(&loss->object, none, &b->arena);
    json_decref(none);
    assert_int_equal(loss->infer(&node, &b->arena), OK);
    if (loss->prepare) assert_int_equal(loss->prepare(&node, b->device), OK);
    node.labels.value = b->node.output.answers ? b->node.output.answers->value : (void *)labels;
    node.counts = loss_count(&node, labels, NULL, rows);
    const float scale = loss_scale(&node, &node.counts);
    node.scale = &scale;
    loss->forward(&node, b->device, rows);
    if (loss->release) loss->release(&node, b->device);
}

/* ---- drawn ---- */

static void open_sampled(struct bench *b, struct device *d, json_t *test, bool training)
{
    const int64_t batch = length(test, "labels"), inputs = length(test, "x") / batch;
    const struct op_case shapes = {.input_count = 1, .input = {{2, {batch, inputs}}}};
    json_t *attributes = json_object();
    json_object_set(attributes, "classes", json_object_get(test, "classes"));
    json_object_set_new(attributes, "sampled", json_integer(length(test, "sampled")));
    json_object_set(attributes, "remove_accidental_hits",
                    json_object_get(test, "remove_accidental_hits"));
    bench_open_for(b, d, kinds_find(&op_kinds, "sampled_logits")->descriptor, attributes, &shapes,
                   training);
    json_decref(attributes);
    read_floats(test, "x", b->input[0].value);
    read_floats(test, "weights", b->node.param[0].value);
    read_floats(test, "biases", b->node.param[1].value);
}

/* What was drawn, and expected, there */
static void take_drawn(struct bench *b, json_t *test)
{
    static const struct {
        const char *name, *key;
    } made[] = {{"sampled", "sampled"},
                {"labels", "labels"},
                {"log_sampled", "expected_of_sampled"},
                {"log_labels", "expected_of_labels"}};
    for (int k = 0; k < b->node.making.count; k++) {
        struct tensor *tensor = &b->node.making.inputs[k]->tensor;
        json_t *array = json_object_get(test, made[k].key);
        assert_string_equal(tensor->name, made[k].name);
        for (int64_t i = 0; i < shape_count(&tensor->shape); i++)
            if (tensor->dtype == INT64)
                ((int64_t *)tensor->value)[i] = (int64_t)number_at(array, i);
            else
                ((float *)tensor->value)[i] = logf((float)number_at(array, i));
    }
}

static void check_sampled(struct device *d, json_t *test)
{
    struct bench b;
    float losses[16];
    const char *loss = json_string_value(json_object_get(test, "loss"));
    open_sampled(&b, d, test, true);
    take_drawn(&b, test);
    bench_forward(&b);
    judge(&b, loss, NULL, losses);
    check_floats(test, "losses", losses);
    bench_backward(&b);
    json_t *gradients = json_object_get(test, "gradients");
    check_floats(gradients, "weights", b.node.param[0].gradient);
    check_floats(gradients, "biases", b.node.param[1].gradient);
    check_floats(gradients, "x", b.input[0].gradient);
    bench_close(&b);
}

static void check_all_classes(struct device *d, json_t *test)
{
    struct bench b;
    float losses[16];
    int32_t labels[16];
    open_sampled(&b, d, test, false);
    for (int64_t i = 0; i < length(test, "labels"); i++)
        labels[i] = (int32_t)number_at(json_object_get(test, "labels"), i);
    bench_forward(&b);
    judge(&b, json_string_value(json_object_get(test, "loss")), labels, losses);
    check_floats(test, "all_classes", losses);
    bench_close(&b);
}

static void sampled_losses_are_those_of_tensorflow(void **state)
{
    struct device device = open_device_or_skip(*state);
    json_t *file = load(), *test;
    size_t index;
    json_array_foreach(json_object_get(file, "sampled"), index, test)
    {
        check_sampled(&device, test);
        check_all_classes(&device, test);
    }
    assert_int_equal(index, 4);
    json_decref(file);
    device_close(&device);
}

/* ---- of a batch ---- */

static void a_softmax_within_the_batch_is_that_of_tensorflow(void **state)
{
    struct device device = open_device_or_skip(*state);
    json_t *file = load(), *test = json_object_get(file, "in_batch"), *attributes = json_object();
    const int64_t batch = length(test, "ids"), width = length(test, "query") / batch;
    const struct op_case shapes = {
        .input_count = 4,
        .input = {{2, {batch, width}}, {2, {batch, width}}, {2, {batch, 1}}, {2, {batch, 1}}},
        .buckets = 100};
    struct bench b;
    float losses[16];
    json_object_set_new(attributes, "ids", json_string("input_2"));
    json_object_set_new(attributes, "frequency", json_string("input_3"));
    json_object_set(attributes, "temperature", json_object_get(test, "temperature"));
    bench_open(&b, &device, kinds_find(&op_kinds, "in_batch_logits")->descriptor, attributes,
               &shapes);
    read_floats(test, "query", b.input[0].value);
    read_floats(test, "item", b.input[1].value);
    read_floats(test, "frequency", b.input[3].value);
    for (int64_t i = 0; i < batch; i++)
        ((int64_t *)b.input[2].value)[i] = (int64_t)number_at(json_object_get(test, "ids"), i);
    bench_forward(&b);
    judge(&b, "softmax_cross_entropy", NULL, losses);
    check_floats(test, "losses", losses);
    bench_backward(&b);
    json_t *gradients = json_object();
    json_object_set(gradients, "query", json_array_get(json_object_get(test, "gradients"), 0));
    json_object_set(gradients, "item", json_array_get(json_object_get(test, "gradients"), 1));
    check_floats(gradients, "query", b.input[0].gradient);
    check_floats(gradients, "item", b.input[1].gradient);
    bench_close(&b);
    json_decref(gradients);
    json_decref(attributes);
    json_decref(file);
    device_close(&device);
}

/* ---- a share of the noes ---- */

/* Among the rows that are there the odds of a yes are 1 / rate times those among all. */
static void logits_are_shifted_in_training_alone(void **state)
{
    const struct op_case shapes = {.input_count = 1, .input = {{2, {2, 1}}}};
    const struct op *op = kinds_find(&op_kinds, "negative_sampling")->descriptor;
    struct device device = open_device();
    for (int training = 0; training < 2; training++) {
        struct bench b;
        json_t *attributes = object_from("{\"rate\": 0.25}");
        bench_open_for(&b, &device, op, attributes, &shapes, training);
        ((float *)b.input[0].value)[0] = logf(0.5f);
        bench_forward(&b);
        assert_near(exp((double)((float *)b.node.output.value)[0]), training ? 0.5 / 0.25 : 0.5,
                    1e-6);
        json_decref(attributes);
        bench_close(&b);
    }
    device_close(&device);
}

/* ---- samplers ---- */

enum { CLASSES_MAX = 64, DRAWS = 20000 };

struct samplers {
    struct arena arena;
    struct sampler at[SAMPLER_UNIFORM + 1];
    json_t *file, *expected;
    int64_t classes, sampled;
};

static void open_samplers(struct samplers *s, bool unique)
{
    double counts[CLASSES_MAX];
    *s = (struct samplers){.file = load()};
    s->expected = json_object_get(s->file, "expected");
    s->classes = json_integer_value(json_object_get(s->expected, "classes"));
    s->sampled = json_integer_value(json_object_get(s->expected, "sampled"));
    const double distortion = json_number_value(json_object_get(s->expected, "distortion"));
    for (int64_t i = 0; i < s->classes; i++)
        counts[i] = number_at(json_object_get(s->expected, "counts"), i);
    for (int k = 0; k <= SAMPLER_UNIFORM; k++)
        assert_int_equal(sampler_open((enum sampler_kind)k, s->classes, unique, counts, distortion,
                                      &s->arena, &s->at[k]),
                         OK);
}

static void close_samplers(struct samplers *s)
{
    json_decref(s->file);
    arena_free(&s->arena);
}

static void what_is_expected_is_what_tensorflow_expects(void **state)
{
    struct samplers s;
    open_samplers(&s, false);
    const struct drawn drawn = {s.sampled, s.sampled};
    for (int k = 0; k < SAMPLER_UNIFORM; k++) {
        json_t *array = json_object_get(s.expected, sampler_names[k]);
        for (int64_t i = 0; i < s.classes; i++)
            assert_near(exp((double)sampler_log_expected(&s.at[k], &drawn, i)), number_at(array, i),
                        1e-6);
    }
    close_samplers(&s);
}

/* In many draws each class comes as often as it is expected, with replacement or without; so the
 * mean of what is expected of a draw is what came, within five deviations. */
static void classes_come_as_often_as_they_are_expected(void **state)
{
    for (int unique = 0; unique < 2; unique++) {
        struct samplers s;
        open_samplers(&s, unique);
        for (int k = 0; k <= SAMPLER_UNIFORM; k++) {
            double came[CLASSES_MAX] = {0}, expected[CLASSES_MAX] = {0};
            for (uint64_t draw = 0; draw < DRAWS; draw++) {
                int64_t got[CLASSES_MAX];
                const struct drawn drawn = sampler_draw(&s.at[k], 5, draw, s.sampled, got);
                for (int64_t i = 0; i < s.sampled; i++) came[got[i]]++;
                for (int64_t i = 0; i < s.classes; i++)
                    expected[i] += exp((double)sampler_log_expected(&s.at[k], &drawn, i));
                assert_true(drawn.tries >= s.sampled && drawn.count == s.sampled);
            }
            for (int64_t i = 0; i < s.classes; i++)
                if (unique) /* what the number of tries tells, which is not all of it */
                    assert_near(came[i], expected[i], 0.05 * expected[i] + 5 * sqrt(DRAWS));
                else
                    assert_near(came[i], expected[i], 5 * sqrt(expected[i] + 1) * sqrt(s.sampled));
        }
        close_samplers(&s);
    }
}

/* A restart draws the same; no two draws or keys do; and all that there are can be drawn. */
static void a_draw_is_its_key_and_number(void **state)
{
    struct samplers s;
    open_samplers(&s, true);
    for (int k = 0; k <= SAMPLER_UNIFORM; k++) {
        int64_t first[CLASSES_MAX], again[CLASSES_MAX];
        const size_t bytes = (size_t)s.sampled * sizeof *first;
        sampler_draw(&s.at[k], 5, 7, s.sampled, first);
        sampler_draw(&s.at[k], 5, 8, s.sampled, again);
        assert_int_not_equal(memcmp(first, again, bytes), 0);
        sampler_draw(&s.at[k], 6, 7, s.sampled, again);
        assert_int_not_equal(memcmp(first, again, bytes), 0);
        sampler_draw(&s.at[k], 5, 7, s.sampled, again);
        assert_memory_equal(first, again, bytes);
        bool has[CLASSES_MAX] = {0};
        const int64_t all = sampler_support(&s.at[k]);
        assert_int_equal(all, k == SAMPLER_UNIGRAM ? s.classes - 2 : s.classes);
        sampler_draw(&s.at[k], 5, 9, all, first);
        for (int64_t i = 0; i < all; i++) {
            assert_false(has[first[i]]);
            has[first[i]] = true;
        }
    }
    close_samplers(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_EVERY_ISA(sampled_losses_are_those_of_tensorflow),
        ON_EVERY_ISA(a_softmax_within_the_batch_is_that_of_tensorflow),
        cmocka_unit_test(logits_are_shifted_in_training_alone),
        cmocka_unit_test(what_is_expected_is_what_tensorflow_expects),
        cmocka_unit_test(classes_come_as_often_as_they_are_expected),
        cmocka_unit_test(a_draw_is_its_key_and_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
