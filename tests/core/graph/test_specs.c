/* test_specs.c - models that are wrong, and what is said about them; and what right ones become. */
#include "tests/core/graph/models.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"

static const struct setting IMAGES = {.batch = 4, .features = {3, {8, 8, 3}}, .training = true};
static const struct setting ROWS = {.batch = 4, .features = {1, {6}}, .training = true};

struct bad {
    const struct setting *setting;
    const char *spec, *text; /* what the message must be */
};

static const struct bad BAD[] = {
    {&ROWS, "{\"model\": []}", "model: expected at least one node"},
    {&ROWS, "{\"model\": [{\"op\": \"dence\"}]}", "did you mean \"dense\"?"},
    {&ROWS, "{\"model\": [{\"op\": \"dense\", \"unit\": 3}]}", "model[0]: unknown key \"unit\""},
    {&ROWS, "{\"model\": [{\"op\": \"dense\"}]}", "model[0]: required key \"units\" is missing"},
    {&ROWS, "{\"model\": [{\"op\": \"dense\", \"units\": 0}]}", "model[0].units: expected"},
    {&ROWS, "{\"model\": [{\"op\": \"dense\", \"units\": \"ten\"}]}",
     "model[0].units: expected an integer from 1 to 16777216, got \"ten\""},
    {&ROWS, "{\"model\": [{\"op\": \"dense\", \"units\": 2, \"activation\": \"rellu\"}]}",
     "did you mean \"relu\"?"},
    {&ROWS,
     "{\"model\": [{\"op\": \"dense\", \"units\": 2, \"kernel_initializer\": \"he_norml\"}]}",
     "model[0].kernel_initializer: unknown initializer \"he_norml\" (did you mean \"he_normal\"?)"},
    {&ROWS, "{\"model\": [{\"op\": \"dense\", \"units\": 2, \"kernel_regularizer\": {\"l3\": 1}}]}",
     "model[0].kernel_regularizer: unknown key \"l3\""},
    {&ROWS, "{\"model\": [{\"op\": \"relu\"}]}",
     "model: nothing to train: none of its nodes has a parameter"},
    {&ROWS, "{\"model\": [{\"op\": \"dense\", \"name\": \"a b\", \"units\": 1}]}",
     "model[0] (dense \"a b\"): a name begins with"},
    {&ROWS, "{\"model\": [{\"op\": \"dense\", \"name\": \"\", \"units\": 1}]}",
     "model[0] (dense \"\"): a name begins with"},
    {&ROWS, "{\"model\": [{\"op\": \"dense\", \"name\": \"features\", \"units\": 1}]}",
     "model[0] (dense \"features\"): \"features\" is what the data is called"},
    {&ROWS,
     "{\"model\": [{\"op\": \"dense\", \"name\": \"a\", \"units\": 1}, {\"op\": \"relu\"}, "
     "{\"op\": \"tanh\", \"name\": \"a\"}]}",
     "model[2] (tanh \"a\"): the name is taken by model[0]"},
    {&ROWS,
     "{\"model\": [{\"op\": \"dense\", \"name\": \"hidden\", \"units\": 1}, {\"op\": \"relu\", "
     "\"inputs\": [\"hiden\"]}]}",
     "model[1] (relu \"relu\"): inputs: no node is called \"hiden\" (did you mean \"hidden\"?)"},
    {&ROWS,
     "{\"model\": [{\"op\": \"dense\", \"units\": 1}, {\"op\": \"relu\", \"inputs\": "
     "[\"feature\"]}]}",
     "did you mean \"features\"?"},
    {&ROWS,
     "{\"model\": [{\"op\": \"dense\", \"units\": 1, \"inputs\": [\"late\"]}, {\"op\": \"relu\", "
     "\"name\": \"late\"}]}",
     "model[0] (dense \"dense\"): inputs: \"late\" is model[1], which comes later"},
    {&ROWS, "{\"model\": [{\"op\": \"dense\", \"units\": 1, \"inputs\": [\"dense\"]}]}",
     "model[0] (dense \"dense\"): inputs: it cannot read itself"},
    {&ROWS,
     "{\"model\": [{\"op\": \"dense\", \"units\": 1, \"inputs\": [\"features\", "
     "\"features\"]}]}",
     "model[0] (dense \"dense\"): inputs: dense reads 1, got 2; \"concat\" makes one of several"},
    {&ROWS, "{\"model\": [{\"op\": \"add\"}]}",
     "model[0] (add \"add\"): inputs: add reads 2 to 4096 nodes, got 1"},
    {&ROWS,
     "{\"model\": [{\"op\": \"dense\", \"name\": \"side\", \"units\": 1}, {\"op\": \"dense\", "
     "\"inputs\": [\"features\"], \"units\": 1}]}",
     "model[0] (dense \"side\"): nobody reads its output, and it is not the last node"},
    {&ROWS,
     "{\"model\": [{\"op\": \"dense\", \"units\": 5}, {\"op\": \"add\", \"inputs\": [\"dense\", "
     "\"features\"]}]}",
     "model[1] (add \"add\"): inputs must have one shape, or axes of 1 that stretch to the "
     "other's, "
     "counted from the last: \"dense\" is [4, 5], \"features\" is [4, 6]"},
    {&ROWS, "{\"model\": [{\"op\": \"matmul\", \"inputs\": [\"features\", \"features\"]}]}",
     "model[0] (matmul \"matmul\"): inputs: expected [batch, ..., m, k] and [batch, ..., k, n]"},
    {&ROWS, "{\"model\": [{\"op\": \"slice\", \"begin\": [4], \"size\": [3]}]}",
     "model[0] (slice \"slice\"): axis 1: 3 from 4 on are not there: it is 6 long"},
    {&ROWS, "{\"model\": [{\"op\": \"pad\", \"before\": [1, 1], \"after\": [0]}]}",
     "model[0] (pad \"pad\"): before: expected 1, one for each axis of an example, got 2"},
    {&ROWS, "{\"model\": [{\"op\": \"reduce\", \"reduction\": \"sum\", \"axes\": [0]}]}",
     "model[0] (reduce \"reduce\"): axes: expected 1 to 1 (or from -1 to -1), got 0"},
    {&IMAGES, "{\"model\": [{\"op\": \"transpose\", \"perm\": [1, 2, 2]}]}",
     "model[0] (transpose \"transpose\"): perm: expected each of 1 to 3 once"},
    {&ROWS, "{\"model\": [{\"op\": \"softmax\", \"mask\": \"nobody\"}]}",
     "model[0] (softmax \"softmax\"): mask: no node is called \"nobody\""},
    {&ROWS, "{\"model\": [{\"op\": \"softmax\", \"mask\": \"softmax\"}]}",
     "model[0] (softmax \"softmax\"): mask: it cannot read itself"},
    {&ROWS,
     "{\"model\": [{\"op\": \"dense\", \"name\": \"a\", \"units\": 77}, {\"op\": \"softmax\", "
     "\"inputs\": [\"features\"], \"mask\": \"a\"}]}",
     "model[1] (softmax \"softmax\"): mask: expected [batch, "},
    {&ROWS, "{\"model\": [{\"op\": \"lstm\", \"units\": 2}]}",
     "model[0] (lstm \"lstm\"): inputs: expected [batch, time, numbers], \"features\" is ["},
    {&ROWS, "{\"model\": [{\"op\": \"clip\", \"min\": 2, \"max\": 1}]}",
     "model[0] (clip \"clip\"): min: 2 is more than max, 1"},
    {&ROWS,
     "{\"model\": [{\"op\": \"dense\", \"units\": 1}, {\"op\": \"concat\", \"axis\": 0, "
     "\"inputs\": [\"dense\", \"features\"]}]}",
     "model[1] (concat \"concat\"): axis: expected 1 to 1 (or from -1 to -1), got 0"},
    {&IMAGES,
     "{\"model\": [{\"op\": \"flatten\"}, {\"op\": \"concat\", \"inputs\": [\"flatten\", "
     "\"features\"]}]}",
     "inputs must be alike but for axis 1: \"flatten\" is [4, 192], \"features\" is [4, 8, 8, 3]"},
    {&ROWS, "{\"model\": [{\"op\": \"dot_interaction\"}]}",
     "wants one input of [batch, vectors, width] or several of [batch, width], got 1 of [4, 6]"},
    {&ROWS,
     "{\"model\": [{\"op\": \"reshape\", \"shape\": [1, 6]}, {\"op\": \"dot_interaction\"}]}",
     "model[1] (dot_interaction \"dot_interaction\"): wants 2 vectors or more"},
    {&ROWS,
     "{\"model\": [{\"op\": \"dense\", \"units\": 5}, {\"op\": \"dot_interaction\", "
     "\"inputs\": [\"features\", \"dense\"]}]}",
     "inputs must have one shape: \"features\" is [4, 6], \"dense\" is [4, 5]"},
    {&ROWS, "{\"model\": [{\"op\": \"factorization_machine\"}]}",
     "wants one input of [batch, vectors, width] or several of [batch, width], got 1 of [4, 6]"},
    {&ROWS,
     "{\"model\": [{\"op\": \"dense\", \"units\": 5}, {\"op\": \"cross_layer\", "
     "\"inputs\": [\"features\", \"dense\"]}]}",
     "inputs must have one shape: \"features\" is [4, 6], \"dense\" is [4, 5]"},
    {&ROWS, "{\"model\": [{\"op\": \"reshape\", \"shape\": [-1, 4]}]}",
     "model[0] (reshape \"reshape\"): shape: 6 elements do not make 4"},
    {&ROWS, "{\"model\": [{\"op\": \"reshape\", \"shape\": [-1, -1]}]}",
     "shape: only one dimension can be -1"},
    {&ROWS, "{\"model\": [{\"op\": \"reshape\", \"shape\": [0, 0]}]}",
     "shape[1]: 0 is as large as the input's, which has 1 axes"},
    {&ROWS, "{\"model\": [{\"op\": \"reshape\", \"shape\": [1099511627776, 1099511627776]}]}",
     "shape: more than the 6 elements of an example"},
    {&ROWS, "{\"model\": [{\"op\": \"conv2d\", \"filters\": 1, \"kernel_size\": 3}]}",
     "wants images of [batch, y, x, channel], got [4, 6]"},
    {&IMAGES, "{\"model\": [{\"op\": \"conv2d\", \"filters\": 1, \"kernel_size\": 9}]}",
     "model[0] (conv2d \"conv2d\"): a window of 9 x 9 does not fit into [4, 8, 8, 3]"},
    {&IMAGES, "{\"model\": [{\"op\": \"max_pool\", \"pool_size\": [2, 9]}]}",
     "a window of 2 x 9 does not fit"},
    {&IMAGES, "{\"model\": [{\"op\": \"conv2d\", \"filters\": 1, \"kernel_size\": [1, 2, 3]}]}",
     "model[0].kernel_size: expected"},
    {&ROWS, "{\"model\": [{\"op\": \"dropout\", \"rate\": 1}]}",
     "rate: expected a number from 0 to less than 1"},
    {&ROWS,
     "{\"model\": [{\"op\": \"reduce\", \"reduction\": \"sum\", \"axes\": [1]}], \"loss\": "
     "\"softmax_cross_entropy\"}",
     "loss (softmax_cross_entropy): wants logits of [batch, ..., classes], but \"reduce\" makes "
     "[4]"},
    {&IMAGES, "{\"model\": [{\"op\": \"conv1d\", \"filters\": 1, \"kernel_size\": 2}]}",
     "model[0] (conv1d \"conv1d\"): wants sequences of [batch, time, channel], got [4, 8, 8"},
    {&IMAGES,
     "{\"model\": [{\"op\": \"reshape\", \"shape\": [4, -1]}, {\"op\": \"conv1d\", \"filters\": 1, "
     "\"kernel_size\": 3, \"dilation_rate\": 2}]}",
     "a window of 5 steps does not fit into [4, 4, "},
    {&IMAGES,
     "{\"model\": [{\"op\": \"reshape\", \"shape\": [4, -1]}, {\"op\": \"reduce\", \"name\": "
     "\"first\", \"reduction\": \"sum\", \"axes\": [1]}, {\"op\": \"lstm\", \"inputs\": "
     "[\"reshape\"], "
     "\"units\": 48, \"initial_state\": \"first\", \"state\": \"carried\"}]}",
     "state: carried, or an initial_state, but not both"},
    {&ROWS,
     "{\"model\": [{\"op\": \"dense\", \"units\": 2}], \"loss\": {\"op\": "
     "\"softmax_cross_entropy\", \"class_weights\": [1, 2, 3]}}",
     "loss (softmax_cross_entropy): class_weights: 3 numbers for 2 classes"},
    {&ROWS, "{\"model\": [{\"op\": \"dense\", \"units\": 2}], \"loss\": \"hubert\"}",
     "loss: unknown loss \"hubert\" (did you mean \"huber\"?)"},
    {&ROWS, "{\"model\": [{\"op\": \"dense\", \"units\": 2}], \"metrics\": [\"accuracy\"]}",
     "metrics[0] (accuracy): mean_squared_error predicts numbers"},
    {&ROWS, "{\"model\": [{\"op\": \"dense\", \"units\": 2}], \"metrics\": [\"loss\", \"loss\"]}",
     "metrics[1] (loss): the same as metrics[0]"},
    {&ROWS,
     "{\"model\": [{\"op\": \"dense\", \"units\": 3}], \"loss\": \"softmax_cross_entropy\", "
     "\"metrics\": [{\"op\": \"in_top_k\", \"k\": 3}]}",
     "metrics[0] (in_top_k): k: must be less than the 3 classes, got 3"},
    {&ROWS, "{\"model\": [{\"op\": \"dense\", \"units\": 1}], \"metrics\": [\"auc\"]}",
     "metrics[0] (auc): wants a loss over yes and no, as sigmoid_cross_entropy, or over "
     "two classes; "
     "mean_squared_error"},
    {&ROWS,
     "{\"model\": [{\"op\": \"dense\", \"units\": 1}], \"loss\": \"sigmoid_cross_entropy\", "
     "\"metrics\": [\"mean_absolute_error\"]}",
     "metrics[0] (mean_absolute_error): wants a loss over numbers, as mean_squared_error; sigmoid"},
    {&ROWS,
     "{\"model\": [{\"op\": \"dense\", \"units\": 1}], \"loss\": \"sigmoid_cross_entropy\", "
     "\"metrics\": [{\"op\": \"auc\", \"summation_method\": \"careful_interpolation\"}]}",
     "metrics[0] (auc): summation_method: careful_interpolation is for the curve PR"},
    {&ROWS,
     "{\"model\": [{\"op\": \"dense\", \"units\": 1}], \"loss\": \"sigmoid_cross_entropy\", "
     "\"metrics\": [\"auc\", {\"op\": \"auc\", \"num_thresholds\": 200}]}",
     "metrics[1] (auc): the same as metrics[0]"},
    {&ROWS, "{\"model\": [{\"op\": \"dense\", \"units\": 3}], \"metrics\": [\"in_top_k\"]}",
     "metrics[0] (in_top_k): wants a loss over classes"},
    {&ROWS,
     "{\"model\": [{\"op\": \"dense\", \"units\": 16777216}, {\"op\": \"dense\", \"units\": "
     "16777216}]}",
     "model[1] (dense \"dense_1\"): kernel: shape [16777216, 16777216] has more than 2^40 "
     "elements"},
};

