/* test_fixtures.c - every op, loss and metric against what TensorFlow computed. */
#include "tests/core/graph/bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"

/* TensorFlow's are sums of float32, too. */
static const struct tolerance CLOSE = {.of_largest = 1e-5};

static json_t *load(const char *name)
{
    char path[512];
    json_error_t error;
    snprintf(path, sizeof path, "%s/%s", FIXTURES, name);
    json_t *json = json_load_file(path, 0, &error);
    if (!json) fail_msg("%s: %s", path, error.text);
    return json;
}

static struct shape shape_of(json_t *array)
{
    json_t *dims = json_object_get(array, "shape");
    struct shape shape = {.rank = (int)json_array_size(dims)};
    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = json_integer_value(json_array_get(dims, (size_t)i));
    return shape;
}

static void read_floats(json_t *array, float *ret)
{
    json_t *data = json_object_get(array, "data");
    for (size_t i = 0; i < json_array_size(data); i++)
        ret[i] = (float)json_number_value(json_array_get(data, i));
}

static void read_ints(json_t *array, int32_t *ret)
{
    json_t *data = json_object_get(array, "data");
    for (size_t i = 0; i < json_array_size(data); i++)
        ret[i] = (int32_t)json_integer_value(json_array_get(data, i));
}

static float *floats_of(json_t *array, struct memory *memory)
{
    const size_t count = json_array_size(json_object_get(array, "data"));
    float *floats = memory_take(memory, count * sizeof *floats);
    read_floats(array, floats);
    return floats;
}

/* What is a param of ours, by the names of the op and of the param in the fixtures */
static const struct {
    const char *op, *name, *param; /* op NULL: of any */
} PARAMS[] = {
    {"gru", "gate_kernel", "gates/kernel"},
    {"gru", "gate_bias", "gates/bias"},
    {"gru", "kernel", "candidate/kernel"},
    {"gru", "bias", "candidate/bias"},
    {"depthwise_conv2d", "kernel", "depthwise_kernel"},
    {NULL, "kernel", "kernel"},
    {NULL, "bias", "bias"},
    {NULL, "gamma", "gamma"},
    {NULL, "beta", "beta"},
    {NULL, "moving_mean", "moving_mean"},
    {NULL, "moving_variance", "moving_variance"},
};

static const char *param_of(const char *op, const char *name)
{
    for (size_t i = 0; i < sizeof PARAMS / sizeof *PARAMS; i++)
        if ((!PARAMS[i].op || strcmp(PARAMS[i].op, op) == 0) && strcmp(PARAMS[i].name, name) == 0)
            return PARAMS[i].param;
    return NULL;
}

/* NULL: it is an input of the op. */
static struct param *find_param(struct node *node, const char *name)
{
    const char *param = param_of(node->op->object.name, name);
    for (int i = 0; i < node->param_count && param; i++)
        if (strcmp(strchr(node->param[i].name, '/') + 1, param) == 0) return &node->param[i];
    return NULL;
}

/* What our spec says besides TensorFlow's attributes: the number of outputs. */
static json_t *complete_attributes(json_t *test)
{
    const char *op = json_string_value(json_object_get(test, "op"));
    json_t *attributes = json_copy(json_object_get(test, "attributes"));
    const struct shape output = shape_of(json_object_get(test, "output"));
    json_object_del(attributes, "note");
    if (strcmp(op, "reduce") != 0) json_object_del(attributes, "reduction");
    json_object_del(attributes, "training");
    json_object_del(attributes, "layout");
    if (strcmp(op, "reduce_mean") == 0) {
        json_object_set_new(attributes, "reduction", json_string("mean"));
        json_object_set(attributes, "axes", json_object_get(attributes, "axis"));
        json_object_del(attributes, "axis");
    }
    if (strcmp(op, "causal_attention") == 0) { /* its heads are examples of their own */
        json_object_clear(attributes);
        json_object_set_new(attributes, "causal", json_true());
    }
    if (strcmp(op, "dense") == 0)
        json_object_set_new(attributes, "units", json_integer(output.dim[output.rank - 1]));
    if (strcmp(op, "lstm") == 0 || strcmp(op, "gru") == 0)
        json_object_set_new(attributes, "initial_state", json_string("input_1"));
    if (strcmp(op, "lstm") == 0)
        json_object_set_new(attributes, "initial_cell", json_string("input_2"));
    if (strcmp(op, "conv1d") == 0 || strcmp(op, "conv2d") == 0 ||
        strcmp(op, "conv2d_transpose") == 0)
        json_object_set_new(attributes, "filters", json_integer(output.dim[output.rank - 1]));
    if (strcmp(op, "depthwise_conv2d") == 0 || strcmp(op, "conv2d_transpose") == 0)
        json_object_set_new(attributes, "use_bias", json_false());
    return attributes;
}

