/* test_columns.c - models that read columns of a batch by name. */
#include "tests/core/graph/models.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const float AGES[] = {1, 2, 3, 4, 5}, PAIRS[] = {10, 11, 20, 21, 30, 31, 40, 41, 50, 51};
static const struct column MORE[] = {
    {.name = "pairs", .shape = {1, {2}}, .at = PAIRS},
    {.name = "words", .dtype = INT64, .shape = {1, {1}}, .buckets = 9},
    {.name = "age", .shape = {1, {1}}, .at = AGES},
};
static const struct setting COLUMNS = {
    .batch = 5, .features = {1, {6}}, .training = true, .more = MORE, .more_count = 3};

/* "features" is one name among others, and need not be read. */
static void nodes_read_columns_by_name(void **state)
{
    struct device device = open_device();
    struct model m;
    model_open(&m, &device,
               "{\"model\": [{\"op\": \"concat\", \"inputs\": [\"age\", \"pairs\", \"age\"]}, "
               "{\"op\": \"dense\", \"units\": 1}]}",
               &COLUMNS);
    assert_int_equal(m.graph->input_count, 3); /* with the labels */
    for (int64_t rows = 5; rows >= 3; rows--) {
        model_forward(&m, rows, 0);
        const float *y = m.graph->nodes[0].output.value;
        for (int64_t i = 0; i < 5; i++) {
            const bool is_there = i < rows; /* those that are missing count as zeros */
            const float wanted[] = {AGES[i], PAIRS[2 * i], PAIRS[2 * i + 1], AGES[i]};
            for (int k = 0; k < 4; k++) assert_true(y[4 * i + k] == (is_there ? wanted[k] : 0));
        }
    }
    model_close(&m);
    device_close(&device);
}

/* Else the last batch of an evaluation would look up a row that no example names. */
static void rows_that_are_missing_name_no_id(void **state)
{
    static const int64_t words[] = {3, -1, 5, 6, 7, 8, 1, 2, 4, 0};
    const struct column column = {
        .name = "words", .dtype = INT64, .shape = {1, {2}}, .at = words, .buckets = 9};
    const struct setting setting = {
        .batch = 5, .features = {1, {6}}, .training = true, .more = &column, .more_count = 1};
    struct device device = open_device();
    struct model m;
    model_open(&m, &device,
               "{\"model\": [{\"op\": \"embedding\", \"inputs\": [\"words\"], \"dimension\": 4}, "
               "{\"op\": \"dense\", \"units\": 1}]}",
               &setting);
    for (int64_t rows = 5; rows >= 3; rows--) {
        model_forward(&m, rows, 0);
        int64_t got[10];
        device.kernels->download(&device, got, m.graph->nodes[0].input[0]->value, sizeof got);
        for (int64_t i = 0; i < 10; i++) assert_int_equal(got[i], i < 2 * rows ? words[i] : -1);
    }
    model_close(&m);
    device_close(&device);
}

/* Where a graph holds the rows of its batch, a table's ids are places in it: a mask of the same
 * column has the ids themselves, from a column of its own behind those of the data. */
static void a_mask_has_ids_as_they_are(void **state)
{
    static const char text[] =
        "{\"model\": [{\"op\": \"mask\", \"inputs\": [\"words\"]}, {\"op\": \"embedding\", "
        "\"inputs\": [\"words\"], \"dimension\": 4}, {\"op\": \"concat\", \"inputs\": "
        "[\"mask\", \"embedding\"]}, {\"op\": \"dense\", \"units\": 1}]}";
    struct setting setting = COLUMNS;
    for (int holds = 0; holds < 2; holds++) {
        struct model m;
        setting.holds_batch_rows = holds;
        assert_int_equal(model_parse(&m, text, &setting), OK);
        const struct graph *graph = m.graph;
        const struct tensor *of_mask = graph->nodes[0].input[0];
        const struct graph_input *read = &graph->inputs[graph_input_of(graph, of_mask)];
        assert_int_equal(of_mask == graph->nodes[1].input[0], !holds);
        assert_int_equal(read->is_raw, holds);
        assert_int_equal(read->column, holds ? m.column_count : read->source);
        assert_int_equal(graph->column_count, m.column_count + holds);
        model_close(&m);
    }
}

