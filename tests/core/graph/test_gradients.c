/* test_gradients.c - every case of every op and loss: gradients against central differences.
 *
 * One direction of +1 and -1 per input and per parameter, so that none hides behind another:
 * (L(x + h v) - L(x - h v)) / 2h against sum of g v, with L = sum of y w taken in double. float32
 * leaves about 1e-7 / h of rounding and h^2 of truncation.
 */
#include "tests/core/graph/bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/random.h"

static const float STEP = 0x1p-8f;
static const double TOLERANCE = 4e-3; /* times 1 + length of the gradient */
static const float JUNK = 12345.0f;   /* must be overwritten */

/* Evenly spaced values within +-limit in random order: far apart for max_pool, and none at the kink
 * of a relu. */
static void spread(float *x, int64_t count, float limit, uint64_t key)
{
    for (int64_t i = 0; i < count; i++) {
        const uint64_t place = random_permute(key, (uint64_t)count, (uint64_t)i);
        x[i] = limit * ((2 * (float)place + 1) / (float)count - 1);
    }
}

static void fill_normal(float *x, int64_t count, uint64_t key)
{
    for (int64_t i = 0; i < count; i++) x[i] = 0.5f * random_normal(key, (uint64_t)i);
}

static float sign_at(uint64_t key, int64_t index)
{
    return random_u64(key, (uint64_t)index) & 1 ? 1.0f : -1.0f;
}

static void move(float *x, int64_t count, float step, uint64_t key)
{
    for (int64_t i = 0; i < count; i++) x[i] += step * sign_at(key, i);
}

/* A value that the gradient is taken for. */
struct place {
    float *value;
    const float *gradient;
    int64_t count;
    const char *what;
};

/* What is differentiated: one number from the values as they stand. */
struct function {
    double (*evaluate)(void *);
    void *context;
};

/* Less in each of many elements, so that few sums cross the kink of a relu. A power of two, so that
 * x + h is hardly rounded. */
static float step_for(int64_t count)
{
    return ldexpf(STEP, -ilogb((double)count) / 2);
}

static void check_place(const struct function *f, const struct place *p, uint64_t key)
{
    const float step = step_for(p->count);
    double expected = 0, squares = 0;
    for (int64_t i = 0; i < p->count; i++) {
        expected += (double)p->gradient[i] * sign_at(key, i);
        squares += (double)p->gradient[i] * p->gradient[i];
    }
    move(p->value, p->count, step, key);
    const double above = f->evaluate(f->context);
    move(p->value, p->count, -2 * step, key);
    const double below = f->evaluate(f->context);
    move(p->value, p->count, step, key);

    const double difference = (above - below) / (2 * (double)step);
    if (!(fabs(difference - expected) <= TOLERANCE * (1 + sqrt(squares))))
        fail_msg("%s: differences give %g, the gradient %g", p->what, difference, expected);
}

/* Ops */

struct weighted {
    struct bench *bench;
    const float *weights; /* of the outputs */
};

static double weighted_sum(void *context)
{
    const struct weighted *w = context;
    bench_forward(w->bench);
    const float *y = w->bench->node.output.value;
    const int64_t count = shape_count(&w->bench->node.output.shape);
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += (double)y[i] * w->weights[i];
    return sum;
}

/* From none on; most of them more than once */
static void fill_ids(struct tensor *ids, uint64_t key)
{
    int64_t *at = ids->value;
    for (int64_t i = 0; i < shape_count(&ids->shape); i++)
        at[i] = (int64_t)(random_u64(key, (uint64_t)i) % (uint64_t)(ids->buckets + 1)) - 1;
    if (ids->weights) spread(ids->weights->value, shape_count(&ids->shape), 2.0f, 11);
}

/* Evenly spaced from 1 to 3 */
static void spread_above_zero(float *x, int64_t count, uint64_t key)
{
    spread(x, count, 1.0f, key);
    for (int64_t i = 0; i < count; i++) x[i] += 2.0f;
}

/* Of 0 and 1; one example has nothing, and none of them all */
static void fill_mask(struct tensor *mask, uint64_t key)
{
    float *at = mask->value;
    const int64_t places = mask->shape.dim[1];
    for (int64_t i = 0; i < shape_count(&mask->shape); i++)
        at[i] = i >= places && i % places != 1 && random_u64(key, (uint64_t)i) % 3 > 0;
}