static void open_case(struct bench *b, struct device *device, const struct op *op, json_t *test)
{
    struct op_case shapes = {.input_count = 0};
    json_t *inputs = json_object_get(test, "inputs"), *array;
    const char *name;
    json_object_foreach(inputs, name, array)
    {
        if (!param_of(op->object.name, name)) shapes.input[shapes.input_count++] = shape_of(array);
    }
    json_t *attributes = complete_attributes(test);
    bench_open(b, device, op, attributes, &shapes);
    json_decref(attributes);

    int input = 0;
    json_object_foreach(inputs, name, array)
    {
        struct param *param = find_param(&b->node, name);
        if (param_of(op->object.name, name)) assert_non_null(param);
        read_floats(array, param ? param->value : b->input[input++].value);
    }
}

static void check_gradients(struct bench *b, json_t *test, const char *title)
{
    int input = 0;
    const char *name;
    json_t *array;
    json_object_foreach(json_object_get(test, "gradients"), name, array)
    {
        struct param *param = find_param(&b->node, name);
        const float *got = param ? param->gradient : b->input[input++].gradient;
        const struct shape shape = shape_of(array);
        char what[192];
        snprintf(what, sizeof what, "%s gradient of %s", title, name);
        assert_close(got, floats_of(array, &b->memory), shape_count(&shape), CLOSE, what);
    }
}

static void run_op(struct device *device, const struct op *op, json_t *test, const char *title)
{
    struct bench b;
    open_case(&b, device, op, test);
    json_t *output = json_object_get(test, "output");
    const struct shape shape = shape_of(output);
    assert_true(shape_equal(&shape, &b.node.output.shape));

    const json_t *training = json_object_get(json_object_get(test, "attributes"), "training");
    b.node.training = !json_is_false(training);
    bench_forward(&b);
    assert_close(b.node.output.value, floats_of(output, &b.memory), shape_count(&shape), CLOSE,
                 title);
    if (!b.node.training) {
        bench_close(&b);
        return;
    }
    read_floats(json_object_get(test, "output_gradient"), b.node.output.gradient);
    bench_backward(&b);
    check_gradients(&b, test, title);
    bench_close(&b);
}

/* Predictions of one number per example are [batch, 1] for us. */
static void open_loss_case(struct loss_bench *b, struct device *device, const struct loss *loss,
                           json_t *test)
{
    json_t *inputs = json_object_get(test, "inputs");
    json_t *logits = json_object_get(inputs, "logits");
    if (!logits) logits = json_object_get(inputs, "predictions");
    struct shape shape = shape_of(logits);
    if (shape.rank == 1) shape = (struct shape){2, {shape.dim[0], 1}};

    json_t *attributes = complete_attributes(test), *labels = json_object_get(inputs, "labels");
    loss_bench_open(b, device, loss, attributes, &shape);
    json_decref(attributes);
    read_floats(logits, b->logits.value);
    if (b->node.labels.dtype == INT32)
        read_ints(labels, b->node.labels.value);
    else
        read_floats(labels, b->node.labels.value);
}

/* TensorFlow's output is the mean, or one loss per row; the gradient is of sum(output * dy), ours
 * of the mean. */