#define DRAWN "{\"op\": \"sampled_logits\", \"classes\": 9, \"sampled\": 4"

/* Logits that are not those of all classes, and losses that know of them */
static void logits_of_some_classes_are_for_their_losses_alone(void **state)
{
    static const struct {
        const char *nodes, *loss, *text;
    } bad[] = {
        {DRAWN "}, {\"op\": \"scale\"}", "\"sampled_softmax\"",
         "\"sampled_logits\" (sampled_logits) makes logits that a loss alone can read"},
        {DRAWN "}", "\"mean_squared_error\"", "has one right class in each row"},
        {DRAWN "}", "{\"op\": \"softmax_cross_entropy\", \"label_smoothing\": 0.1}",
         "label_smoothing: of logits that are not those of all classes"},
        {"{\"op\": \"dense\", \"units\": 9}", "\"sampled_softmax\"",
         "wants the logits of a sampled_logits"},
        {DRAWN ", \"sampler\": \"unigram\"}", "\"nce\"", "unigram wants \"unigrams\""},
        {DRAWN ", \"unigrams\": [1, 2]}", "\"nce\"", "the sampler is log_uniform"},
        {DRAWN ", \"sampler\": \"unigram\", \"unigrams\": [1, 2]}", "\"nce\"",
         "unigrams: expected 9 numbers, one for each class, got 2"},
        {DRAWN ", \"sampler\": \"unigram\", \"unigrams\": [1, 2, 0, 0, 0, 0, 0, 0, 4]}", "\"nce\"",
         "sampled: 4 different ones of 3 classes that can be drawn"},
        {DRAWN ", \"sampler\": \"unigram\", \"unigrams\": [0, 0, 0, 0, 0, 0, 0, 0, 0]}", "\"nce\"",
         "no class occurs"},
        {DRAWN "6}", "\"nce\"", "sampled: 46 different ones of 9 classes"},
    };
    const struct setting setting = {.batch = 4, .features = {1, {6}}, .training = true};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct model m;
        char text[512];
        snprintf(text, sizeof text, "{\"model\": [%s], \"loss\": %s}", bad[i].nodes, bad[i].loss);
        assert_int_equal(model_parse(&m, text, &setting), ERR_INPUT);
        if (!strstr(error_text(), bad[i].text))
            fail_msg("got      %s\nexpected %s", error_text(), bad[i].text);
        model_close(&m);
    }
}

