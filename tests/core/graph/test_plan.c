/* test_plan.c - whole graphs in shared memory: the same results as with nothing shared. */
#include "core/graph/stepper.h"
#include "tests/core/graph/models.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"

static const struct setting ROWS = {.batch = 5, .features = {1, {6}}, .training = true};

static const char CNN[] =
    "{\"model\": ["
    "{\"op\": \"conv2d\", \"filters\": 4, \"kernel_size\": 3, \"padding\": \"same\", "
    "\"activation\": \"relu\"}, {\"op\": \"max_pool\", \"pool_size\": 2}, "
    "{\"op\": \"conv2d\", \"filters\": 3, \"kernel_size\": 3, \"activation\": \"gelu\"}, "
    "{\"op\": \"flatten\"}, {\"op\": \"dropout\"}, {\"op\": \"dense\", \"units\": 4}], "
    "\"loss\": \"softmax_cross_entropy\", \"metrics\": [\"accuracy\", \"loss\"]}";
static const struct setting IMAGES = {.batch = 6, .features = {3, {8, 8, 2}}, .training = true};

/* Random graphs on [batch, WIDTH] tensors */

enum { WIDTH = 6, GRAPH_NODES = 24, TEXT_MAX = 8192 };

struct text {
    char at[TEXT_MAX];
    size_t used;
};

__attribute__((format(printf, 2, 3))) static void append(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    text->used +=
        (size_t)vsnprintf(text->at + text->used, TEXT_MAX - text->used, format, arguments);
    va_end(arguments);
    assert_true(text->used < TEXT_MAX);
}

static const char *const ONE_INPUT[] = {
    "\"op\": \"tanh\"",
    "\"op\": \"swish\"",
    "\"op\": \"softmax\"",
    "\"op\": \"dropout\", \"rate\": 0.3",
    "\"op\": \"reshape\", \"shape\": [2, -1]}, {\"op\": \"flatten\"",
    "\"op\": \"dense\", \"units\": 6",
    "\"op\": \"dense\", \"units\": 6, \"activation\": \"softplus\"",
    "\"op\": \"dense\", \"units\": 6, \"activation\": \"sigmoid\", \"use_bias\": false",
};

/* A unary node is named twice where it is a reshape and a flatten: only the last keeps the name. */
static void append_unary(struct text *text, int node, int source, uint64_t draw)
{
    const char *op = ONE_INPUT[draw % (sizeof ONE_INPUT / sizeof *ONE_INPUT)];
    append(text, "{\"inputs\": [\"n%d\"], %s, \"name\": \"n%d\"}, ", source, op, node);
}

static void append_binary(struct text *text, int node, const int sources[2], uint64_t draw)
{
    append(text, "{\"op\": \"%s\", \"name\": \"n%d\", \"inputs\": [\"n%d\", \"n%d\"]}, ",
           draw & 1 ? "add" : "multiply", node, sources[0], sources[1]);
}

/* n0 is a dense layer, or as often the features themselves under another name. Each further node
 * reads one or two earlier ones, preferably such as nobody reads yet; the sum of what is left over
 * and a dense layer end the graph. */
static void random_graph(struct text *text, uint64_t key)
{
    bool is_read[GRAPH_NODES] = {false};
    text->used = 0;
    append(text, "{\"model\": [%s, ",
           key & 1 ? "{\"op\": \"dense\", \"name\": \"n0\", \"units\": 6}"
                   : "{\"op\": \"flatten\", \"name\": \"n0\"}");
    for (int node = 1; node < GRAPH_NODES; node++) {
        const uint64_t draw = random_u64(key, (uint64_t)node);
        const int back = (int)((draw >> 32) % 4), other = (int)((draw >> 40) % (uint64_t)node);
        const int sources[2] = {node - 1 - (back < node ? back : 0), other};
        const bool is_binary = (draw >> 8) % 3 == 0;
        is_read[sources[0]] = true;
        if (is_binary) is_read[sources[1]] = true;
        if (is_binary)
            append_binary(text, node, sources, draw);
        else
            append_unary(text, node, sources[0], draw);
    }
    append(text, "{\"op\": \"dense\", \"name\": \"sum\", \"units\": 6, \"inputs\": [\"n%d\"]}, ",
           GRAPH_NODES - 1);
    const char *last = "sum";
    char name[16];
    for (int node = 0; node < GRAPH_NODES - 1; node++) {
        if (is_read[node]) continue;
        append(text, "{\"op\": \"add\", \"name\": \"s%d\", \"inputs\": [\"%s\", \"n%d\"]}, ", node,
               last, node);
        snprintf(name, sizeof name, "s%d", node);
        last = name;
    }
    append(text, "{\"op\": \"dense\", \"units\": 2}]}");
}