static void fill_all(struct bench *b)
{
    const float limit = b->node.param_count > 0 ? 2.0f : 8.0f;
    for (int i = 0; i < b->node.input_count; i++)
        if (bench_is_ids(b, i))
            fill_ids(&b->input[i], 12 + (uint64_t)i);
        else if (bench_is_mask(b, i))
            fill_mask(&b->input[i], 12 + (uint64_t)i);
        else if (b->is_positive)
            spread_above_zero(b->input[i].value, shape_count(&b->input[i].shape), 12 + (uint64_t)i);
        else
            spread(b->input[i].value, shape_count(&b->input[i].shape), limit, 12 + (uint64_t)i);
    for (int i = 0; i < b->node.param_count; i++)
        fill_normal(b->node.param[i].value, shape_count(&b->node.param[i].shape), 31 + (uint64_t)i);
}

static void set_float(float *x, int64_t count, float value)
{
    for (int64_t i = 0; i < count; i++) x[i] = value;
}

/* Before backward, what it says it does not read becomes NaN. */
static void spoil_unread(struct bench *b)
{
    const struct op *op = b->node.op;
    if (b->node.is_view) return;
    for (int i = 0; i < b->node.input_count && !op->reads_input; i++)
        set_float(b->input[i].value, shape_count(&b->input[i].shape), NAN);
    if (!op->reads_output) set_float(b->node.output.value, shape_count(&b->node.output.shape), NAN);
}

static void set_gradients(struct bench *b, float value)
{
    for (int i = 0; i < b->node.input_count && !b->node.is_view; i++)
        if (b->input[i].gradient)
            set_float(b->input[i].gradient, shape_count(&b->input[i].shape), value);
    for (int i = 0; i < b->node.param_count; i++)
        set_float(b->node.param[i].gradient, shape_count(&b->node.param[i].shape), value);
}

/* With add, gradients begin at `start` and get theirs on top. */
static void run_backward(struct weighted *w, bool add, float start)
{
    struct bench *b = w->bench;
    set_gradients(b, start);
    for (int i = 0; i < b->node.input_count; i++) b->node.add[i] = add;
    b->node.add_params = add;
    bench_forward(b);
    memcpy(b->node.output.gradient, w->weights,
           (size_t)shape_count(&b->node.output.shape) * sizeof(float));
    spoil_unread(b);
    bench_backward(b);
    fill_all(b); /* what was spoiled */
}

static int places_of(struct bench *b, struct place *ret_places)
{
    int count = 0;
    for (int i = 0; i < b->node.input_count && !b->node.op->reads_ids; i++)
        if (!bench_is_mask(b, i) && !bench_is_ids(b, i))
            ret_places[count++] = (struct place){b->input[i].value, b->input[i].gradient,
                                                 shape_count(&b->input[i].shape), "input"};
    for (int i = 0; i < b->node.param_count; i++) {
        struct param *p = &b->node.param[i];
        if (p->moving > 0) continue; /* no gradient is left there */
        ret_places[count++] =
            (struct place){p->value, p->gradient, shape_count(&p->shape), p->name};
    }
    return count;
}

static void check_adding(struct weighted *w, const struct place *places, int count)
{
    struct bench *b = w->bench;
    float *kept[INPUTS_MAX + PARAMS_MAX];
    for (int i = 0; i < count; i++) {
        kept[i] = memory_take(&b->memory, (size_t)places[i].count * sizeof(float));
        for (int64_t k = 0; k < places[i].count; k++) kept[i][k] = places[i].gradient[k] + 1.0f;
    }
    run_backward(w, true, 1.0f);
    for (int i = 0; i < count && !b->node.is_view; i++)
        assert_close(places[i].gradient, kept[i], places[i].count,
                     (struct tolerance){.of_largest = 1e-5}, places[i].what);
}

/* It is added to, or nothing at all */
static void check_masks(const struct bench *b, float start)
{
    for (int i = 0; i < b->node.input_count; i++)
        for (int64_t k = 0; bench_is_mask(b, i) && k < shape_count(&b->input[i].shape); k++)
            assert_true(b->input[i].gradient[k] == start);
}

static void check_case(struct device *device, const struct op *op, const struct op_case *test)
{
    struct bench b;
    json_t *attributes = object_from(test->attributes);
    bench_open(&b, device, op, attributes, test);
    json_decref(attributes);
    fill_all(&b);
    const int64_t outputs = shape_count(&b.node.output.shape);
    float *weights = memory_take(&b.memory, (size_t)outputs * sizeof(float));
    fill_normal(weights, outputs, 51);

    struct weighted w = {&b, weights};
    run_backward(&w, false, JUNK);
    check_masks(&b, 0);
    struct place places[INPUTS_MAX + PARAMS_MAX];
    const int count = places_of(&b, places);
    const struct function f = {weighted_sum, &w};
    for (int i = 0; i < count; i++) check_place(&f, &places[i], 71 + (uint64_t)i);
    check_adding(&w, places, count);
    check_masks(&b, 1);
    bench_close(&b);
}