static void run_loss(struct device *device, const struct loss *loss, json_t *test,
                     const char *title)
{
    struct loss_bench b;
    open_loss_case(&b, device, loss, test);
    const int64_t rows = b.logits.shape.dim[0], columns = b.logits.shape.dim[1];
    const float *want = floats_of(json_object_get(test, "output"), &b.memory);
    const float *dy = floats_of(json_object_get(test, "output_gradient"), &b.memory);
    const bool is_mean = shape_of(json_object_get(test, "output")).rank == 0;
    const float mean = (float)loss_bench_mean(&b, rows);
    assert_close(is_mean ? &mean : b.node.losses, want, is_mean ? 1 : rows, CLOSE, title);

    const double weight = b.node.counts.counted;
    for (int64_t i = 0; i < rows * columns; i++)
        b.logits.gradient[i] *= is_mean ? dy[0] : (float)(weight * dy[i / columns]);
    json_t *gradients = json_object_get(test, "gradients");
    json_t *gradient = json_object_get(gradients, "logits");
    if (!gradient) gradient = json_object_get(gradients, "predictions");
    assert_close(b.logits.gradient, floats_of(gradient, &b.memory), rows * columns, CLOSE, title);
    loss_bench_close(&b);
}

/* What a batch of images tells whoever keeps the moving variance */
static void run_fused_variance(struct device *device, json_t *test, const char *title)
{
    const struct op *op = kinds_find(&op_kinds, "batch_normalization")->descriptor;
    json_t *output = json_object_get(test, "output");
    struct bench b;
    open_case(&b, device, op, test);
    bench_forward(&b);
    bench_backward(&b);
    assert_close(find_param(&b.node, "moving_variance")->gradient, floats_of(output, &b.memory),
                 shape_of(output).dim[0], CLOSE, title);
    bench_close(&b);
}

static const char *our_name(const char *name)
{
    if (strcmp(name, "reduce_mean") == 0) return "reduce";
    if (strcmp(name, "max_norm") == 0) return "clip_by_norm";
    return strcmp(name, "causal_attention") == 0 ? "attention" : name;
}

static void run_case(struct device *device, json_t *test, int index)
{
    const char *name = json_string_value(json_object_get(test, "op"));
    const char *ours = our_name(name);
    const struct kind *op = kinds_find(&op_kinds, ours), *loss = kinds_find(&loss_kinds, name);
    const bool has_weights = json_object_get(json_object_get(test, "inputs"), "weights") != NULL;
    char title[64];
    snprintf(title, sizeof title, "case %d (%s)", index, name);
    if (strncmp(name, "embedding", strlen("embedding")) == 0) return; /* test_embedding.c */
    if (strncmp(name, "clip_by_", strlen("clip_by_")) == 0) return;   /* test_optimizers.c */
    if (strcmp(name, "fused_batch_variance") == 0) {
        run_fused_variance(device, test, title);
        return;
    }
    if (loss && has_weights) return; /* a weight per example is no part of a batch */
    if (op)
        run_op(device, op->descriptor, test, title);
    else if (loss)
        run_loss(device, loss->descriptor, test, title);
    else
        fail_msg("%s: there is no such op", title);
}

static void run_cases(struct device *device, const char *name, size_t at_least)
{
    json_t *file = load(name), *test;
    size_t index;
    json_array_foreach(json_object_get(file, "cases"), index, test)
    {
        run_case(device, test, (int)index);
    }
    assert_true(index >= at_least);
    json_decref(file);
}

static void ops_and_losses_compute_what_tensorflow_does(void **state)
{
    struct device device = open_device_or_skip(*state);
    run_cases(&device, "ops.json", 60);
    run_cases(&device, "conv1d.json", 5);
    run_cases(&device, "max_norm.json", 4);
    run_cases(&device, "borders.json", 100);
    device_close(&device);
}

/* A metric on logits and labels of its own, by rows of these groups where it has some. */
static double measure_by(struct loss_bench *b, const char *metric, const char *attributes,
                         void *groups)
{
    const struct kind *kind = kinds_find(&metric_kinds, metric);
    assert_non_null(kind);
    json_t *json = object_from(attributes);
    struct metric_node node = {.metric = kind->descriptor, .name = metric, .loss = &b->node};
    node.groups.value = groups;
    node.attributes = attributes_from(kind->object, json, &b->arena);
    json_decref(json);
    assert_int_equal(node.metric->infer(&node, &b->arena), OK);

    const int64_t rows = b->logits.shape.dim[0], half = rows / 2;
    const size_t bytes = (size_t)metric_state_count(&node, rows) * sizeof(double);
    double *state = arena_new(&b->arena, bytes);
    loss_bench_count(b, rows);
    node.metric->update(&node, b->device, half, state);
    memset(state, 0, bytes); /* what is added is the rows' own */
    node.metric->update(&node, b->device, rows, state);
    return metric_result(&node, state);
}