/* Memory of its own for every tensor, in place of the plan's. */
struct unshared {
    void *at[GRAPH_NODES * 10];
    int count;
};

static void *take(struct unshared *u, const struct tensor *tensor)
{
    const size_t bytes = ((size_t)shape_count(&tensor->shape) * sizeof(float) / 64 + 1) * 64;
    assert_true(u->count < (int)(sizeof u->at / sizeof *u->at));
    void *memory = u->at[u->count++] = aligned_alloc(64, bytes);
    assert_non_null(memory);
    memset(memory, 0x7f, bytes); /* large numbers: what is read before it is written shows */
    return memory;
}

static void unshare(struct graph *graph, struct unshared *u)
{
    u->count = 0;
    for (int i = 0; i < graph->node_count; i++) {
        struct node *node = &graph->nodes[i];
        if (node->is_view) {
            node->output.gradient = node->input[0]->gradient;
            continue;
        }
        node->output.value = take(u, &node->output);
        if (node->output.gradient) node->output.gradient = take(u, &node->output);
        for (int s = 0; s < SAVED_MAX; s++)
            if (node->saved[s].name) node->saved[s].value = take(u, &node->saved[s]);
    }
    const struct tensor losses = {.shape = {1, {graph->batch}}};
    for (int i = 0; i < graph->head_count; i++) {
        struct loss_node *loss = &graph->heads[i].loss;
        loss->losses = take(u, &losses);
        if (loss->apart.gradient) loss->apart.gradient = take(u, &loss->apart);
    }
}

static void free_unshared(struct unshared *u)
{
    for (int i = 0; i < u->count; i++) free(u->at[i]);
}

static void assert_same_results(const struct model *a, const struct model *b)
{
    for (int i = 0; i < a->graph->param_count; i++) {
        const struct param *p = a->graph->params[i], *q = b->graph->params[i];
        if (memcmp(p->gradient, q->gradient, (size_t)shape_count(&p->shape) * sizeof(float)) != 0)
            fail_msg("%s: another gradient where memory is shared", p->name);
    }
}

static void compare_with_unshared(struct device *device, const char *text,
                                  const struct setting *setting)
{
    struct model shared, alone;
    struct unshared memory;
    model_open(&shared, device, text, setting);
    model_open(&alone, device, text, setting);
    unshare(alone.graph, &memory);
    for (uint64_t draw = 0; draw < 2; draw++) {
        const double a = model_loss(&shared, setting->batch, draw);
        const double b = model_loss(&alone, setting->batch, draw);
        assert_true(isfinite(a));
        if (a != b) fail_msg("loss %.17g where memory is shared, else %.17g\n%s", a, b, text);
        if (!setting->training) continue;
        plan_backward(shared.plan, false, NULL, NULL);
        plan_backward(alone.plan, false, NULL, NULL);
        assert_same_results(&shared, &alone);
    }
    free_unshared(&memory);
    model_close(&shared);
    model_close(&alone);
}