static void wrong_models_are_refused_with_the_place_and_the_reason(void **state)
{
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        struct model m;
        const err e = model_parse(&m, BAD[i].spec, BAD[i].setting);
        if (e != ERR_INPUT) fail_msg("accepted: %s", BAD[i].spec);
        if (!strstr(error_text(), BAD[i].text))
            fail_msg("got      %s\nexpected %s", error_text(), BAD[i].text);
        model_close(&m);
    }
}

static void a_model_has_at_most_the_named_number_of_nodes(void **state)
{
    json_t *spec = json_object(), *nodes = json_array();
    json_array_append_new(nodes, json_pack("{s:s, s:i}", "op", "dense", "units", 1));
    for (int i = 0; i < NODES_MAX; i++)
        json_array_append_new(nodes, json_pack("{s:s}", "op", "relu"));
    json_object_set_new(spec, "model", nodes);

    for (int extra = 1; extra >= 0; extra--) {
        struct model m;
        char *text = json_dumps(spec, 0);
        const err e = model_parse(&m, text, &ROWS);
        assert_int_equal(e, extra ? ERR_INPUT : OK);
        if (extra)
            assert_string_equal(error_text(), "model: 16385 nodes; at most 16384 are possible");
        if (!extra) assert_string_equal(m.graph->nodes[NODES_MAX - 1].name, "relu_16382");
        model_close(&m);
        free(text);
        json_array_remove(nodes, NODES_MAX);
    }
    json_decref(spec);
}

