/* test_embedding.c - rows of tables by ids, against what TensorFlow computed and in a graph. */
#include "tests/core/graph/models.h"

#include "tests/core/graph/bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct tolerance CLOSE = {.of_largest = 1e-5};
enum { PLACES = 3 }; /* as many ids as an example of the fixtures has, or more */

static json_t *load_cases(void)
{
    json_error_t error;
    json_t *json = json_load_file(FIXTURES "/ops.json", 0, &error);
    if (!json) fail_msg("%s", error.text);
    return json;
}

static json_t *data_of(json_t *object, const char *name)
{
    return json_object_get(json_object_get(object, name), "data");
}

static double number_at(json_t *array, int64_t i)
{
    return json_number_value(json_array_get(array, (size_t)i));
}

static int64_t dim_of(json_t *object, const char *name, int64_t axis)
{
    json_t *shape = json_object_get(json_object_get(object, name), "shape");
    return (int64_t)number_at(shape, axis);
}

static void read_floats(json_t *data, float *ret)
{
    for (size_t i = 0; i < json_array_size(data); i++) ret[i] = (float)number_at(data, (int64_t)i);
}

static void check_floats(json_t *data, const float *got, const char *what)
{
    float want[64];
    assert_true(json_array_size(data) <= sizeof want / sizeof *want);
    read_floats(data, want);
    assert_close(got, want, (int64_t)json_array_size(data), CLOSE, what);
}

/* Ids stand one after the other there, with the example of each beside it; without, each is an
 * example. */
static void fill_ids(struct bench *b, json_t *inputs)
{
    json_t *ids = data_of(inputs, "ids"), *examples = data_of(inputs, "rows");
    json_t *weights = data_of(inputs, "weights");
    int64_t *to = b->input[0].value, before = -1, place = 0;
    for (int64_t i = 0; i < shape_count(&b->input[0].shape); i++) to[i] = -1;
    for (int64_t i = 0; i < json_array_size(ids); i++) {
        const int64_t example = examples ? (int64_t)number_at(examples, i) : i;
        place = example == before ? place + 1 : 0;
        assert_true(place < PLACES);
        to[example * PLACES + place] = (int64_t)number_at(ids, i);
        if (weights)
            ((float *)b->weights.value)[example * PLACES + place] = (float)number_at(weights, i);
        before = example;
    }
}

static void check_case(struct device *device, json_t *test)
{
    json_t *inputs = json_object_get(test, "inputs"), *given = json_object_get(test, "attributes");
    json_t *attributes = json_object(), *combiner = json_object_get(given, "combiner");
    const int64_t width = dim_of(inputs, "table", 1);
    const int64_t batch = (int64_t)json_array_size(data_of(test, "output")) / width;
    const struct op_case shapes = {.input_count = 1,
                                   .input = {{2, {batch, PLACES}}},
                                   .buckets = dim_of(inputs, "table", 0),
                                   .is_weighted = json_object_get(inputs, "weights") != NULL};
    json_object_set_new(attributes, "dimension", json_integer(width));
    if (combiner) json_object_set(attributes, "combiner", combiner);
    struct bench b;
    bench_open(&b, device, kinds_find(&op_kinds, "embedding")->descriptor, attributes, &shapes);
    json_decref(attributes);
    fill_ids(&b, inputs);
    read_floats(data_of(inputs, "table"), b.node.param[0].value);
    bench_forward(&b);
    check_floats(data_of(test, "output"), b.node.output.value, "output");
    read_floats(data_of(test, "output_gradient"), b.node.output.gradient);
    bench_backward(&b);
    check_floats(data_of(json_object_get(test, "gradients"), "table"), b.node.param[0].gradient,
                 "gradient");
    bench_close(&b);
}

static void embeddings_are_those_of_tensorflow(void **state)
{
    struct device device = open_device_or_skip(*state);
    json_t *file = load_cases(), *test;
    size_t index;
    int checked = 0;
    json_array_foreach(json_object_get(file, "cases"), index, test)
    {
        const char *op = json_string_value(json_object_get(test, "op"));
        if (strcmp(op, "embedding") != 0 && strcmp(op, "embedding_bag") != 0) continue;
        check_case(&device, test);
        checked++;
    }
    assert_int_equal(checked, 7);
    json_decref(file);
    device_close(&device);
}

static const int64_t WORDS[] = {3, -1, 0, 3, 8, 8, -1, -1, 2, 1};
static const float COUNTS[] = {1, 9, 2, 0.5f, 1, 2, 9, 9, 3, -4};
static const struct column MORE[] = {
    {.name = "words",
     .dtype = INT64,
     .shape = {1, {2}},
     .at = WORDS,
     .buckets = 9,
     .is_weighted = true},
    {.name = "words/weights", .shape = {1, {2}}, .at = COUNTS},
};
static const struct column ANY[] = {
    {.name = "words", .dtype = INT64, .shape = {1, {2}}, .at = WORDS, .buckets = ANY_ID}};