static void every_op_has_the_gradient_of_its_forward_pass(void **state)
{
    struct device device = open_device_or_skip(*state);
    const struct kind *kind;
    for (int i = 0; (kind = op_kinds.at(i)); i++) {
        const struct op *op = kind->descriptor;
        if (!op->cases || !op->cases[0].attributes) fail_msg("%s has no cases", op->object.name);
        for (const struct op_case *test = op->cases; test->attributes; test++) {
            print_message("%s %s\n", op->object.name, test->attributes);
            check_case(&device, op, test);
        }
    }
    device_close(&device);
}

/* Where an input wants no gradient, none is written; parameters get theirs all the same. */
static void gradients_that_nobody_wants_are_left_out(void **state)
{
    struct device device = open_device();
    const struct kind *kind;
    for (int i = 0; (kind = op_kinds.at(i)); i++) {
        const struct op *op = kind->descriptor;
        struct bench b;
        json_t *attributes = object_from(op->cases[0].attributes);
        bench_open(&b, &device, op, attributes, &op->cases[0]);
        json_decref(attributes);
        fill_all(&b);
        bench_forward(&b);
        set_float(b.node.output.gradient, shape_count(&b.node.output.shape), 1.0f);
        set_gradients(&b, JUNK);
        for (int k = 0; k < b.node.input_count; k++) b.input[k].gradient = NULL;
        bench_backward(&b);
        for (int p = 0; p < b.node.param_count; p++)
            assert_true(b.node.param[p].gradient[0] != JUNK);
        bench_close(&b);
    }
    device_close(&device);
}

/* weights_of: one of the same kind and shapes takes the variables of the first, by their names. */
static void check_sharing(struct device *device, const struct op *op, const struct op_case *test)
{
    struct bench b;
    json_t *attributes = object_from(test->attributes);
    bench_open(&b, device, op, attributes, test);
    json_decref(attributes);
    struct node again = b.node;
    again.name = "again";
    again.param = NULL;
    again.param_count = again.param_room = 0;
    again.sharing.of = &b.node;
    const err e = op->infer(&again, &b.arena);
    if (e && strstr(error_text(), "its rows are those of its own labels")) {
        bench_close(&b);
        return;
    }
    if (e) fail_msg("%s: %s", op->object.name, error_text());
    assert_int_equal(again.param_count, b.node.param_count);
    assert_true(again.param_count == 0 || again.param == b.node.param);
    for (int i = 0; i < again.param_count; i++)
        assert_int_equal(strncmp(again.param[i].name, b.node.name, strlen(b.node.name)), 0);
    bench_close(&b);
}

static void variables_of_any_op_may_be_shared(void **state)
{
    struct device device = open_device();
    const struct kind *kind;
    for (int i = 0; (kind = op_kinds.at(i)); i++) {
        const struct op *op = kind->descriptor;
        for (const struct op_case *test = op->cases; test->attributes; test++)
            check_sharing(&device, op, test);
    }
    device_close(&device);
}

/* Losses */

struct rows_of {
    struct loss_bench *bench;
    int64_t rows;
};

static double mean_loss(void *context)
{
    const struct rows_of *r = context;
    return loss_bench_mean(r->bench, r->rows);
}

static void fill_labels(struct loss_bench *b)
{
    struct tensor *labels = &b->node.labels;
    const int64_t count = shape_count(&labels->shape),
                  classes = b->logits.shape.dim[b->logits.shape.rank - 1];
    for (int64_t i = 0; i < count; i++) {
        const uint64_t draw = random_u64(91, (uint64_t)i);
        const bool is_none = labels->shape.rank > 1 && i % 4 == 1;
        if (labels->dtype == INT32)
            ((int32_t *)labels->value)[i] = is_none ? -1 : (int32_t)(draw % (uint64_t)classes);
        else if (b->node.loss->predicts != PREDICTS_NUMBER)
            ((float *)labels->value)[i] = (float)(draw & 1);
        else
            ((float *)labels->value)[i] = random_normal(92, (uint64_t)i);
    }
}

/* Probabilities lie between 0 and 1, far enough from both for a difference quotient. */
static void fill_logits(struct loss_bench *b)
{
    const int64_t count = shape_count(&b->logits.shape);
    float *x = b->logits.value;
    spread(x, count, 3.0f, 93);
    if (b->node.loss->predicts != PREDICTS_PROBABILITY) return;
    for (int64_t i = 0; i < count; i++) x[i] = 0.5f + x[i] / 8;
}