/* All outputs stay, and are those of nodes that share nothing. */
static void compare_kept(struct device *device, const char *text, const struct setting *setting)
{
    struct model shared, alone;
    struct unshared memory;
    int kept[GRAPH_NODES * 2];
    model_open(&shared, device, text, setting);
    model_open(&alone, device, text, setting);
    unshare(alone.graph, &memory);
    plan_close(shared.plan);
    shared.graph->kept = kept;
    for (int i = 0; i < shared.graph->node_count; i++) kept[shared.graph->kept_count++] = i;
    assert_int_equal(plan_open(shared.graph, device, &shared.plan), OK);
    (void)model_loss(&shared, setting->batch, 0);
    (void)model_loss(&alone, setting->batch, 0);
    for (int i = 0; i < shared.graph->node_count; i++) {
        const struct tensor *a = &shared.graph->nodes[i].output;
        const struct tensor *b = &alone.graph->nodes[i].output;
        if (memcmp(a->value, b->value, tensor_bytes(a)))
            fail_msg("%s was kept, and is another\n%s", a->name, text);
    }
    free_unshared(&memory);
    model_close(&shared);
    model_close(&alone);
}

static void outputs_that_are_kept_stay(void **state)
{
    struct device device = open_device();
    const struct setting evaluation = {ROWS.batch, ROWS.features, false};
    for (uint64_t key = 100; key < 130; key++) {
        struct text text;
        random_graph(&text, key);
        compare_kept(&device, text.at, &evaluation);
    }
    device_close(&device);
}

static void sharing_memory_changes_no_result(void **state)
{
    struct device device = open_device();
    const struct setting evaluation = {ROWS.batch, ROWS.features, false};
    for (uint64_t key = 0; key < 60; key++) {
        struct text text;
        random_graph(&text, key);
        compare_with_unshared(&device, text.at, &ROWS);
        compare_with_unshared(&device, text.at, &evaluation);
    }
    compare_with_unshared(&device, CNN, &IMAGES);
    device_close(&device);
}

/* Central differences along the parameters of a whole graph; see test_gradients.c. */
static void check_differences(struct model *m, double tolerance)
{
    const float step = 0x1p-9f;
    double loss[2], expected = 0, squares = 0;
    model_loss(m, m->graph->batch, 9);
    plan_backward(m->plan, false, NULL, NULL);
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < m->graph->param_count; i++) {
            struct param *p = m->graph->params[i];
            for (int64_t k = 0; k < shape_count(&p->shape); k++) {
                const float sign = random_u64((uint64_t)i, (uint64_t)k) & 1 ? 1.0f : -1.0f;
                p->value[k] += (side == 0 ? step : -2 * step) * sign;
                if (side == 0) expected += (double)sign * p->gradient[k];
                if (side == 0) squares += (double)p->gradient[k] * p->gradient[k];
            }
        }
        loss[side] =
            model_loss(m, m->graph->batch, 9) + graph_regularization(m->graph, m->plan->device);
    }
    const double difference = (loss[0] - loss[1]) / (2 * (double)step);
    if (!(fabs(difference - expected) <= tolerance * (1 + sqrt(squares))))
        fail_msg("differences give %g, the gradient %g", difference, expected);
}

static void random_graphs_have_the_gradient_of_their_loss(void **state)
{
    struct device device = open_device();
    for (uint64_t key = 0; key < 60; key++) {
        struct text text;
        struct model m;
        random_graph(&text, key);
        model_open(&m, &device, text.at, &ROWS);
        check_differences(&m, 0.02);
        model_close(&m);
    }
    device_close(&device);
}

static void regularizers_are_part_of_the_gradient(void **state)
{
    static const char text[] =
        "{\"model\": [{\"op\": \"dense\", \"units\": 4, \"activation\": \"tanh\", "
        "\"kernel_regularizer\": {\"l1\": 0.3, \"l2\": 0.2}}, {\"op\": \"dense\", \"units\": 2, "
        "\"kernel_regularizer\": {\"l2\": 0.5}, \"bias_regularizer\": {\"l1\": 0.7}}]}";
    struct device device = open_device();
    struct model m;
    model_open(&m, &device, text, &ROWS);
    assert_true(graph_has_regularizers(m.graph));
    double expected = 0;
    for (int i = 0; i < m.graph->param_count; i++) {
        static const double l1[] = {0.3, 0, 0, 0.7}, l2[] = {0.2, 0, 0.5, 0};
        const struct param *p = m.graph->params[i];
        for (int64_t k = 0; k < shape_count(&p->shape); k++)
            expected += l1[i] * fabs((double)p->value[k]) + l2[i] * p->value[k] * p->value[k];
    }
    assert_near(graph_regularization(m.graph, &device), expected, 1e-5);
    check_differences(&m, 0.01);
    model_close(&m);
    device_close(&device);
}