static void columns_that_cannot_be_read_are_named(void **state)
{
    static const struct {
        const char *node, *text;
    } bad[] = {
        {"\"inputs\": [\"words\"]", "inputs: \"words\" are ids"},
        {"\"inputs\": [\"labels\"]", "inputs: no node is called \"labels\""},
        {"\"inputs\": [\"agr\"]", "did you mean \"age\"?"},
        {"\"name\": \"pairs\"", "\"pairs\" is what the data is called"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct model m;
        char text[256];
        snprintf(text, sizeof text, "{\"model\": [{\"op\": \"dense\", \"units\": 1, %s}]}",
                 bad[i].node);
        assert_int_equal(model_parse(&m, text, &COLUMNS), ERR_INPUT);
        assert_non_null(strstr(error_text(), bad[i].text));
        model_close(&m);
    }
}

/* tf.losses.sigmoid_cross_entropy with weights: (2 * 0.693 + 0 + 0.5 * 0.693) / 2 weights that are
 * not 0, of logits of 0; and its gradient, by hand. The fourth row of the batch is missing. */
static void a_column_says_what_each_row_counts(void **state)
{
    static const float weights[] = {2, 0, 0.5f, 9}, ones[] = {1, 1, 1, 1};
    const struct column columns[] = {{.name = "weight", .shape = {1, {1}}, .at = weights},
                                     {.name = "one", .shape = {1, {1}}, .at = ones}};
    const struct setting setting = {.batch = 4,
                                    .features = {1, {6}},
                                    .training = true,
                                    .weight = "weight",
                                    .more = columns,
                                    .more_count = 2};
    struct device device = open_device();
    struct model m;
    model_open(&m, &device,
               "{\"model\": [{\"op\": \"dense\", \"inputs\": [\"one\"], \"units\": 1, "
               "\"kernel_initializer\": \"zeros\"}], \"loss\": \"sigmoid_cross_entropy\"}",
               &setting);
    struct param *bias = m.graph->params[1], *kernel = m.graph->params[0];
    memset(bias->value, 0, sizeof(float));
    memset(kernel->value, 0, sizeof(float));
    memcpy(m.labels, (float[]){1, 1, 0, 1}, 4 * sizeof(float));
    assert_near(model_loss(&m, 3, 0), 2.5 * log(2) / 2, 1e-6);
    plan_backward(m.plan, false, NULL, NULL);
    assert_near(bias->gradient[0], (2 * -0.5 + 0.5 * 0.5) / 2, 1e-6);
    assert_near(model_loss(&m, 4, 0), 11.5 * log(2) / 3, 1e-6);
    model_close(&m);
    device_close(&device);
}

/* By weights: at 0.5 the yes of weight 2 is above, that of weight 1 below. */
static void expect_curve(const struct metric_node *metric, const double *states)
{
    enum { N = 11, HALF = 5 };
    float curve[PR_ROWS * N];
    assert_int_equal(metric->metric->thresholds(metric), N);
    metric->metric->curve(metric, states, curve);
    const double no = curve[PR_NO_ABOVE * N];
    assert_near(curve[PR_YES_ABOVE * N], 3, 0); /* all are above the first */
    assert_near(curve[PR_RECALL * N], 1, 0);
    assert_near(curve[PR_YES_ABOVE * N + N - 1], 0, 0); /* and none above the last */
    assert_near(curve[PR_PRECISION * N + N - 1], 0, 0);
    assert_near(curve[PR_YES_ABOVE * N + HALF], 2, 0);
    assert_near(curve[PR_YES_BELOW * N + HALF], 1, 0);
    assert_near(curve[PR_NO_ABOVE * N + HALF], no, 0);
    assert_near(curve[PR_NO_BELOW * N + HALF], 0, 0);
    assert_near(curve[PR_PRECISION * N + HALF], 2 / (2 + no), 1e-6);
    assert_near(curve[PR_RECALL * N + HALF], 2 / 3.0, 1e-6);
}

/* Of the same answers as tf.metrics with weights, by hand */
static void metrics_count_rows_by_their_weights(void **state)
{
    static const float weights[] = {2, 0, 0.5f, 1};
    static const float said[] = {0.9f, 0.8f, 0.7f, 0.2f}, wanted[] = {1, 0, 0, 1};
    static const double results[] = {2 / 3.5, 2 / 2.5, 2 / 3.0, 1, 2.35 / 3};
    const struct column columns[] = {{.name = "weight", .shape = {1, {1}}, .at = weights},
                                     {.name = "said", .shape = {1, {1}}, .at = said}};
    const struct setting setting = {.batch = 4,
                                    .features = {1, {6}},
                                    .training = true,
                                    .weight = "weight",
                                    .more = columns,
                                    .more_count = 2};
    struct device device = open_device();
    struct model m;
    model_open(
        &m, &device,
        "{\"model\": [{\"op\": \"dense\", \"inputs\": [\"said\"], \"units\": 1}], \"loss\": "
        "\"log_loss\", \"metrics\": [\"accuracy\", \"precision\", \"recall\", {\"op\": \"auc\", "
        "\"summation_method\": \"ranking\"}, \"calibration\", {\"op\": \"auc\", "
        "\"num_thresholds\": 11}]}",
        &setting);
    memcpy(m.graph->params[0]->value, (float[]){1}, sizeof(float));
    memset(m.graph->params[1]->value, 0, sizeof(float));
    memcpy(m.labels, wanted, sizeof wanted);
    model_forward(&m, 4, 0);
    for (int i = 0; i < m.graph->metric_count; i++) {
        const struct metric_node *metric = &m.graph->metrics[i];
        double states[32] = {0};
        metric->metric->update(metric, &device, 4, states);
        if (i == 5) expect_curve(metric, states);
        /* of auc: the yes of weight 2 is above the no, that of weight 1 below */
        const double wanted_result = i == 3 || i == 5 ? 2 / 3.0 : results[i];
        assert_near(metric_result(metric, states), wanted_result, 1e-5);
    }
    model_close(&m);
    device_close(&device);
}

/* The ids of the data, where a table's of the same column are places; a user who took all of what
 * was offered does not count. */
static void gauc_reads_ids_that_nodes_need_not_read(void **state)
{
    static const float said[] = {0.9f, 0.8f, 0.7f, 0.2f, 0.6f, 0.5f}, wanted[] = {1, 0, 1, 1, 0, 1};
    static const int64_t users[] = {INT64_MAX, INT64_MAX, 5, 5, INT64_MAX - 1, INT64_MAX - 1};
    const struct column columns[] = {
        {.name = "user", .dtype = INT64, .shape = {1, {1}}, .at = users},
        {.name = "said", .shape = {1, {1}}, .at = said}};
    const struct setting setting = {
        .batch = 6, .features = {1, {6}}, .training = true, .more = columns, .more_count = 2};
    struct device device = open_device();
    struct model m;
    model_open(&m, &device,
               "{\"model\": [{\"op\": \"dense\", \"inputs\": [\"said\"], \"units\": 1}], \"loss\": "
               "\"log_loss\", \"metrics\": [{\"op\": \"gauc\", \"by\": \"user\"}]}",
               &setting);
    memcpy(m.graph->params[0]->value, (float[]){1}, sizeof(float));
    memset(m.graph->params[1]->value, 0, sizeof(float));
    memcpy(m.labels, wanted, sizeof wanted);
    model_forward(&m, 6, 0);
    const struct metric_node *metric = &m.graph->metrics[0];
    double states[1 + 3 * 6] = {0};
    assert_string_equal(metric->name, "gauc_user");
    assert_int_equal(metric_state_count(metric, 6), 1 + 3 * 6);
    metric->metric->update(metric, &device, 6, states);
    assert_near(metric_result(metric, states), 0.5, 1e-12); /* one is right, one is not */
    model_close(&m);
    device_close(&device);
}

static void groups_that_cannot_be_had_are_named(void **state)
{
    static const char *const bad[] = {"age", "pairs", "nobody", "many"};
    const struct column many = {.name = "many", .dtype = INT64, .shape = {1, {2}}, .buckets = 9};
    struct column columns[4] = {MORE[0], MORE[1], MORE[2], many};
    struct setting setting = COLUMNS;
    setting.more = columns;
    setting.more_count = 4;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct model m;
        char text[256], wanted[256];
        snprintf(
            text, sizeof text,
            "{\"model\": [{\"op\": \"dense\", \"inputs\": [\"age\"], \"units\": 1}], \"loss\": "
            "\"sigmoid_cross_entropy\", \"metrics\": [{\"op\": \"gauc\", \"by\": \"%s\"}]}",
            bad[i]);
        assert_int_equal(model_parse(&m, text, &setting), ERR_INPUT);
        snprintf(wanted, sizeof wanted,
                 "metrics[0] (gauc): by: expected the name of a column of ids, one of each row, "
                 "got \"%s\"",
                 bad[i]);
        assert_non_null(strstr(error_text(), wanted));
        model_close(&m);
    }
}