static double measure(struct loss_bench *b, const char *metric, const char *attributes)
{
    return measure_by(b, metric, attributes, NULL);
}

static double value_of(json_t *file, const char *metric)
{
    json_t *test;
    size_t index;
    json_array_foreach(json_object_get(file, "cases"), index, test)
    {
        if (strcmp(json_string_value(json_object_get(test, "metric")), metric) != 0) continue;
        json_t *data = json_object_get(json_object_get(test, "value"), "data");
        return json_number_value(json_array_get(data, 0));
    }
    fail_msg("no case of %s", metric);
    return 0;
}

static void open_loss(struct loss_bench *b, struct device *device, const char *loss,
                      const struct shape *logits)
{
    json_t *none = json_object();
    loss_bench_open(b, device, kinds_find(&loss_kinds, loss)->descriptor, none, logits);
    json_decref(none);
}

static void metrics_of_classes_are_those_of_tensorflow(void **state)
{
    struct device device = open_device_or_skip(*state);
    json_t *file = load("metrics.json");
    struct loss_bench b;
    const struct shape shape = shape_of(json_object_get(file, "class_logits"));
    open_loss(&b, &device, "softmax_cross_entropy", &shape);
    read_floats(json_object_get(file, "class_logits"), b.logits.value);
    read_ints(json_object_get(file, "class_labels"), b.node.labels.value);

    assert_near(measure(&b, "accuracy", "{}"), value_of(file, "class_accuracy"), 1e-6);
    assert_near(measure(&b, "in_top_k", "{\"k\": 3}"), value_of(file, "in_top_k"), 1e-6);
    loss_bench_close(&b);
    json_decref(file);
    device_close(&device);
}

/* TensorFlow's threshold is 0.5 on probabilities, ours 0 on logits: p - 0.5 has its sign. */
static void accuracy_of_a_threshold_is_that_of_tensorflow(void **state)
{
    struct device device = open_device_or_skip(*state);
    json_t *file = load("metrics.json");
    struct loss_bench b;
    const struct shape shape = {2, {shape_of(json_object_get(file, "labels")).dim[0], 1}};
    open_loss(&b, &device, "sigmoid_cross_entropy", &shape);
    float *logits = b.logits.value;
    read_floats(json_object_get(file, "predictions"), logits);
    for (int64_t i = 0; i < shape.dim[0]; i++) logits[i] -= 0.5f;
    read_floats(json_object_get(file, "labels"), b.node.labels.value);

    assert_near(measure(&b, "accuracy", "{}"), value_of(file, "accuracy"), 1e-6);
    loss_bench_close(&b);
    json_decref(file);
    device_close(&device);
}

/* Of one number per example, the labels beside it; all that is in the file but for weights */
static void open_answers(struct loss_bench *b, struct device *device, json_t *file,
                         const char *loss)
{
    json_t *labels = json_object_get(file, "labels");
    open_loss(b, device, loss, &(struct shape){2, {shape_of(labels).dim[0], 1}});
    read_floats(json_object_get(file, "predictions"), b->logits.value);
    read_floats(labels, b->node.labels.value);
}

/* Every case of the metric that has no weights; returns how many. */
static int check_metric(struct loss_bench *b, json_t *file, const char *metric)
{
    int checked = 0;
    json_t *test;
    size_t index;
    json_array_foreach(json_object_get(file, "cases"), index, test)
    {
        json_t *attributes = json_object_get(test, "attributes");
        json_t *data = json_object_get(json_object_get(test, "value"), "data");
        if (strcmp(json_string_value(json_object_get(test, "metric")), metric) != 0) continue;
        if (json_object_get(attributes, "weighted")) continue;
        char *text = json_dumps(attributes, 0);
        assert_near(measure(b, metric, text), json_number_value(json_array_get(data, 0)), 1e-6);
        free(text);
        checked++;
    }
    return checked;
}