static const struct setting SETTING = {
    .batch = 5, .features = {1, {6}}, .training = true, .more = MORE, .more_count = 2};

/* Of ids with weights, none of them, or one that is not above 0 */
static void tables_are_read_by_columns(void **state)
{
    struct device device = open_device();
    struct model m;
    model_open(&m, &device,
               "{\"model\": [{\"op\": \"linear\", \"name\": \"wide\", \"inputs\": [\"words\"]}, "
               "{\"op\": \"embedding\", \"name\": \"deep/words\", \"inputs\": [\"words\"], "
               "\"dimension\": 1}, {\"op\": \"add\", \"inputs\": [\"wide\", \"deep/words\"]}]}",
               &SETTING);
    const struct node *wide = &m.graph->nodes[0], *deep = &m.graph->nodes[1];
    assert_string_equal(wide->param[0].name, "wide/words/weights");
    assert_string_equal(wide->param[1].name, "wide/bias");
    assert_string_equal(deep->param[0].name, "deep/words/embedding_weights");
    for (int64_t i = 0; i < 9; i++)
        wide->param[0].value[i] = deep->param[0].value[i] = (float)(i + 1);
    wide->param[1].value[0] = 100;
    model_forward(&m, 5, 0);
    static const float sums[] = {104, 104, 127, 100, 101}, means[] = {4, 1.6f, 9, 0, 3};
    assert_close(wide->output.value, sums, 5, CLOSE, "linear");
    assert_close(deep->output.value, means, 5, CLOSE, "embedding");
    model_close(&m);
    device_close(&device);
}

static void a_column_is_read_once(void **state)
{
    struct model m;
    assert_int_equal(model_parse(&m,
                                 "{\"model\": [{\"op\": \"linear\", \"inputs\": [\"words\", "
                                 "\"words\"]}]}",
                                 &SETTING),
                     ERR_INPUT);
    assert_non_null(strstr(error_text(), "inputs: \"words\" is there twice"));
    model_close(&m);
}

static void a_table_is_made_row_by_row(void **state)
{
    struct model m;
    assert_int_equal(model_parse(&m,
                                 "{\"model\": [{\"op\": \"embedding\", \"inputs\": [\"words\"], "
                                 "\"dimension\": 2, \"initializer\": \"orthogonal\"}]}",
                                 &SETTING),
                     ERR_INPUT);
    assert_non_null(
        strstr(error_text(), "initializer: a table is made row by row, and orthogonal"));
    model_close(&m);
}

static const int64_t PARTS[] = {8, 8, -1, 3, 0, 1, 1, 1, 2, 5};
static const struct column PAIR[] = {
    {.name = "first", .dtype = INT64, .shape = {1, {2}}, .at = WORDS, .buckets = 9},
    {.name = "second", .dtype = INT64, .shape = {1, {2}}, .at = PARTS, .buckets = 9},
    {.name = "small", .dtype = INT64, .shape = {1, {2}}, .at = PARTS, .buckets = 8},
};
static const struct setting OF_PAIR = {
    .batch = 5, .features = {1, {6}}, .training = true, .more = PAIR, .more_count = 3};

/* Twice the same column among them, and once by another way of combining */
static const char SHARED[] =
    "{\"model\": [{\"op\": \"embedding\", \"name\": \"a\", \"inputs\": [\"first\"], "
    "\"dimension\": 3, \"combiner\": \"sum\"}, "
    "{\"op\": \"embedding\", \"name\": \"b\", \"inputs\": [\"second\"], \"table\": \"a\", "
    "\"dimension\": 3, \"combiner\": \"sqrtn\"}, "
    "{\"op\": \"embedding\", \"name\": \"c\", \"inputs\": [\"first\"], \"table\": \"a\", "
    "\"dimension\": 3}, "
    "{\"op\": \"concat\", \"inputs\": [\"a\", \"b\", \"c\"]}, "
    "{\"op\": \"dense\", \"units\": 1}]}";

static double loss_with(struct model *m, float *at, float value)
{
    const float before = *at;
    *at = value;
    const double loss = model_loss(m, 5, 0);
    *at = before;
    return loss;
}

/* By the slope of the loss; a second pass adds to what is there. */
static void a_shared_table_gets_the_gradients_of_all_that_read_it(void **state)
{
    enum { FLOATS = 9 * 3 };
    struct device device = open_device();
    struct model m;
    float once[FLOATS], twice[FLOATS];
    model_open(&m, &device, SHARED, &OF_PAIR);
    assert_int_equal(m.graph->param_count, 3);
    struct param *table = m.graph->params[0];
    assert_string_equal(table->name, "a/embedding_weights");
    model_loss(&m, 5, 0);
    plan_backward(m.plan, false, NULL, NULL);
    memcpy(once, table->gradient, sizeof once);
    for (int i = 0; i < FLOATS; i++) {
        const float v = table->value[i], step = 0.01f;
        const double slope = (loss_with(&m, table->value + i, v + step) -
                              loss_with(&m, table->value + i, v - step)) /
                             (2.0 * step);
        assert_near(once[i], slope, 1e-3 * (1 + fabs(slope)));
        twice[i] = 2 * once[i];
    }
    model_loss(&m, 5, 0);
    plan_backward(m.plan, true, NULL, NULL);
    assert_close(table->gradient, twice, FLOATS, CLOSE, "gradient of two batches");
    model_close(&m);
    device_close(&device);
}