/* x -> a; a is read by b, by c and by the sum: the last reader writes, the others add. */
static void a_diamond_adds_the_gradients_of_its_arms(void **state)
{
    static const char text[] =
        "{\"model\": [{\"op\": \"dense\", \"name\": \"a\", \"units\": 3}, "
        "{\"op\": \"tanh\", \"name\": \"b\"}, {\"op\": \"reshape\", \"name\": \"view\", \"shape\": "
        "[3, 1], \"inputs\": [\"a\"]}, {\"op\": \"flatten\", \"name\": \"c\"}, "
        "{\"op\": \"add\", \"inputs\": [\"a\", \"b\", \"c\", \"a\"]}]}";
    struct device device = open_device();
    struct model m;
    model_open(&m, &device, text, &ROWS);
    const struct node *sum = &m.graph->nodes[4], *tanh = &m.graph->nodes[1];
    assert_false(sum->add[0]);
    assert_false(sum->add[1]);
    assert_true(sum->add[2] && sum->add[3]); /* c shows a's memory */
    assert_true(tanh->add[0]);
    assert_ptr_equal(m.graph->nodes[3].output.gradient, m.graph->nodes[0].output.gradient);
    check_differences(&m, 0.01);
    assert_ptr_equal(m.graph->nodes[3].output.value, m.graph->nodes[0].output.value);
    model_close(&m);
    device_close(&device);
}

static void gradients_exist_only_below_parameters(void **state)
{
    static const char text[] =
        "{\"model\": [{\"op\": \"tanh\", \"name\": \"t\"}, {\"op\": \"dense\", \"name\": \"d\", "
        "\"units\": 6}, {\"op\": \"multiply\", \"name\": \"m\", \"inputs\": [\"t\", \"d\"]}]}";
    struct device device = open_device();
    struct model m;
    model_open(&m, &device, text, &ROWS);
    assert_null(m.graph->inputs[0].tensor->gradient);
    assert_null(m.graph->nodes[0].output.gradient);
    assert_non_null(m.graph->nodes[1].output.gradient);
    check_differences(&m, 0.01);
    model_close(&m);

    const struct setting evaluation = {ROWS.batch, ROWS.features, false};
    model_open(&m, &device, text, &evaluation);
    for (int i = 0; i < 3; i++) assert_null(m.graph->nodes[i].output.gradient);
    assert_int_equal(m.plan->size.gradients, 0);
    model_close(&m);
    device_close(&device);
}

/* Nor below frozen ones alone, of which one is not enough. */
static void nobody_wants_the_gradients_of_what_is_frozen(void **state)
{
    static const char text[] =
        "{\"model\": [{\"op\": \"dense\", \"name\": \"a\", \"units\": 6}, {\"op\": \"tanh\"}, "
        "{\"op\": \"dense\", \"name\": \"b\", \"units\": 6}]}";
    enum { NODE_BYTES = 5 * 6 * sizeof(float) };
    static const size_t wanted[] = {3, 3, 1, 1, 0}; /* nodes, of so many frozen params */
    struct device device = open_device();
    struct model m;
    struct plan_size size;
    model_open(&m, &device, text, &ROWS);
    assert_int_equal(m.graph->param_count, 4);
    for (int frozen = 0; frozen <= 4; frozen++) {
        for (int i = 0; i < frozen; i++) m.graph->params[i]->is_frozen = true;
        assert_int_equal(plan_measure(m.graph, &device, &size), OK);
        assert_int_equal(size.gradients, wanted[frozen] * NODE_BYTES);
    }
    model_close(&m);
    device_close(&device);
}