static void metrics_of_yes_and_no_are_those_of_tensorflow(void **state)
{
    struct device device = open_device_or_skip(*state);
    json_t *file = load("metrics.json");
    struct loss_bench b;
    open_answers(&b, &device, file, "log_loss");
    for (int is_logit = 0; is_logit < 2; is_logit++) {
        assert_int_equal(check_metric(&b, file, "auc"), 3);
        assert_int_equal(check_metric(&b, file, "precision"), 1);
        assert_int_equal(check_metric(&b, file, "recall"), 1);
        assert_near(measure(&b, "accuracy", "{}"), value_of(file, "accuracy"), 1e-6);
        if (is_logit) break;
        loss_bench_close(&b);
        open_answers(&b, &device, file, "sigmoid_cross_entropy");
        float *x = b.logits.value;
        for (int64_t i = 0; i < b.logits.shape.dim[0]; i++) x[i] = logf(x[i] / (1 - x[i]));
    }
    loss_bench_close(&b);
    json_decref(file);
    device_close(&device);
}

static void metrics_of_numbers_are_those_of_tensorflow(void **state)
{
    struct device device = open_device_or_skip(*state);
    json_t *file = load("metrics.json");
    struct loss_bench b;
    open_answers(&b, &device, file, "mean_squared_error");
    assert_int_equal(check_metric(&b, file, "mean_absolute_error"), 1);
    assert_int_equal(check_metric(&b, file, "root_mean_squared_error"), 1);
    loss_bench_close(&b);
    json_decref(file);
    device_close(&device);
}

/* A yes above a no counts one, beside it one half; precision at x is that of all from x on. */
static void rank(const float *x, const float *labels, int64_t n, double *ret_roc, double *ret_pr)
{
    double pairs = 0, won = 0, yes = 0, precision = 0;
    for (int64_t i = 0; i < n; i++) {
        if (labels[i] < 0.5f) continue;
        double above = 0, above_yes = 0;
        for (int64_t j = 0; j < n; j++) {
            above += x[j] >= x[i];
            above_yes += x[j] >= x[i] && labels[j] > 0.5f;
            if (labels[j] > 0.5f) continue;
            pairs++;
            won += x[i] > x[j] ? 1 : x[i] == x[j] ? 0.5 : 0;
        }
        yes++;
        precision += above_yes / above;
    }
    *ret_roc = won / pairs;
    *ret_pr = precision / yes;
}

/* With many predictions that are equal, and without */
static void an_area_by_ranking_is_exact(void **state)
{
    struct device device = open_device_or_skip(*state);
    json_t *file = load("metrics.json");
    struct loss_bench b;
    open_answers(&b, &device, file, "sigmoid_cross_entropy");
    float *x = b.logits.value;
    const int64_t n = b.logits.shape.dim[0];
    for (int round = 0; round < 2; round++) {
        double roc, pr;
        rank(x, b.node.labels.value, n, &roc, &pr);
        assert_near(measure(&b, "auc", "{\"summation_method\": \"ranking\"}"), roc, 1e-12);
        assert_near(measure(&b, "auc", "{\"curve\": \"PR\", \"summation_method\": \"ranking\"}"),
                    pr, 1e-12);
        for (int64_t i = 0; i < n; i++) x[i] = roundf(8 * x[i]) - 4;
    }
    loss_bench_close(&b);
    json_decref(file);
    device_close(&device);
}

static void check_log_loss(struct device *device, json_t *file, const char *loss)
{
    struct loss_bench b;
    open_answers(&b, device, file, loss);
    assert_near(measure(&b, "log_loss", "{}"), loss_bench_mean(&b, b.logits.shape.dim[0]), 1e-6);
    loss_bench_close(&b);
}

static void the_log_loss_is_the_loss_of_yes_and_no(void **state)
{
    struct device device = open_device_or_skip(*state);
    json_t *file = load("metrics.json");
    check_log_loss(&device, file, "log_loss");
    check_log_loss(&device, file, "sigmoid_cross_entropy");
    json_decref(file);
    device_close(&device);
}

