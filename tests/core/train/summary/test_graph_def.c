/* test_graph_def.c - models as GraphDef, parsed back. */
#include "core/train/summary/events.h"
#include "tests/core/train/summary/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/train/spec/spec.h"

enum { NODES_MAX_HERE = 512, TEXT_MAX = 256, SPEC_TEXT_MAX = 4096 };

enum {
    GRAPH_NODE = 1,
    GRAPH_VERSIONS = 4,
    NODE_NAME = 1,
    NODE_OP = 2,
    NODE_INPUT = 3,
    NODE_DEVICE = 4,
    NODE_ATTR = 5,
    MAP_KEY = 1,
    MAP_VALUE = 2,
    VALUE_LIST = 1,
    VALUE_STRING = 2,
    VALUE_INT = 3,
    VALUE_FLOAT = 4,
    VALUE_BOOL = 5,
    VALUE_TYPE = 6,
    VALUE_SHAPE = 7,
};

/* A model with its layout, and its message. */
struct made {
    struct spec spec;
    struct arena arena;
    struct graph *graph;
    struct layout *layout;
    struct bytes message;
};

static void lay_out(struct made *m, int ps_count)
{
    struct variable *variables =
        arena_array(&m->arena, (size_t)m->graph->param_count, sizeof *variables);
    for (int i = 0; i < m->graph->param_count; i++)
        variables[i] = (struct variable){m->graph->params[i]->name, m->graph->params[i]->shape};
    const err e = layout_make(&m->spec.placement, variables, m->graph->param_count, ps_count,
                              &m->arena, &m->layout);
    if (e) fail_msg("%s", error_text());
}

/* Readers find inputs by name, so names are unique and every input is there. */
static void check_names(struct bytes message)
{
    char names[NODES_MAX_HERE][TEXT_MAX];
    const int count = part_count(message, GRAPH_NODE);
    assert_in_range(count, 1, NODES_MAX_HERE);
    for (int i = 0; i < count; i++) {
        const struct bytes name =
            part_of(part_at(message, GRAPH_NODE, i).content, NODE_NAME).content;
        assert_in_range(name.count, 1, TEXT_MAX - 1);
        snprintf(names[i], TEXT_MAX, "%.*s", (int)name.count, (const char *)name.at);
        for (int j = 0; j < i; j++) assert_string_not_equal(names[i], names[j]);
    }
    for (int i = 0; i < count; i++) {
        const struct bytes node = part_at(message, GRAPH_NODE, i).content;
        for (int k = 0; k < part_count(node, NODE_INPUT); k++) {
            struct bytes input = part_at(node, NODE_INPUT, k).content;
            if (input.at[0] == '^') input = (struct bytes){input.at + 1, input.count - 1};
            int found = 0;
            for (int j = 0; j < count; j++) found += bytes_are(input, names[j]);
            if (found != 1) fail_msg("%s reads what is not there", names[i]);
        }
    }
}

static void check_attributes_are_sorted(struct bytes message)
{
    for (int i = 0; i < part_count(message, GRAPH_NODE); i++) {
        const struct bytes node = part_at(message, GRAPH_NODE, i).content;
        char last[TEXT_MAX] = "", key[TEXT_MAX];
        for (int k = 0; k < part_count(node, NODE_ATTR); k++) {
            const struct bytes entry = part_at(node, NODE_ATTR, k).content;
            const struct bytes text = part_of(entry, MAP_KEY).content;
            snprintf(key, TEXT_MAX, "%.*s", (int)text.count, (const char *)text.at);
            assert_true(strcmp(last, key) < 0);
            strcpy(last, key);
        }
    }
}

static struct made make_from(const char *path, int ps_count)
{
    struct made m = {0};
    if (spec_load(&(struct spec_options){.path = path, .seed = -1}, &m.spec))
        fail_msg("%s", error_text());
    const struct column columns[] = {{.name = FEATURES_NAME, .shape = {3, {28, 28, 1}}},
                                     {.name = LABELS_NAME}};
    const struct graph_options options = {
        .columns = columns, .column_count = 2, .batch = m.spec.data.batch_size, .training = true};
    if (graph_make(&m.spec.model, &options, &m.arena, &m.graph)) fail_msg("%s", error_text());
    lay_out(&m, ps_count);