static void the_measured_size_is_the_one_taken(void **state)
{
    struct device device = open_device();
    struct model m;
    struct plan_size size;
    model_open(&m, &device, CNN, &IMAGES);
    assert_int_equal(plan_measure(m.graph, &device, &size), OK);
    assert_memory_equal(&size, &m.plan->size, sizeof size);
    assert_true(size.block < size.values + size.gradients + size.saved);
    assert_int_equal(size.saved, 6 * 2 * 2 * 3 * sizeof(float)); /* gelu, after 2 x 2 */
    assert_int_equal(m.graph->inputs[0].tensor->gradient == NULL, true);
    model_close(&m);
    device_close(&device);
}

/* As a session does with several batches to one push. */
static void backward_can_add_to_the_gradients(void **state)
{
    struct device device = open_device();
    struct model m;
    model_open(&m, &device, CNN, &IMAGES);
    const struct param *p = m.graph->params[0];
    const int64_t count = shape_count(&p->shape);
    float *sum = malloc((size_t)count * sizeof *sum);
    model_forward(&m, 6, 1);
    plan_backward(m.plan, false, NULL, NULL);
    memcpy(sum, p->gradient, (size_t)count * sizeof *sum);
    model_forward(&m, 6, 2);
    plan_backward(m.plan, false, NULL, NULL);
    for (int64_t i = 0; i < count; i++) sum[i] += p->gradient[i];

    model_forward(&m, 6, 1);
    plan_backward(m.plan, false, NULL, NULL);
    model_forward(&m, 6, 2);
    plan_backward(m.plan, true, NULL, NULL);
    assert_close(p->gradient, sum, count, (struct tolerance){.of_largest = 1e-5},
                 "sum of two gradients");
    free(sum);
    model_close(&m);
    device_close(&device);
}

struct order {
    char names[256];
    const struct node *last;
};

static void note(void *context, const struct node *node, int64_t floats)
{
    struct order *order = context;
    const size_t used = strlen(order->names);
    if (node == order->last) return; /* more of it */
    order->last = node;
    snprintf(order->names + used, sizeof order->names - used, "%s ", node->name);
}

static void nodes_are_reported_as_their_gradients_are_finished(void **state)
{
    struct device device = open_device();
    struct model m;
    struct order order = {""};
    model_open(&m, &device, CNN, &IMAGES);
    model_forward(&m, 6, 0);
    plan_backward(m.plan, false, note, &order);
    assert_string_equal(order.names, "dense conv2d_1 conv2d ");
    model_close(&m);
    device_close(&device);
}

/* The middle layer is large enough for several bands on every host. */
enum { SIDE = 1024, LARGE = 1, BATCH = 2 };
static const char THREE_LAYERS[] =
    "{\"model\": [{\"op\": \"dense\", \"units\": 1024}, "
    "{\"op\": \"dense\", \"units\": 1024, \"kernel_regularizer\": {%s}}, "
    "{\"op\": \"dense\", \"units\": 4}], \"loss\": \"softmax_cross_entropy\"}";
static const struct setting FEW_ROWS = {.batch = BATCH, .features = {1, {8}}, .training = true};

/* What was told of the large layer, as it was then. */
struct told {
    bool spoils; /* its values, of which somebody else may have others by then */
    int times;
    int64_t floats;
    float gradient[SIDE * SIDE];
};

static void tell(void *context, const struct node *node, int64_t floats)
{
    struct told *told = context;
    const struct param *kernel = &node->param[0];
    if (node->index != LARGE) return;
    assert_in_range(floats, told->floats, SIDE * SIDE);
    memcpy(told->gradient + told->floats, kernel->gradient + told->floats,
           (size_t)(floats - told->floats) * sizeof(float));
    for (int64_t i = told->floats; i < floats && told->spoils; i++) kernel->value[i] = NAN;
    told->floats = floats;
    told->times++;
}