static void what_is_taken_for_yes_depends_on_the_threshold(void **state)
{
    struct device device = open_device_or_skip(*state);
    struct loss_bench b;
    open_loss(&b, &device, "log_loss", &(struct shape){2, {3, 2}});
    memcpy(b.logits.value, (float[]){0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.9f}, 6 * sizeof(float));
    memcpy(b.node.labels.value, (float[]){0, 1, 1, 0, 0, 1}, 6 * sizeof(float));
    assert_near(measure(&b, "precision", "{}"), 1, 0);
    assert_near(measure(&b, "recall", "{}"), 1 / 3.0, 1e-12);
    assert_near(measure(&b, "precision", "{\"threshold\": 0.3}"), 1 / 3.0, 1e-12);
    assert_near(measure(&b, "precision", "{\"threshold\": 0.25}"), 2 / 4.0, 1e-12);
    assert_near(measure(&b, "recall", "{\"threshold\": 0.25}"), 2 / 3.0, 1e-12);
    assert_near(measure(&b, "precision", "{\"threshold\": 0.95}"), 0, 0);
    assert_near(measure(&b, "calibration", "{}"), 2.4 / 3, 1e-6);
    assert_near(measure(&b, "calibration_error", "{}"), 2.6 / 6, 1e-6);
    assert_near(measure(&b, "calibration_error", "{\"buckets\": 2}"), 1.4 / 6, 1e-6);
    assert_near(measure(&b, "calibration_error", "{\"buckets\": 1}"), 0.6 / 6, 1e-6);
    memcpy(b.node.labels.value, (float[]){0, 0.1f, 0, 0, 0.5f, 0}, 6 * sizeof(float));
    assert_near(measure(&b, "precision", "{\"threshold\": 0.45}"), 1 / 2.0, 0); /* 0.1 is a yes */
    assert_near(measure(&b, "recall", "{\"threshold\": 0.45}"), 1 / 2.0, 0);
    assert_near(measure(&b, "auc", "{\"summation_method\": \"ranking\"}"), 4 / 8.0, 1e-12);
    memset(b.node.labels.value, 0, 6 * sizeof(float)); /* no yes: nothing to divide by */
    assert_near(measure(&b, "recall", "{}"), 0, 0);
    assert_string_equal(metric_undefined_text(measure(&b, "calibration", "{}")),
                        "all labels are 0");
    loss_bench_close(&b);
    device_close(&device);
}

/* TensorFlow gives 1 or 0, which look like the best and the worst there can be. */
static void of_one_class_there_is_no_area_under_a_curve(void **state)
{
    static const char *const curves[] = {
        "{}",
        "{\"summation_method\": \"ranking\"}",
        "{\"curve\": \"PR\"}",
        "{\"curve\": \"PR\", \"summation_method\": \"ranking\"}",
        "{\"curve\": \"PR\", \"summation_method\": \"careful_interpolation\"}",
    };
    struct device device = open_device_or_skip(*state);
    struct loss_bench b;
    open_loss(&b, &device, "log_loss", &(struct shape){2, {3, 1}});
    memcpy(b.logits.value, (float[]){0.1f, 0.2f, 0.9f}, 3 * sizeof(float));
    for (size_t i = 0; i < sizeof curves / sizeof *curves; i++) {
        memcpy(b.node.labels.value, (float[]){0, 0, 0}, 3 * sizeof(float));
        assert_string_equal(metric_undefined_text(measure(&b, "auc", curves[i])),
                            "all labels are 0");
        memcpy(b.node.labels.value, (float[]){1, 0.5f, 1}, 3 * sizeof(float));
        assert_string_equal(metric_undefined_text(measure(&b, "auc", curves[i])),
                            "all labels are 1");
        memcpy(b.node.labels.value, (float[]){1, 0, 1}, 3 * sizeof(float));
        assert_null(metric_undefined_text(measure(&b, "auc", curves[i])));
    }
    assert_null(metric_undefined_text(NAN));
    assert_null(metric_undefined_text(0.0 / -1));
    loss_bench_close(&b);
    device_close(&device);
}