    struct graph_def def;
    graph_def_make(m.graph, m.layout, &m.spec.optimizers, &m.arena, &def);
    m.message.at = graph_def_serialize(&def, &m.message.count);
    assert_non_null(m.message.at);
    check_names(m.message);
    check_attributes_are_sorted(m.message);
    return m;
}

/* The parts of a spec that make a graph; the data are not looked at. */
static struct made make_text(const char *parts, int ps_count)
{
    char folder[64], path[TEXT_MAX];
    scratch_make(folder);
    snprintf(path, sizeof path, "%s/spec.json", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file,
            "{\"name\": \"test\", \"data\": {\"train\": {\"format\": \"digits\", \"rows\": 100}, "
            "\"batch_size\": 20}, \"train\": {\"last_step\": 10}, %s}",
            parts);
    assert_int_equal(fclose(file), 0);
    struct made m = make_from(path, ps_count);
    scratch_remove(folder);
    return m;
}

static void drop(struct made *m)
{
    free((void *)m->message.at);
    arena_free(&m->arena);
    spec_free(&m->spec);
}

/* The node of this name; count 0: there is none. */
static struct bytes find_node(const struct made *m, const char *name)
{
    for (int i = 0; i < part_count(m->message, GRAPH_NODE); i++) {
        const struct bytes node = part_at(m->message, GRAPH_NODE, i).content;
        if (bytes_are(part_of(node, NODE_NAME).content, name)) return node;
    }
    return (struct bytes){0};
}

/* wanted: "op device input input ..." */
static void expect_node(const struct made *m, const char *name, const char *wanted)
{
    const struct bytes node = find_node(m, name);
    if (node.count == 0) fail_msg("no node is called %s", name);
    char text[SPEC_TEXT_MAX];
    const struct bytes op = part_of(node, NODE_OP).content;
    const struct bytes device = part_of(node, NODE_DEVICE).content;
    int length = snprintf(text, sizeof text, "%.*s %.*s", (int)op.count, (const char *)op.at,
                          (int)device.count, (const char *)device.at);
    for (int i = 0; i < part_count(node, NODE_INPUT); i++) {
        const struct bytes input = part_at(node, NODE_INPUT, i).content;
        length += snprintf(text + length, sizeof text - (size_t)length, " %.*s", (int)input.count,
                           (const char *)input.at);
    }
    assert_string_equal(text, wanted);
}

static struct bytes attribute(struct bytes node, const char *key)
{
    for (int i = 0; i < part_count(node, NODE_ATTR); i++) {
        const struct bytes entry = part_at(node, NODE_ATTR, i).content;
        if (bytes_are(part_of(entry, MAP_KEY).content, key))
            return part_of(entry, MAP_VALUE).content;
    }
    fail_msg("there is no attribute %s", key);
    return (struct bytes){0};
}

static void expect_shape(struct bytes shape, const struct shape *wanted)
{
    assert_int_equal(part_count(shape, 2), wanted->rank);
    for (int i = 0; i < wanted->rank; i++)
        assert_int_equal(part_of(part_at(shape, 2, i).content, 1).integer, wanted->dim[i]);
}

static void expect_variable(const struct made *m, const char *name, int ps,
                            const struct shape *shape)
{
    char wanted[TEXT_MAX];
    snprintf(wanted, sizeof wanted, "VariableV2 /job:ps/task:%d", ps);
    expect_node(m, name, wanted);
    const struct bytes node = find_node(m, name);
    assert_int_equal(part_of(attribute(node, "dtype"), VALUE_TYPE).integer, 1);
    expect_shape(part_of(attribute(node, "shape"), VALUE_SHAPE).content, shape);
    const struct bytes list = part_of(attribute(node, "_output_shapes"), VALUE_LIST).content;
    expect_shape(part_of(list, VALUE_SHAPE).content, shape);
}

static int variables_in(const struct made *m)
{
    int count = 0;
    for (int i = 0; i < part_count(m->message, GRAPH_NODE); i++)
        count += bytes_are(part_of(part_at(m->message, GRAPH_NODE, i).content, NODE_OP).content,
                           "VariableV2");
    return count;
}