/* As many as a node may read, of an op that adds them up and of one that has a variable of each */
static void a_node_reads_thousands_of_inputs(void **state)
{
    json_t *spec = json_object(), *nodes = json_array(), *inputs = json_array();
    for (int i = 0; i < INPUTS_MAX; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        json_array_append_new(inputs, json_string(name));
        json_array_append_new(nodes, json_pack("{s:s, s:s, s:[s], s:f}", "op", "scale", "name",
                                               name, "inputs", "features", "factor", 1.0 + i % 7));
    }
    json_array_append_new(nodes, json_pack("{s:s, s:O}", "op", "add", "inputs", inputs));
    json_array_append_new(nodes, json_pack("{s:s, s:i}", "op", "dense", "units", 1));
    json_object_set_new(spec, "model", nodes);
    struct model m;
    char *text = json_dumps(spec, 0);
    if (model_parse(&m, text, &ROWS)) fail_msg("%s", error_text());
    const struct node *sum = &m.graph->nodes[INPUTS_MAX];
    assert_int_equal(sum->input_count, INPUTS_MAX);
    assert_ptr_equal(sum->input[INPUTS_MAX - 1], &m.graph->nodes[INPUTS_MAX - 1].output);
    model_close(&m);
    free(text);
    json_decref(inputs);
    json_decref(spec);
}