static void go_back(struct model *m, struct device *device, const char *regularizer,
                    struct told *told)
{
    char text[512];
    snprintf(text, sizeof text, THREE_LAYERS, regularizer);
    model_open(m, device, text, &FEW_ROWS);
    model_forward(m, BATCH, 0);
    m->graph->nodes[LARGE].param[0].leaves_amid = true;
    m->graph->nodes[LARGE].param[0].is_kept = told && !told->spoils;
    plan_backward(m->plan, false, told ? tell : NULL, told);
}

static void assert_same_gradients(const struct model *a, const struct model *b)
{
    for (int i = 0; i < a->graph->param_count; i++) {
        const struct param *p = a->graph->params[i];
        assert_memory_equal(p->gradient, b->graph->params[i]->gradient,
                            (size_t)param_floats(p) * sizeof(float));
    }
}

static void check_told(bool spoils, const char *regularizer, bool is_at_once)
{
    static struct told told;
    struct device device = open_device();
    struct model plain, m;
    if (device.is_separate) device_close(&device), skip();
    told = (struct told){.spoils = spoils};
    go_back(&plain, &device, regularizer, NULL);
    go_back(&m, &device, regularizer, &told);
    assert_same_gradients(&plain, &m);
    assert_int_equal(told.floats, SIDE * SIDE);
    assert_memory_equal(told.gradient, m.graph->nodes[LARGE].param[0].gradient,
                        sizeof told.gradient);
    assert_true(is_at_once ? told.times == 1 : told.times > 2);
    model_close(&m);
    model_close(&plain);
    device_close(&device);
}

static void a_large_gradient_is_told_of_piece_by_piece(void **state)
{
    check_told(false, "", false);
}

static void values_are_not_read_after_their_gradient_was_told_of(void **state)
{
    check_told(true, "", false);
}

static void a_gradient_with_a_penalty_is_told_of_when_it_has_that(void **state)
{
    check_told(false, "\"l2\": 0.5", true);
    check_told(false, "\"l1\": 0.5", true);
}

/* Fewer rows than the batch: as a graph of that batch size would have it. Without dropout, whose
 * mask is of the whole tensor. */
static void a_partial_batch_counts_its_own_rows_only(void **state)
{
    static const char text[] =
        "{\"model\": [{\"op\": \"conv2d\", \"filters\": 4, \"kernel_size\": 3, \"activation\": "
        "\"tanh\"}, {\"op\": \"flatten\"}, {\"op\": \"dense\", \"units\": 3}], \"loss\": "
        "\"softmax_cross_entropy\"}";
    const struct setting four = {4, IMAGES.features, true};
    const struct tolerance close = {.of_largest = 1e-5};
    struct device device = open_device();
    struct model whole, part;
    model_open(&whole, &device, text, &four);
    model_open(&part, &device, text, &IMAGES);
    model_loss(&part, 6, 0); /* a whole batch before, which must leave no trace */
    plan_backward(part.plan, false, NULL, NULL);
    for (int64_t i = 4 * 128; i < 6 * 128; i++) part.features[i] = NAN; /* must not be read */
    assert_near(model_loss(&whole, 4, 0), model_loss(&part, 4, 0), 1e-6);
    plan_backward(whole.plan, false, NULL, NULL);
    plan_backward(part.plan, false, NULL, NULL);
    for (int i = 0; i < whole.graph->param_count; i++)
        assert_close(part.graph->params[i]->gradient, whole.graph->params[i]->gradient,
                     shape_count(&whole.graph->params[i]->shape), close, "gradient");
    model_close(&whole);
    model_close(&part);
    device_close(&device);
}

/* ---- ahead of a pass ---- */

/* Nodes with params that may be run; counts down. */
static bool may_run(void *left, const struct node *node)
{
    return (*(int *)left)-- > 0;
}

/* factor: 1, or -1: with other values than those that are there afterwards */
static void run_ahead(struct stepper *s, const struct graph *graph, int nodes, float factor)
{
    for (int i = 0; i < graph->param_count; i++) graph->params[i]->value[0] *= factor;
    stepper_run_ahead(s, may_run, &nodes);
    for (int i = 0; i < graph->param_count; i++) graph->params[i]->value[0] *= factor;
}