static void every_variable_of_a_network_is_on_its_ps(void **state)
{
    struct made m = make_from(EXAMPLES "/mnist_cnn.json", 2);
    assert_int_equal(m.layout->slice_count, 8);
    char slot[TEXT_MAX];
    int used[2] = {0};
    for (int i = 0; i < m.layout->slice_count; i++) {
        const struct slice *slice = &m.layout->slices[i];
        const struct variable *variable = &m.layout->variables[slice->variable];
        used[slice->ps]++;
        expect_variable(&m, variable->name, slice->ps, &variable->shape);
        snprintf(slot, sizeof slot, "%s/Adam", variable->name);
        expect_variable(&m, slot, slice->ps, &variable->shape);
        snprintf(slot, sizeof slot, "%s/Adam_1", variable->name);
        expect_variable(&m, slot, slice->ps, &variable->shape);
    }
    assert_true(used[0] > 0 && used[1] > 0);
    assert_int_equal(variables_in(&m), 3 * 8 + 3); /* global_step and two powers */
    assert_int_equal(part_of(part_of(m.message, GRAPH_VERSIONS).content, 1).integer, 134);
    drop(&m);
}

static void ops_are_called_as_tensorflow_calls_them(void **state)
{
    struct made m = make_from(EXAMPLES "/mnist_cnn.json", 1);
    expect_node(&m, "features", "Placeholder /job:worker");
    expect_node(&m, "labels", "Placeholder /job:worker");
    expect_node(&m, "conv1/Conv2D", "Conv2D /job:worker features conv1/kernel");
    expect_node(&m, "conv1/BiasAdd", "BiasAdd /job:worker conv1/Conv2D conv1/bias");
    expect_node(&m, "conv1/Relu", "Relu /job:worker conv1/BiasAdd");
    expect_node(&m, "max_pool", "MaxPool /job:worker conv1/Relu");
    expect_node(&m, "flatten", "Reshape /job:worker max_pool_1");
    expect_node(&m, "dropout", "Dropout /job:worker fc1/Relu");
    expect_node(&m, "fc2/MatMul", "MatMul /job:worker dropout fc2/kernel");
    assert_int_equal(find_node(&m, "fc2/Relu").count, 0);
    expect_node(&m, "loss/SparseSoftmaxCrossEntropyWithLogits",
                "SparseSoftmaxCrossEntropyWithLogits /job:worker fc2/BiasAdd labels");
    expect_node(&m, "loss/Mean", "Mean /job:worker loss/SparseSoftmaxCrossEntropyWithLogits");
    expect_node(&m, "metrics/accuracy", "Accuracy /job:worker fc2/BiasAdd labels");
    drop(&m);
}

static void a_step_leads_from_the_loss_to_the_count(void **state)
{
    struct made m = make_from(EXAMPLES "/mnist_cnn.json", 1);
    expect_node(&m, "global_step", "VariableV2 /job:ps/task:0");
    expect_node(&m, "train/learning_rate", "PolynomialDecay /job:worker global_step");
    expect_node(&m, "train/gradients/fc2/bias", "SymbolicGradient /job:worker loss/Mean");
    expect_node(&m, "train/adam/fc2/bias",
                "ApplyAdam /job:ps/task:0 fc2/bias fc2/bias/Adam fc2/bias/Adam_1 train/beta1_power "
                "train/beta2_power train/learning_rate train/gradients/fc2/bias");
    expect_node(&m, "train/adam",
                "AssignAdd /job:ps/task:0 global_step ^train/adam/conv1/kernel "
                "^train/adam/conv1/bias ^train/adam/conv2/kernel ^train/adam/conv2/bias "
                "^train/adam/fc1/kernel ^train/adam/fc1/bias ^train/adam/fc2/kernel "
                "^train/adam/fc2/bias");
    const struct bytes step = attribute(find_node(&m, "global_step"), "dtype");
    assert_int_equal(part_of(step, VALUE_TYPE).integer, 9);
    drop(&m);
}