static void too_many_dimensions_are_refused(void **state)
{
    struct model m;
    const struct setting deep = {.batch = 2, .features = {6, {1, 1, 1, 1, 1, 2}}};
    assert_int_equal(model_parse(&m, "{\"model\": [{\"op\": \"flatten\"}]}", &deep), ERR_INPUT);
    assert_non_null(strstr(error_text(), "features of 6 dimensions"));
    model_close(&m);

    const struct setting large = {.batch = INT64_C(1) << 40, .features = {1, {2}}};
    assert_int_equal(model_parse(&m, "{\"model\": [{\"op\": \"flatten\"}]}", &large), ERR_INPUT);
    assert_non_null(strstr(error_text(), "has more than 2^40 elements"));
    model_close(&m);
}

static void open_ok(struct model *m, const char *spec, const struct setting *setting)
{
    if (model_parse(m, spec, setting)) fail_msg("%s", error_text());
}

static void nodes_without_a_name_are_called_after_their_op(void **state)
{
    struct model m;
    open_ok(&m,
            "{\"model\": [{\"op\": \"dense\", \"units\": 2}, {\"op\": \"relu\"}, {\"op\": "
            "\"dense\", \"units\": 2}, {\"op\": \"dense\", \"name\": \"dense_2\", \"units\": 2}, "
            "{\"op\": \"dense\", \"units\": 2}, {\"op\": \"dense\", \"units\": 2, \"inputs\": "
            "[\"dense_3\"]}]}",
            &ROWS);
    static const char *const names[] = {"dense",   "relu",    "dense_1",
                                        "dense_2", "dense_3", "dense_4"};
    for (int i = 0; i < 6; i++) assert_string_equal(m.graph->nodes[i].name, names[i]);
    assert_string_equal(m.graph->params[1]->name, "dense/bias");
    assert_string_equal(m.graph->params[2]->name, "dense_1/kernel");
    assert_int_equal(m.graph->param_count, 10);
    assert_int_equal(m.graph->param_floats, 6 * 2 + 2 + 4 * (2 * 2 + 2));
    model_close(&m);
}

static void check_shape(const struct setting *setting, const char *node, const char *expected)
{
    struct model m;
    char spec[512], text[SHAPE_TEXT_MAX];
    const struct setting evaluation = {setting->batch, setting->features, false};
    snprintf(spec, sizeof spec, "{\"model\": [%s]}", node);
    open_ok(&m, spec, &evaluation);
    assert_string_equal(shape_text(&m.graph->nodes[0].output.shape, text), expected);
    model_close(&m);
}