/* Fewer rows than the graph's: they are copied to memory that nodes may use again. */
static void nodes_are_run_ahead_of_a_pass(void **state)
{
    enum { PARTS = 4 };
    struct device device = open_device();
    for (uint64_t key = 0; key < 20; key++) {
        struct model whole, ahead;
        struct stepper stepper;
        struct text text;
        random_graph(&text, key);
        model_open(&whole, &device, text.at, &ROWS);
        model_open(&ahead, &device, text.at, &ROWS);
        stepper_open(ahead.plan, &stepper);
        const struct batch batch = model_batch(&ahead, ROWS.batch - 1);
        plan_load(ahead.plan, &batch, key);
        run_ahead(&stepper, ahead.graph, GRAPH_NODES, -1);
        stepper_forget_ahead(&stepper); /* for nothing */
        for (int i = 0; i < PARTS; i++) run_ahead(&stepper, ahead.graph, i, 1);
        stepper_run(&stepper, &(struct pass){.rows = batch.rows});
        model_forward(&whole, batch.rows, key);
        plan_backward(whole.plan, false, NULL, NULL);
        assert_same_results(&whole, &ahead);
        model_close(&whole);
        model_close(&ahead);
    }
    device_close(&device);
}

static void features_may_lie_anywhere(void **state)
{
    struct device device = open_device();
    struct model m;
    model_open(&m, &device, CNN, &IMAGES);
    const double expected = model_loss(&m, 6, 0);
    float *moved = malloc((6 * 128 + 1) * sizeof *moved);
    memcpy(moved + 1, m.features, 6 * 128 * sizeof *moved);
    m.columns[1].at = moved + 1;
    assert_true(model_loss(&m, 6, 0) == expected);
    free(moved);
    model_close(&m);
    device_close(&device);
}

static void an_evaluation_drops_nothing_and_needs_less(void **state)
{
    const struct setting evaluation = {IMAGES.batch, IMAGES.features, false};
    struct device device = open_device();
    struct model training, evaluating;
    model_open(&training, &device, CNN, &IMAGES);
    model_open(&evaluating, &device, CNN, &evaluation);
    assert_true(evaluating.plan->size.block < training.plan->size.block);
    assert_true(model_loss(&evaluating, 6, 0) == model_loss(&evaluating, 6, 1));
    assert_true(model_loss(&training, 6, 0) != model_loss(&training, 6, 1));
    assert_true(evaluating.graph->nodes[4].is_view);
    model_close(&training);
    model_close(&evaluating);
    device_close(&device);
}

/* Metrics look at logits and labels after the whole step. */
static void metrics_can_be_taken_after_backward(void **state)
{
    struct device device = open_device();
    struct model m;
    model_open(&m, &device, CNN, &IMAGES);
    double before[2][2] = {{0}}, after[2][2] = {{0}};
    const double loss = model_loss(&m, 6, 0);
    for (int i = 0; i < 2; i++)
        m.graph->metrics[i].metric->update(&m.graph->metrics[i], &device, 6, before[i]);
    plan_backward(m.plan, false, NULL, NULL);
    for (int i = 0; i < 2; i++)
        m.graph->metrics[i].metric->update(&m.graph->metrics[i], &device, 6, after[i]);
    assert_memory_equal(before, after, sizeof before);
    assert_true(after[1][0] / after[1][1] == loss);
    assert_true(after[0][1] == 6);
    model_close(&m);
    device_close(&device);
}

/* ---- what is carried ---- */

enum { LANES = 3, WINDOW = 4, INPUTS = 5, UNITS = 6, LANE = 2 * WINDOW };