static void what_the_spec_says_of_a_node_is_shown(void **state)
{
    struct made m = make_from(EXAMPLES "/mnist_cnn.json", 1);
    const struct bytes conv = find_node(&m, "conv1/Conv2D");
    assert_int_equal(part_of(attribute(conv, "filters"), VALUE_INT).integer, 32);
    assert_int_equal(part_of(attribute(conv, "use_bias"), VALUE_BOOL).integer, 1);
    assert_true(bytes_are(part_of(attribute(conv, "padding"), VALUE_STRING).content, "same"));
    assert_true(bytes_are(part_of(attribute(conv, "kernel_initializer"), VALUE_STRING).content,
                          "truncated_normal"));
    const struct bytes list = part_of(attribute(conv, "kernel_size"), VALUE_LIST).content;
    assert_true(bytes_are(part_of(list, VALUE_INT).content, "\x05"));
    const struct bytes drop_out = find_node(&m, "dropout");
    assert_true(part_of(attribute(drop_out, "rate"), VALUE_FLOAT).real == 0.5);
    drop(&m);
}

static void a_partitioned_variable_is_parts_that_are_joined(void **state)
{
    struct made m = make_text(
        "\"model\": [{\"op\": \"flatten\"}, {\"op\": \"dense\", \"name\": \"out\", \"units\": 10}],"
        "\"loss\": \"softmax_cross_entropy\","
        "\"optimizer\": {\"type\": \"momentum\", \"momentum\": 0.9, \"learning_rate\": 0.1},"
        "\"placement\": {\"partitioner\": {\"type\": \"fixed_size\", \"num_shards\": 3}}",
        3);
    expect_variable(&m, "out/kernel/part_0", m.layout->slices[0].ps, &(struct shape){2, {262, 10}});
    expect_variable(&m, "out/kernel/part_2/Momentum", m.layout->slices[2].ps,
                    &(struct shape){2, {261, 10}});
    expect_node(&m, "out/kernel",
                "ConcatV2 /job:worker out/kernel/part_0 out/kernel/part_1 out/kernel/part_2");
    expect_node(&m, "out/MatMul", "MatMul /job:worker flatten out/kernel");
    expect_node(&m, "train/learning_rate", "Const /job:worker");
    char wanted[TEXT_MAX];
    snprintf(wanted, sizeof wanted,
             "ApplyMomentum /job:ps/task:%d out/bias/part_1 out/bias/part_1/Momentum "
             "train/learning_rate train/gradients/out/bias",
             m.layout->slices[4].ps);
    expect_node(&m, "train/momentum/out/bias/part_1", wanted);
    drop(&m);
}

static void clipping_and_penalties_have_nodes(void **state)
{
    struct made m = make_text(
        "\"model\": [{\"op\": \"flatten\"}, {\"op\": \"dense\", \"name\": \"a\", \"units\": 4, "
        "\"use_bias\": false, \"activation\": \"gelu_tanh\", \"kernel_regularizer\": {\"l2\": "
        "0.1}},"
        "{\"op\": \"dense\", \"name\": \"b\", \"units\": 4, \"use_bias\": false},"
        "{\"op\": \"add\", \"inputs\": [\"a\", \"b\"]}],"
        "\"loss\": \"softmax_cross_entropy\", \"metrics\": [{\"op\": \"in_top_k\", \"k\": 2}],"
        "\"optimizer\": {\"type\": \"gradient_descent\", \"learning_rate\": "
        "{\"type\": \"piecewise_constant\", \"boundaries\": [10, 300], \"values\": [1, 0.5, 0.25]},"
        "\"clip\": {\"type\": \"global_norm\", \"norm\": 5}}",
        1);
    expect_node(&m, "a/GeluTanh", "GeluTanh /job:worker a/MatMul");
    expect_node(&m, "add", "AddN /job:worker a/GeluTanh b/MatMul");
    expect_node(&m, "loss/regularization", "Regularizer /job:worker a/kernel");
    expect_node(&m, "loss/total", "AddV2 /job:worker loss/Mean loss/regularization");
    expect_node(&m, "metrics/in_top_2", "InTopKV2 /job:worker add labels");
    expect_node(&m, "train/clip/global_norm",
                "GlobalNorm /job:worker train/gradients/a/kernel train/gradients/b/kernel");
    expect_node(&m, "train/clip/b/kernel",
                "ClipByGlobalNorm /job:worker train/gradients/b/kernel train/clip/global_norm");
    expect_node(&m, "train/gradient_descent/b/kernel",
                "ApplyGradientDescent /job:ps/task:0 b/kernel train/learning_rate "
                "train/clip/b/kernel");
    expect_node(&m, "train/learning_rate", "PiecewiseConstant /job:worker global_step");
    const struct bytes rate = find_node(&m, "train/learning_rate");
    const struct bytes steps = part_of(attribute(rate, "boundaries"), VALUE_LIST).content;
    assert_true(bytes_are(part_of(steps, VALUE_INT).content, "\x0a\xac\x02"));
    const struct bytes rates = part_of(attribute(rate, "values"), VALUE_LIST).content;
    const float values[] = {1, 0.5f, 0.25f};
    const struct bytes wanted = {(const uint8_t *)values, sizeof values};
    assert_true(bytes_equal(part_of(rates, VALUE_FLOAT).content, wanted));
    drop(&m);
}