static void shapes_follow_from_the_attributes(void **state)
{
    check_shape(&IMAGES, "{\"op\": \"flatten\"}", "[4, 192]");
    check_shape(&IMAGES, "{\"op\": \"reshape\", \"shape\": [8, -1]}", "[4, 8, 24]");
    check_shape(&IMAGES, "{\"op\": \"reshape\", \"shape\": 192}", "[4, 192]");
    check_shape(&IMAGES, "{\"op\": \"dense\", \"units\": 5}", "[4, 8, 8, 5]");
    check_shape(&IMAGES, "{\"op\": \"max_pool\", \"pool_size\": 3}", "[4, 2, 2, 3]");
    check_shape(&IMAGES, "{\"op\": \"max_pool\", \"pool_size\": 3, \"padding\": \"same\"}",
                "[4, 3, 3, 3]");
    check_shape(&IMAGES, "{\"op\": \"avg_pool\", \"pool_size\": [2, 4], \"strides\": 1}",
                "[4, 7, 5, 3]");
    check_shape(&IMAGES, "{\"op\": \"conv2d\", \"filters\": 7, \"kernel_size\": 5}",
                "[4, 4, 4, 7]");
    check_shape(&IMAGES,
                "{\"op\": \"conv2d\", \"filters\": 7, \"kernel_size\": 5, \"strides\": 3, "
                "\"padding\": \"SAME\"}",
                "[4, 3, 3, 7]");
    check_shape(&IMAGES,
                "{\"op\": \"conv2d\", \"filters\": 1, \"kernel_size\": [3, 2], \"dilation_rate\": "
                "[3, 1]}",
                "[4, 2, 7, 1]");
    check_shape(&ROWS, "{\"op\": \"concat\", \"inputs\": [\"features\", \"features\"]}", "[4, 12]");
    check_shape(&ROWS,
                "{\"op\": \"dot_interaction\", \"inputs\": [\"features\", \"features\", "
                "\"features\"]}",
                "[4, 3]");
    check_shape(&ROWS,
                "{\"op\": \"factorization_machine\", \"inputs\": [\"features\", \"features\", "
                "\"features\"]}",
                "[4, 1]");
    check_shape(&ROWS, "{\"op\": \"cross_layer\"}", "[4, 6]");
}

static void labels_have_the_shape_that_the_loss_wants(void **state)
{
    struct model m;
    char text[SHAPE_TEXT_MAX];
    open_ok(&m, "{\"model\": [{\"op\": \"dense\", \"units\": 1}], \"loss\": \"huber\"}", &ROWS);
    assert_string_equal(shape_text(&m.graph->heads[0].loss.labels.shape, text), "[4]");
    assert_int_equal(m.graph->heads[0].loss.labels.dtype, FLOAT32);
    model_close(&m);
    open_ok(&m,
            "{\"model\": [{\"op\": \"dense\", \"units\": 3}], \"loss\": "
            "\"sigmoid_cross_entropy\", \"metrics\": [\"accuracy\", \"loss\"]}",
            &ROWS);
    assert_string_equal(shape_text(&m.graph->heads[0].loss.labels.shape, text), "[4, 3]");
    model_close(&m);
    open_ok(&m,
            "{\"model\": [{\"op\": \"dense\", \"units\": 7}], \"loss\": "
            "\"softmax_cross_entropy\", \"metrics\": [\"accuracy\", \"in_top_k\"]}",
            &ROWS);
    assert_string_equal(shape_text(&m.graph->heads[0].loss.labels.shape, text), "[4]");
    assert_int_equal(m.graph->heads[0].loss.labels.dtype, INT32);
    assert_string_equal(m.graph->metrics[1].name, "in_top_5");
    model_close(&m);
}

static void metrics_are_called_by_what_they_measure(void **state)
{
    static const char *const names[] = {
        "auc",           "auc_pr",      "auc_ranking", "auc_pr_ranking", "precision",
        "precision_0.3", "recall_0.25", "log_loss",    "auc_50",         "auc_pr_careful_1000"};
    struct model m;
    open_ok(&m,
            "{\"model\": [{\"op\": \"dense\", \"units\": 1}], \"loss\": {\"op\": "
            "\"weighted_cross_entropy\", \"pos_weight\": 2}, \"metrics\": [\"auc\", {\"op\": "
            "\"auc\", \"curve\": \"PR\"}, {\"op\": \"auc\", \"summation_method\": "
            "\"ranking\"}, {\"op\": \"auc\", \"curve\": \"PR\", \"summation_method\": "
            "\"ranking\"}, \"precision\", {\"op\": \"precision\", \"threshold\": 0.3}, {\"op\": "
            "\"recall\", \"threshold\": 0.25}, \"log_loss\", {\"op\": \"auc\", "
            "\"num_thresholds\": 50}, {\"op\": \"auc\", \"curve\": \"PR\", \"num_thresholds\": "
            "1000, \"summation_method\": \"careful_interpolation\"}]}",
            &ROWS);
    for (int i = 0; i < m.graph->metric_count; i++)
        assert_string_equal(m.graph->metrics[i].name, names[i]);
    assert_int_equal(m.graph->metric_count, sizeof names / sizeof *names);
    model_close(&m);
}