static void weights_that_cannot_be_had_are_named(void **state)
{
    const struct column words = {.name = "words", .dtype = INT64, .shape = {1, {1}}, .buckets = 9};
    struct setting setting = {
        .batch = 4, .features = {1, {6}}, .weight = "words", .more = &words, .more_count = 1};
    for (int i = 0; i < 2; i++) {
        struct model m;
        assert_int_equal(
            model_parse(&m, "{\"model\": [{\"op\": \"dense\", \"units\": 1}]}", &setting),
            ERR_INPUT);
        assert_non_null(strstr(error_text(), "data.weight: expected the name of a numeric column"));
        model_close(&m);
        setting.weight = "wordz";
    }
}

static void weights_beside_what_weighs_already_are_refused_with_the_reason(void **state)
{
    static const char *const refused[][2] = {
        {"{\"model\": [{\"op\": \"dense\", \"units\": 6}, {\"op\": \"reshape\", \"shape\": [3, "
         "2]}], "
         "\"loss\": \"softmax_cross_entropy\"}",
         "data.weight: an example has 3 labels for loss (softmax_cross_entropy)"},
        {"{\"model\": [{\"op\": \"dense\", \"units\": 2}], "
         "\"loss\": {\"op\": \"softmax_cross_entropy\", \"class_weights\": [1, 2]}}",
         "data.weight: loss (softmax_cross_entropy) has class_weights: one of the two"},
    };
    const struct column weight = {.name = "w", .dtype = FLOAT32, .shape = {1, {1}}};
    const struct setting setting = {
        .batch = 4, .features = {1, {6}}, .weight = "w", .more = &weight, .more_count = 1};
    for (int i = 0; i < 2; i++) {
        struct model m;
        assert_int_equal(model_parse(&m, refused[i][0], &setting), ERR_INPUT);
        assert_non_null(strstr(error_text(), refused[i][1]));
        model_close(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_read_columns_by_name),
        cmocka_unit_test(rows_that_are_missing_name_no_id),
        cmocka_unit_test(a_mask_has_ids_as_they_are),
        cmocka_unit_test(columns_that_cannot_be_read_are_named),
        cmocka_unit_test(a_column_says_what_each_row_counts),
        cmocka_unit_test(metrics_count_rows_by_their_weights),
        cmocka_unit_test(gauc_reads_ids_that_nodes_need_not_read),
        cmocka_unit_test(groups_that_cannot_be_had_are_named),
        cmocka_unit_test(weights_that_cannot_be_had_are_named),
        cmocka_unit_test(weights_beside_what_weighs_already_are_refused_with_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