/* A softmax of two logits says what the sigmoid of their difference says. */
static void two_classes_are_yes_and_no(void **state)
{
    enum { ROWS = 200 };
    static const char *const metrics[][2] = {
        {"auc", "{}"},
        {"auc", "{\"summation_method\": \"ranking\"}"},
        {"precision", "{}"},
        {"recall", "{}"},
        {"precision", "{\"threshold\": 0.3}"},
        {"calibration", "{}"},
        {"log_loss", "{}"},
        {"calibration_error", "{}"},
        {"gauc", "{\"by\": \"user\"}"},
    };
    struct device device = open_device_or_skip(*state);
    struct loss_bench two, one;
    open_loss(&two, &device, "softmax_cross_entropy", &(struct shape){2, {ROWS, 2}});
    open_loss(&one, &device, "sigmoid_cross_entropy", &(struct shape){2, {ROWS, 1}});
    int64_t *groups = memory_take(&one.memory, ROWS * sizeof *groups);
    for (int i = 0; i < ROWS; i++) {
        float *logits = (float *)two.logits.value + 2 * i;
        logits[0] = random_normal(1, (uint64_t)i);
        logits[1] = random_normal(2, (uint64_t)i);
        ((float *)one.logits.value)[i] = logits[1] - logits[0];
        const int32_t label = random_u64(3, (uint64_t)i) % 3 == 0;
        groups[i] = i % 40;
        ((int32_t *)two.node.labels.value)[i] = label;
        ((float *)one.node.labels.value)[i] = (float)label;
    }
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++)
        assert_near(measure_by(&two, metrics[i][0], metrics[i][1], groups),
                    measure_by(&one, metrics[i][0], metrics[i][1], groups), 1e-12);
    loss_bench_close(&two);
    loss_bench_close(&one);
    device_close(&device);
}

enum { OFFERS = 3000, OFFER_LABELS = 2, OFFERED_TO = 400 };

/* Of each group how often a yes is above a no, by weights: pair by pair. */
static double gauc_of_pairs(const float *said, const float *labels, const float *weights,
                            const int64_t *groups)
{
    double sum = 0, impressions = 0;
    for (int64_t group = 0; group < OFFERED_TO; group++) {
        double above = 0, yes = 0, no = 0;
        for (int64_t i = 0; i < OFFERS * OFFER_LABELS; i++) {
            const double weight = weights[i / OFFER_LABELS];
            if (groups[i / OFFER_LABELS] != group) continue;
            *(labels[i] > 0 ? &yes : &no) += weight;
            for (int64_t k = 0; k < OFFERS * OFFER_LABELS && labels[i] > 0; k++) {
                if (groups[k / OFFER_LABELS] != group || labels[k] > 0) continue;
                const double counts = said[i] > said[k] ? 1 : said[i] == said[k] ? 0.5 : 0;
                above += counts * weight * weights[k / OFFER_LABELS];
            }
        }
        if (yes * no == 0) continue;
        sum += above / (yes * no) * (yes + no);
        impressions += yes + no;
    }
    return sum / impressions;
}

/* Few enough of what is said that there are ties; some groups of one kind of label, some rows of
 * none; more rows than are looked at at once. */
static void gauc_is_the_mean_over_groups_by_impressions(void **state)
{
    struct device device = open_device_or_skip(*state);
    struct loss_bench b;
    open_loss(&b, &device, "sigmoid_cross_entropy", &(struct shape){2, {OFFERS, OFFER_LABELS}});
    float *said = b.logits.value, *labels = b.node.labels.value;
    float *weights = memory_take(&b.memory, OFFERS * sizeof *weights);
    int64_t *groups = memory_take(&b.memory, OFFERS * sizeof *groups);
    for (uint64_t i = 0; i < OFFERS; i++) {
        groups[i] = (int64_t)(random_u64(1, i) % (OFFERED_TO + 1)) - 1;
        weights[i] = (float)(random_u64(2, i) % 5) / 2;
        for (uint64_t k = OFFER_LABELS * i; k < OFFER_LABELS * (i + 1); k++) {
            said[k] = (float)(random_u64(3, k) % 50) / 10 - 2;
            labels[k] = groups[i] % 7 == 3 ? 1 : groups[i] % 7 == 4 ? 0 : random_u64(4, k) % 3 == 0;
        }
    }
    b.node.weights = (struct tensor){.name = "weights", .value = weights};
    assert_near(measure_by(&b, "gauc", "{\"by\": \"user\"}", groups),
                gauc_of_pairs(said, labels, weights, groups), 1e-12);
    memset(labels, 0, OFFERS * OFFER_LABELS * sizeof *labels);
    assert_string_equal(metric_undefined_text(measure_by(&b, "gauc", "{\"by\": \"user\"}", groups)),
                        "no group has labels of both kinds");
    loss_bench_close(&b);
    device_close(&device);
}