static void better_depends_on_the_metric(void **state)
{
    assert_true(better_is(BETTER_LESS, 1, 2) && !better_is(BETTER_LESS, 1, 1));
    assert_true(better_is(BETTER_MORE, 2, 1) && !better_is(BETTER_MORE, 1, 1));
    assert_true(better_is(BETTER_NEAR_ONE, 1.1, 0.8) && better_is(BETTER_NEAR_ONE, 0.9, 1.2));
    assert_false(better_is(BETTER_NEAR_ONE, 1.5, 0.5) || better_is(BETTER_NEAR_ONE, NAN, 0.5));
    assert_false(better_is(BETTER_LESS, NAN, 0.5) || better_is(BETTER_MORE, NAN, 0.5));
}

static void shapes_are_printed_compared_and_checked(void **state)
{
    char text[SHAPE_TEXT_MAX];
    const struct shape a = {3, {2, 3, 4}}, b = {3, {2, 3, 5}}, scalar = {0};
    assert_string_equal(shape_text(&a, text), "[2, 3, 4]");
    assert_string_equal(shape_text(&scalar, text), "[]");
    assert_int_equal(shape_count(&a), 24);
    assert_int_equal(shape_count(&scalar), 1);
    assert_int_equal(shape_count_from(&a, 1), 12);
    assert_true(shape_equal(&a, &a) && !shape_equal(&a, &b) && !shape_equal(&a, &scalar));
    assert_int_equal(shape_check(&a), OK);
    assert_int_equal(shape_check(&(struct shape){2, {3, 0}}), ERR_INPUT);
    assert_int_equal(shape_check(&(struct shape){7}), ERR_INPUT);
    assert_int_equal(shape_check(&(struct shape){2, {INT64_MAX, INT64_MAX}}), ERR_INPUT);
    const struct shape huge = {6, {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, 1}};
    assert_true(strlen(shape_text(&huge, text)) < SHAPE_TEXT_MAX);
    assert_int_equal(dtype_size(UINT8), 1);
    assert_int_equal(dtype_size(INT32), 4);
    assert_string_equal(dtype_name(FLOAT32), "float32");
}

/* Values that a table may or may not allow. */
static json_t *random_value(uint64_t draw)
{
    static const char *const values[] = {
        "0",         "1",
        "2",         "3",
        "-1",        "7",
        "65536",     "16777216",
        "0.5",       "1e300",
        "-0.25",     "true",
        "null",      "\"same\"",
        "\"VALID\"", "\"relu\"",
        "\"gelu\"",  "[]",
        "[1]",       "[2, 3]",
        "[-1, 2]",   "[0]",
        "{}",        "{\"l2\": 1}",
        "\"zeros\"", "[3, 3, 3, 3, 3, 3]",
    };
    const char *text = values[draw % (sizeof values / sizeof *values)];
    return json_loads(text, JSON_DECODE_ANY, NULL);
}

/* ---- heads ---- */

static void assert_heads_refused(const char *heads, const char *text)
{
    static const char model[] = "{\"model\": [{\"op\": \"dense\", \"name\": \"a\", \"units\": 3}, "
                                "{\"op\": \"sigmoid\", \"name\": \"b\"}], \"heads\": %s}";
    const struct column more[] = {
        {.name = "click", .dtype = FLOAT32, .shape = {1, {3}}, .is_label = true},
        {.name = "buy", .dtype = FLOAT32, .shape = {1, {1}}, .is_label = true},
    };
    const struct setting setting = {
        .batch = 4, .training = true, .features = {1, {2}}, .more = more, .more_count = 2};
    char spec[1024];
    struct model m;
    snprintf(spec, sizeof spec, model, heads);
    assert_int_equal(model_parse(&m, spec, &setting), ERR_INPUT);
    if (!strstr(error_text(), text)) fail_msg("%s\nwants: %s", error_text(), text);
    model_close(&m);
}