static void a_table_that_cannot_be_shared_is_named(void **state)
{
    static const struct {
        const char *node, *text;
    } bad[] = {
        {"\"inputs\": [\"first\"], \"table\": \"d\", \"dimension\": 3",
         "no earlier node is called \"d\""},
        {"\"inputs\": [\"first\"], \"table\": \"c\", \"dimension\": 3",
         "no earlier node is called \"c\""},
        {"\"inputs\": [\"first\"], \"table\": \"wide\", \"dimension\": 3",
         "table: \"wide\" is linear, whose variables are not those of embedding"},
        {"\"inputs\": [\"first\"], \"weights_of\": \"wide\", \"dimension\": 3",
         "weights_of: \"wide\" is linear, whose variables are not those of embedding"},
        {"\"inputs\": [\"first\"], \"weights_of\": \"a\", \"table\": \"a\", \"dimension\": 3",
         "weights_of: \"table\" is there, too: one of the two"},
        {"\"inputs\": [\"small\"], \"table\": \"b\", \"dimension\": 3",
         "that of \"a\" has 9 rows, \"small\" names 8"},
        {"\"inputs\": [\"small\"], \"table\": \"a\", \"dimension\": 3",
         "that of \"a\" has 9 rows, \"small\" names 8"},
        {"\"inputs\": [\"first\"], \"table\": \"a\", \"dimension\": 2",
         "that of \"a\" is 3 wide, this node 2"},
        {"\"inputs\": [\"first\"], \"table\": \"a\", \"dimension\": 3, \"initializer\": \"zeros\"",
         "initializer: the table is that of \"a\""},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct model m;
        char text[768];
        snprintf(text, sizeof text,
                 "{\"model\": [{\"op\": \"linear\", \"name\": \"wide\", \"inputs\": [\"first\"]}, "
                 "{\"op\": \"embedding\", \"name\": \"a\", \"inputs\": [\"first\"], "
                 "\"dimension\": 3}, {\"op\": \"embedding\", \"name\": \"b\", \"inputs\": "
                 "[\"second\"], \"table\": \"a\", \"dimension\": 3}, "
                 "{\"op\": \"embedding\", \"name\": \"c\", %s}]}",
                 bad[i].node);
        assert_int_equal(model_parse(&m, text, &OF_PAIR), ERR_INPUT);
        assert_non_null(strstr(error_text(), "model[3] (embedding \"c\"): "));
        if (!strstr(error_text(), bad[i].text)) fail_msg("%s", error_text());
        model_close(&m);
    }
}

static void assert_model_refused(const char *model, const struct column *columns, const char *words)
{
    struct model m;
    struct setting setting = SETTING;
    setting.more = columns;
    if (columns == ANY) setting.more_count = 1;
    assert_int_equal(model_parse(&m, model, &setting), ERR_INPUT);
    if (!strstr(error_text(), words)) fail_msg("\"%s\" lacks \"%s\"", error_text(), words);
    model_close(&m);
}

#define EMBEDDING "{\"model\": [{\"op\": \"embedding\", \"inputs\": [\"words\"], \"dimension\": 2"
#define LINEAR "{\"model\": [{\"op\": \"linear\", \"inputs\": [\"words\"]"

static void a_table_grows_where_ids_are_any_and_only_there(void **state)
{
    const char *const any = "the ids of \"words\" are any", *const few = "ids below 9";
    assert_model_refused(EMBEDDING "}]}", ANY, any);
    assert_model_refused(LINEAR "}]}", ANY, any);
    assert_model_refused(EMBEDDING ", \"capacity\": \"dynamic\"}]}", MORE, few);
    assert_model_refused(LINEAR ", \"capacity\": \"dynamic\"}]}", MORE, few);
    assert_model_refused(EMBEDDING ", \"admit_after\": 2}]}", MORE,
                         "admit_after: a table has this");
    assert_model_refused(LINEAR ", \"evict_after_steps\": 2}]}", MORE,
                         "evict_after_steps: a table has this");
    /* a graph that holds all rows, as this one does */
    assert_model_refused(LINEAR ", \"capacity\": \"dynamic\"}]}", ANY,
                         "no place where all rows are held");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_EVERY_ISA(embeddings_are_those_of_tensorflow),
        cmocka_unit_test(tables_are_read_by_columns),
        cmocka_unit_test(a_column_is_read_once),
        cmocka_unit_test(a_table_is_made_row_by_row),
        cmocka_unit_test(a_shared_table_gets_the_gradients_of_all_that_read_it),
        cmocka_unit_test(a_table_that_cannot_be_shared_is_named),
        cmocka_unit_test(a_table_grows_where_ids_are_any_and_only_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