/* argmax takes the first of equal logits, in_top_k all of them. */
static void ties_count_as_tensorflow_counts_them(void **state)
{
    struct device device = open_device_or_skip(*state);
    struct loss_bench b;
    open_loss(&b, &device, "softmax_cross_entropy", &(struct shape){2, {2, 3}});
    memcpy(b.logits.value, (float[]){1, 1, 0, 1, 1, 0}, 6 * sizeof(float));
    memcpy(b.node.labels.value, (int32_t[]){0, 1}, 2 * sizeof(int32_t));
    assert_near(measure(&b, "accuracy", "{}"), 0.5, 0);
    assert_near(measure(&b, "in_top_k", "{\"k\": 1}"), 1, 0);
    loss_bench_close(&b);
    device_close(&device);
}

static void the_loss_as_a_metric_is_the_mean_loss(void **state)
{
    struct device device = open_device_or_skip(*state);
    struct loss_bench b;
    open_loss(&b, &device, "mean_squared_error", &(struct shape){2, {2, 2}});
    memcpy(b.logits.value, (float[]){1, 2, 3, 4}, 4 * sizeof(float));
    memcpy(b.node.labels.value, (float[]){1, 0, 0, 1}, 4 * sizeof(float));
    assert_near(loss_bench_mean(&b, 2), (0 + 4 + 9 + 9) / 4.0, 1e-6);
    assert_near(measure(&b, "loss", "{}"), (0 + 4 + 9 + 9) / 4.0, 1e-6);
    loss_bench_close(&b);
    device_close(&device);
}

static void class_weights_divide_by_the_rows_that_count(void **state)
{
    struct device device = open_device_or_skip(*state);
    struct loss_bench b;
    json_t *attributes = object_from("{\"class_weights\": [2, 0]}");
    const struct kind *kind = kinds_find(&loss_kinds, "softmax_cross_entropy");
    loss_bench_open(&b, &device, kind->descriptor, attributes, &(struct shape){2, {4, 2}});
    json_decref(attributes);
    memcpy(b.node.labels.value, (int32_t[]){0, 1, 1, 0}, 4 * sizeof(int32_t));
    /* equal logits: log 2 for every row; two rows count, twice each */
    assert_near(loss_bench_mean(&b, 4), 2 * 0.69314718056, 1e-6);

    memcpy(b.node.labels.value, (int32_t[]){1, 1, 1, 1}, 4 * sizeof(int32_t));
    loss_bench_mean(&b, 4);
    assert_true(b.node.counts.counted == 0);
    assert_close(b.logits.gradient, (float[8]){0}, 8, (struct tolerance){0}, "gradient");
    loss_bench_close(&b);
    device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_EVERY_ISA(ops_and_losses_compute_what_tensorflow_does),
        ON_EVERY_ISA(metrics_of_classes_are_those_of_tensorflow),
        ON_EVERY_ISA(accuracy_of_a_threshold_is_that_of_tensorflow),
        ON_EVERY_ISA(metrics_of_yes_and_no_are_those_of_tensorflow),
        ON_EVERY_ISA(metrics_of_numbers_are_those_of_tensorflow),
        ON_EVERY_ISA(an_area_by_ranking_is_exact),
        ON_EVERY_ISA(the_log_loss_is_the_loss_of_yes_and_no),
        ON_EVERY_ISA(what_is_taken_for_yes_depends_on_the_threshold),
        ON_EVERY_ISA(of_one_class_there_is_no_area_under_a_curve),
        ON_EVERY_ISA(two_classes_are_yes_and_no),
        ON_EVERY_ISA(gauc_is_the_mean_over_groups_by_impressions),
        ON_EVERY_ISA(ties_count_as_tensorflow_counts_them),
        ON_EVERY_ISA(the_loss_as_a_metric_is_the_mean_loss),
        ON_EVERY_ISA(class_weights_divide_by_the_rows_that_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