static void open_recurrent(struct model *m, struct device *d, const char *op, int64_t time,
                           const char *more)
{
    char text[TEXT_MAX];
    const struct setting setting = {
        .batch = LANES, .features = {2, {time, INPUTS}}, .training = true};
    snprintf(text, sizeof text,
             "{\"model\": [{\"op\": \"%s\", \"name\": \"r\", \"units\": %d%s}], "
             "\"loss\": \"softmax_cross_entropy\"}",
             op, UNITS, more);
    model_open(m, d, text, &setting);
}

/* Window w of what the whole model has; compared with what that says there, from its `wanted` on.
 */
static void check_window(struct model *m, const struct model *whole, int window, uint64_t index,
                         uint64_t epoch, int wanted)
{
    struct batch batch = model_batch(m, LANES);
    const float *all = whole->features, *says = whole->graph->nodes[0].output.value;
    batch.index = index;
    batch.epoch = epoch;
    for (int lane = 0; lane < LANES; lane++)
        memcpy(m->features + lane * WINDOW * INPUTS, all + (lane * LANE + window * WINDOW) * INPUTS,
               WINDOW * INPUTS * sizeof *all);
    plan_forward(m->plan, &batch, index);
    plan_backward(m->plan, false, NULL, NULL);
    const float *said = m->graph->nodes[0].output.value;
    for (int lane = 0; lane < LANES && wanted >= 0; lane++)
        assert_close(said + lane * WINDOW * UNITS, says + (lane * LANE + wanted * WINDOW) * UNITS,
                     WINDOW * UNITS, (struct tolerance){.absolute = 1e-6}, "output");
}

static void check_carried(struct device *d, const char *op)
{
    struct model whole, m;
    open_recurrent(&whole, d, op, LANE, "");
    open_recurrent(&m, d, op, WINDOW, ", \"state\": \"carried\"");
    model_forward(&whole, LANES, 0);
    check_window(&m, &whole, 0, 7, 1, 0);  /* the first is fresh, whatever its number */
    check_window(&m, &whole, 0, 7, 1, 0);  /* once more */
    check_window(&m, &whole, 1, 8, 1, 1);  /* continues */
    check_window(&m, &whole, 1, 8, 1, 1);  /* once more */
    check_window(&m, &whole, 0, 9, 2, 0);  /* another epoch */
    check_window(&m, &whole, 0, 11, 2, 0); /* one was left out */
    check_window(&m, &whole, 0, 2, 2, 0);  /* back */
    check_window(&m, &whole, 1, 3, 2, 1);
    model_close(&m);
    model_close(&whole);
}

static void states_are_carried_to_the_batch_that_follows(void **state)
{
    struct device device = open_device();
    check_carried(&device, "lstm");
    check_carried(&device, "gru");
    device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sharing_memory_changes_no_result),
        cmocka_unit_test(outputs_that_are_kept_stay),
        cmocka_unit_test(random_graphs_have_the_gradient_of_their_loss),
        cmocka_unit_test(regularizers_are_part_of_the_gradient),
        cmocka_unit_test(a_diamond_adds_the_gradients_of_its_arms),
        cmocka_unit_test(gradients_exist_only_below_parameters),
        cmocka_unit_test(nobody_wants_the_gradients_of_what_is_frozen),
        cmocka_unit_test(the_measured_size_is_the_one_taken),
        cmocka_unit_test(backward_can_add_to_the_gradients),
        cmocka_unit_test(nodes_are_reported_as_their_gradients_are_finished),
        cmocka_unit_test(a_large_gradient_is_told_of_piece_by_piece),
        cmocka_unit_test(values_are_not_read_after_their_gradient_was_told_of),
        cmocka_unit_test(a_gradient_with_a_penalty_is_told_of_when_it_has_that),
        cmocka_unit_test(a_partial_batch_counts_its_own_rows_only),
        cmocka_unit_test(nodes_are_run_ahead_of_a_pass),
        cmocka_unit_test(features_may_lie_anywhere),
        cmocka_unit_test(an_evaluation_drops_nothing_and_needs_less),
        cmocka_unit_test(metrics_can_be_taken_after_backward),
        cmocka_unit_test(states_are_carried_to_the_batch_that_follows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