static void check_loss(struct device *device, const struct loss *loss, const struct op_case *test,
                       enum loss_reduction reduction)
{
    struct loss_bench b;
    json_t *attributes = object_from(test->attributes);
    loss_bench_open(&b, device, loss, attributes, &test->input[0]);
    json_decref(attributes);
    b.node.reduction = reduction;
    fill_labels(&b);
    fill_logits(&b);

    const int64_t batch = b.logits.shape.dim[0], columns = shape_count_from(&b.logits.shape, 1);
    for (int64_t rows = batch; rows >= batch - 1; rows--) {
        set_float(b.logits.gradient, batch * columns, JUNK);
        loss_bench_mean(&b, rows);
        float *gradient = memory_take(&b.memory, (size_t)(rows * columns) * sizeof(float));
        memcpy(gradient, b.logits.gradient, (size_t)(rows * columns) * sizeof(float));
        struct rows_of context = {&b, rows};
        const struct function f = {mean_loss, &context};
        check_place(&f, &(struct place){b.logits.value, gradient, rows * columns, "logits"}, 94);
    }
    b.logits.gradient = NULL; /* an evaluation: losses only */
    assert_true(isfinite(loss_bench_mean(&b, batch)));
    loss_bench_close(&b);
}

static void every_loss_has_the_gradient_of_its_mean_and_its_sum(void **state)
{
    struct device device = open_device_or_skip(*state);
    const struct kind *kind;
    for (int i = 0; (kind = loss_kinds.at(i)); i++) {
        const struct loss *loss = kind->descriptor;
        if (!loss->cases || !loss->cases[0].attributes)
            fail_msg("%s has no cases", loss->object.name);
        for (const struct op_case *test = loss->cases; test->attributes; test++) {
            print_message("%s %s\n", loss->object.name, test->attributes);
            check_loss(&device, loss, test, REDUCTION_MEAN);
            check_loss(&device, loss, test, REDUCTION_SUM);
        }
    }
    device_close(&device);
}

/* Every activation that a layer can fuse is among the cases of dense and conv2d. */
static void every_fused_activation_has_a_case(void **state)
{
    static const char *const layers[] = {"dense", "conv2d"};
    static const char *const activations[] = {"relu",    "relu6",     "elu",      "leaky_relu",
                                              "sigmoid", "tanh",      "softplus", "swish",
                                              "gelu",    "gelu_tanh", "selu",     "softsign"};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        const struct op *op = kinds_find(&op_kinds, layers[i])->descriptor;
        for (size_t k = 0; k < sizeof activations / sizeof *activations; k++) {
            char word[64];
            bool is_there = false;
            snprintf(word, sizeof word, "\"activation\": \"%s\"", activations[k]);
            for (const struct op_case *test = op->cases; test->attributes; test++)
                is_there = is_there || strstr(test->attributes, word);
            if (!is_there) fail_msg("%s has no case of %s", layers[i], activations[k]);
        }
    }
}

/* A mask depends on the node's key and the step's draw, and keeps about 1 - rate. */
static void dropout_draws_a_mask_per_step(void **state)
{
    struct device device = open_device();
    struct bench b;
    const struct op *op = kinds_find(&op_kinds, "dropout")->descriptor;
    json_t *attributes = object_from("{\"rate\": 0.25}");
    const struct op_case shapes = {"", 1, {{2, {100, 100}}}};
    bench_open(&b, &device, op, attributes, &shapes);
    json_decref(attributes);
    set_float(b.input[0].value, 10000, 3.0f);

    float first[10000];
    int kept = 0, same = 0;
    bench_forward(&b);
    memcpy(first, b.node.output.value, sizeof first);
    for (int i = 0; i < 10000; i++) {
        assert_true(first[i] == 0.0f || fabsf(first[i] - 4.0f) < 1e-6f);
        kept += first[i] != 0.0f;
    }
    assert_in_range(kept, 7300, 7700);
    *b.draw = 1;
    bench_forward(&b);
    for (int i = 0; i < 10000; i++) same += first[i] == ((float *)b.node.output.value)[i];
    assert_in_range(same, 5900, 6600); /* 0.75^2 + 0.25^2 of them */
    bench_close(&b);
    device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_EVERY_ISA(every_op_has_the_gradient_of_its_forward_pass),
        ON_EVERY_ISA(every_loss_has_the_gradient_of_its_mean_and_its_sum),
        cmocka_unit_test(gradients_that_nobody_wants_are_left_out),
        cmocka_unit_test(variables_of_any_op_may_be_shared),
        cmocka_unit_test(every_fused_activation_has_a_case),
        cmocka_unit_test(dropout_draws_a_mask_per_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