static void what_heads_have_wrong_is_said(void **state)
{
#define HEAD(name, more) "{\"name\": \"" name "\", " more "}"
#define LOSS(name) "\"loss\": \"" name "\""
    assert_heads_refused("[" HEAD("x", LOSS("log_loss")) "]",
                         "heads[0] (log_loss \"x\"): label: the source has 2: name one");
    assert_heads_refused("[" HEAD("x", "\"label\": \"by\", " LOSS("log_loss")) "]",
                         "no label is called \"by\" (did you mean \"buy\"?)");
    assert_heads_refused(
        "[" HEAD("x", "\"label\": \"buy\", \"logits\": \"b\", " LOSS("log_loss")) "]",
        "logits: log_loss reads a \"probability\"");
    assert_heads_refused(
        "[" HEAD("x", "\"label\": \"buy\", \"probability\": \"a\", " LOSS("hinge")) "]",
        "probability: hinge reads \"logits\"");
    assert_heads_refused(
        "[" HEAD("x", "\"label\": \"click\", \"probability\": \"c\", " LOSS("log_loss")) "]",
        "probability: no node is called \"c\"");
    assert_heads_refused(
        "[" HEAD("x", "\"label\": \"click\", \"logits\": \"a\", " LOSS("hinge")) "]",
        "model[1] (sigmoid \"b\"): nobody reads its output, and it is no head's");
    assert_heads_refused(
        "[" HEAD("x", "\"label\": \"click\", \"probability\": \"b\", " LOSS("log_loss")) ", " HEAD(
            "y", "\"label\": \"click\", \"logits\": \"a\", " LOSS("softmax_cross_entropy")) "]",
        "heads[1] (softmax_cross_entropy \"y\"): label: \"x\" reads the same label in another "
        "form");
    assert_heads_refused("[" HEAD("x", "\"label\": \"click\", \"probability\": \"b\", "
                                       "\"metrics\": [\"auc\", \"auc\"], " LOSS("log_loss")) "]",
                         "heads[0] (log_loss \"x\"): metrics[1] (auc): the same as metrics[0]");
#undef HEAD
#undef LOSS
}

/* Some kind with about half of its fields set to something. */
static json_t *random_kind(const struct kinds *kinds, int count, uint64_t key)
{
    const struct kind *kind = kinds->at((int)(random_u64(key, 0) % (uint64_t)count));
    json_t *json = json_pack("{s:s}", kinds->key, kind->object->name);
    const struct field *field = kind->object->fields;
    for (uint64_t i = 1; field && field->name; field++, i++)
        if (!field->fallback || random_u64(key, i) % 3 == 0)
            json_object_set_new(json, field->name, random_value(random_u64(key, 100 + i)));
    return json;
}

static int count_kinds(const struct kinds *kinds)
{
    int count = 0;
    while (kinds->at(count)) count++;
    return count;
}

static char *random_spec(uint64_t key)
{
    json_t *spec = json_object(), *nodes = json_array();
    const int ops = count_kinds(&op_kinds), losses = count_kinds(&loss_kinds);
    for (uint64_t i = 0; i < 1 + key % 3; i++) {
        json_t *node = random_kind(&op_kinds, ops, random_u64(key, i));
        if (random_u64(key, 50 + i) % 4 == 0)
            json_object_set_new(node, "inputs", json_pack("[s, s]", "features", "features"));
        json_array_append_new(nodes, node);
    }
    json_object_set_new(spec, "model", nodes);
    json_object_set_new(spec, "loss", random_kind(&loss_kinds, losses, random_u64(key, 90)));
    char *text = json_dumps(spec, 0);
    json_decref(spec);
    return text;
}

/* Whatever stands in a spec: a graph, or a message. Both must happen. */
static void random_models_are_made_or_refused(void **state)
{
    static const struct setting settings[] = {{4, {3, {8, 8, 3}}, false}, {4, {1, {6}}, true}};
    int made = 0, refused = 0;
    struct device device;
    assert_int_equal(device_open_cpu(1, NULL, &device), OK);
    for (uint64_t key = 0; key < 8000; key++) {
        struct model m;
        struct plan_size size;
        char *text = random_spec(key);
        const err e = model_parse(&m, text, &settings[key % 2]);
        if (e != OK && (e != ERR_INPUT || !error_text()[0])) fail_msg("%s", text);
        if (!e) assert_int_equal(plan_measure(m.graph, &device, &size), OK);
        if (!e) assert_true(size.block >= sizeof(float));
        made += !e;
        refused += e != OK;
        model_close(&m);
        free(text);
    }
    device_close(&device);
    assert_true(made > 300 && refused > 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_models_are_refused_with_the_place_and_the_reason),
        cmocka_unit_test(logits_of_some_classes_are_for_their_losses_alone),
        cmocka_unit_test(a_model_has_at_most_the_named_number_of_nodes),
        cmocka_unit_test(a_node_reads_thousands_of_inputs),
        cmocka_unit_test(too_many_dimensions_are_refused),
        cmocka_unit_test(random_models_are_made_or_refused),
        cmocka_unit_test(nodes_without_a_name_are_called_after_their_op),
        cmocka_unit_test(shapes_follow_from_the_attributes),
        cmocka_unit_test(labels_have_the_shape_that_the_loss_wants),
        cmocka_unit_test(metrics_are_called_by_what_they_measure),
        cmocka_unit_test(what_heads_have_wrong_is_said),
        cmocka_unit_test(better_depends_on_the_metric),
        cmocka_unit_test(shapes_are_printed_compared_and_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