/* Names of ours give way to those of the spec, and ops to variables. */
static void names_of_the_spec_are_never_taken(void **state)
{
    struct made m = make_text(
        "\"model\": [{\"op\": \"flatten\", \"name\": \"train\"},"
        "{\"op\": \"dense\", \"name\": \"labels\", \"units\": 4, \"activation\": \"relu\"},"
        "{\"op\": \"relu\", \"name\": \"labels/kernel\"},"
        "{\"op\": \"relu\", \"name\": \"labels/Relu\"},"
        "{\"op\": \"relu\", \"name\": \"train_1/x\"},"
        "{\"op\": \"dense\", \"name\": \"loss\", \"units\": 4}],"
        "\"loss\": \"softmax_cross_entropy\", \"optimizer\": \"adam\"",
        1);
    expect_variable(&m, "labels/kernel", 0, &(struct shape){2, {784, 4}});
    expect_node(&m, "labels/kernel_1", "Relu /job:worker labels/Relu");
    expect_node(&m, "labels/Relu_1", "Relu /job:worker labels/kernel_1");
    expect_node(&m, "train", "Reshape /job:worker features");
    expect_node(&m, "train_2/gradients/loss/bias", "SymbolicGradient /job:worker loss_1/Mean");
    expect_node(&m, "loss_1/SparseSoftmaxCrossEntropyWithLogits",
                "SparseSoftmaxCrossEntropyWithLogits /job:worker loss/BiasAdd labels_1");
    drop(&m);
}

static void an_event_carries_the_graph(void **state)
{
    static const char *const inputs[] = {"x"};
    const struct graph_node nodes[] = {
        {.name = "x", .op = "Placeholder", .dtype = GRAPH_INT64},
        {.name = "y", .op = "Relu", .inputs = inputs, .input_count = 1, .dtype = GRAPH_FLOAT},
    };
    const struct graph_def def = {nodes, 2};
    char folder[64], path[512];
    struct events *events;
    scratch_make(folder);
    assert_int_equal(events_open(folder, 7, "", &events), OK);
    assert_int_equal(events_graph(events, 7.5, &def), OK);
    assert_int_equal(events_flush(events), OK);
    events_close(events);
    scratch_find(folder, "tfevents", path);
    const struct bytes file = file_load(path);
    struct bytes wanted;
    wanted.at = graph_def_serialize(&def, &wanted.count);
    assert_true(bytes_equal(part_of(record_at(file, 1), 4).content, wanted));
    assert_int_equal(part_count(wanted, GRAPH_NODE), 2);
    const struct bytes first = part_at(wanted, GRAPH_NODE, 0).content;
    assert_int_equal(part_count(first, NODE_DEVICE), 0);
    free((void *)wanted.at);
    free((void *)file.at);
    scratch_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_variable_of_a_network_is_on_its_ps),
        cmocka_unit_test(ops_are_called_as_tensorflow_calls_them),
        cmocka_unit_test(a_step_leads_from_the_loss_to_the_count),
        cmocka_unit_test(what_the_spec_says_of_a_node_is_shown),
        cmocka_unit_test(a_partitioned_variable_is_parts_that_are_joined),
        cmocka_unit_test(clipping_and_penalties_have_nodes),
        cmocka_unit_test(names_of_the_spec_are_never_taken),
        cmocka_unit_test(an_event_carries_the_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
