/* test_stepper.c - passes that are recorded and done again on the emulated GPU: when, and that the
 * same bits come of them as of a GPU that queues each anew. */
#include "core/graph/stepper.h"
#include "tests/cuda/emulator/emulated.h"
#include "tests/core/graph/models.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 6, FLOATS_MAX = 4096, TRACED_MAX = 4096 };

#define DENSE                                                                                      \
    "{\"op\": \"flatten\"}, {\"op\": \"dense\", \"units\": 9, \"activation\": \"tanh\", "          \
    "\"kernel_regularizer\": {\"l2\": 0.01}}, {\"op\": \"dense\", \"units\": 4}"
static const char CNN[] =
    "{\"model\": [{\"op\": \"conv2d\", \"filters\": 4, \"kernel_size\": 3, \"padding\": \"same\", "
    "\"activation\": \"relu\"}, {\"op\": \"max_pool\", \"pool_size\": 2}, {\"op\": \"dropout\", "
    "\"rate\": 0.4}, " DENSE "], \"loss\": \"softmax_cross_entropy\"}";
static const char WEIGHTED[] =
    "{\"model\": [" DENSE "], \"loss\": {\"op\": \"softmax_cross_entropy\", "
    "\"class_weights\": [1, 2, 0.5, 1]}}";
static const char DROPPING[] =
    "{\"model\": [{\"op\": \"flatten\"}, {\"op\": \"dropout\"}, {\"op\": \"dense\", \"units\": 4}],"
    " \"loss\": \"softmax_cross_entropy\"}";
static const struct setting IMAGES = {.batch = 6, .features = {3, {8, 8, 2}}, .training = true};

/* A model on a device, its params there, and how often it was told of what */
struct world {
    struct device d;
    struct kernels table;
    struct model m;
    struct plan *plan;
    struct stepper stepper;
    int begun, finished;
};

static void *device_memory(struct device *d, const float *from, int64_t floats)
{
    void *memory;
    if (d->kernels->allocate(d, (size_t)floats * sizeof(float), &memory))
        fail_msg("%s", error_text());
    d->kernels->upload(d, memory, from, (size_t)floats * sizeof(float));
    return memory;
}

/* Takes the values and gradients that lie elsewhere along. */
static void move_params(struct world *w, bool is_first)
{
    static float at[FLOATS_MAX];
    for (int i = 0; i < w->m.graph->param_count; i++) {
        struct param *p = w->m.graph->params[i];
        float **const both[] = {&p->value, &p->gradient};
        const int64_t count = shape_count(&p->shape);
        assert_in_range(count, 1, FLOATS_MAX);
        for (int k = 0; k < 2; k++) {
            float *old = *both[k];
            if (!is_first) w->d.kernels->download(&w->d, at, old, (size_t)count * sizeof(float));
            *both[k] = device_memory(&w->d, is_first ? old : at, count);
            if (is_first)
                free(old);
            else
                w->d.kernels->release(&w->d, old);
        }
    }
}

/* records: as the device is; otherwise it has nothing beside its queue. */
static void open_world(struct world *w, const char *model, const struct setting *setting,
                       bool records)
{
    *w = (struct world){0};
    if (device_open_emulated(&w->d)) fail_msg("%s", error_text());
    w->table = *w->d.kernels;
    if (!records) w->table.async = NULL;
    w->d.kernels = &w->table;
    struct device host;
    assert_int_equal(device_open_cpu(1, NULL, &host), OK);
    model_open(&w->m, &host, model, setting);
    plan_close(w->m.plan);
    w->m.plan = NULL;
    device_close(&host);
    move_params(w, true);
    if (plan_open(w->m.graph, &w->d, &w->plan)) fail_msg("%s", error_text());
    stepper_open(w->plan, &w->stepper);
}

static void close_world(struct world *w)
{
    stepper_forget(&w->stepper);
    plan_close(w->plan);
    for (int i = 0; i < w->m.graph->param_count; i++) {
        struct param *p = w->m.graph->params[i];
        w->d.kernels->release(&w->d, p->value);
        w->d.kernels->release(&w->d, p->gradient);
        p->value = p->gradient = NULL;
    }
    assert_int_equal(w->d.kernels->synchronize(&w->d), OK);
    device_close(&w->d);
    model_close(&w->m);
}

static void begin(void *context)
{
    struct world *w = context;
    w->begun++;
}

static void finish(void *context, const struct node *node, int64_t floats)
{
    struct world *w = context;
    assert_true(node->param_count > 0);
    assert_int_equal(floats, param_floats(&node->param[0]));
    w->finished++;
}

static void step(struct world *w, uint64_t draw, const struct pass *pass)
{
    const struct batch batch = model_batch(&w->m, pass->rows);
    plan_load(w->plan, &batch, draw);
    stepper_run(&w->stepper, pass);
    assert_int_equal(w->d.kernels->synchronize(&w->d), OK);
}

static struct pass whole(const struct world *w)
{
    return (struct pass){.rows = w->m.graph->batch};
}

/* Gradients of both, bit by bit */
static void assert_same(struct world *a, struct world *b)
{
    static float x[FLOATS_MAX], y[FLOATS_MAX];
    for (int i = 0; i < a->m.graph->param_count; i++) {
        const struct param *p = a->m.graph->params[i], *q = b->m.graph->params[i];
        const size_t bytes = (size_t)shape_count(&p->shape) * sizeof(float);
        a->d.kernels->download(&a->d, x, p->gradient, bytes);
        b->d.kernels->download(&b->d, y, q->gradient, bytes);
        assert_memory_equal(x, y, bytes);
    }
    assert_true(plan_loss(a->plan, a->m.graph->batch, NULL, NULL) ==
                plan_loss(b->plan, b->m.graph->batch, NULL, NULL));
}

static int made(void)
{
    return emulated_calls("cudaGraphInstantiate");
}

static int launched(void)
{
    return emulated_calls("cudaGraphLaunch");
}

static void a_pass_is_recorded_the_second_time_and_then_done_again(void **state)
{
    static struct world w, plain;
    open_world(&w, CNN, &IMAGES, true);
    open_world(&plain, CNN, &IMAGES, false);
    const int made_before = made(), launched_before = launched();
    const struct pass pass = whole(&w);
    for (int i = 0; i < STEPS; i++) {
        step(&plain, (uint64_t)i, &pass);
        step(&w, (uint64_t)i, &pass);
        assert_same(&w, &plain);
        assert_int_equal(made() - made_before, i >= 1);
        assert_int_equal(launched() - launched_before, i);
    }
    close_world(&w);
    close_world(&plain);
}

/* Whoever is told of nodes is part of the recording: what it queues is done again without it. */
static void a_recording_needs_nobody_who_queues_it(void **state)
{
    static struct world w;
    open_world(&w, CNN, &IMAGES, true);
    const struct pass pass = {
        .rows = IMAGES.batch, .begin = begin, .finished = finish, .context = &w};
    for (int i = 0; i < STEPS; i++) step(&w, (uint64_t)i, &pass);
    assert_int_equal(w.begun, 2);
    assert_int_equal(w.finished, 2 * 3); /* nodes with params */
    const int kernels = emulated_calls("cudaLaunchKernelEx");
    stepper_run(&w.stepper, &pass);
    assert_int_equal(emulated_calls("cudaLaunchKernelEx"), kernels);
    close_world(&w);
}

static void nothing_is_replayed_while_nodes_are_timed(void **state)
{
    static struct world w;
    struct trace trace;
    open_world(&w, CNN, &IMAGES, true);
    assert_int_equal(trace_open(&trace, TRACED_MAX), OK);
    const struct pass pass = whole(&w);
    for (int i = 0; i < STEPS; i++) {
        const int launched_before = launched();
        const bool is_traced = i == 1 || i == 3;
        trace_clear(&trace);
        w.plan->trace = is_traced ? &trace : NULL;
        step(&w, (uint64_t)i, &pass);
        assert_int_equal(launched() - launched_before, i >= 2 && !is_traced);
        assert_true((trace.count > w.m.graph->node_count) == is_traced);
    }
    w.plan->trace = NULL;
    trace_close(&trace);
    close_world(&w);
}

static void a_batch_with_fewer_rows_is_queued_anew(void **state)
{
    static const int64_t rows[STEPS] = {6, 2, 6, 4, 6, 1};
    static const int wanted[STEPS] = {0, 0, 1, 0, 1, 0};
    static struct world w, plain;
    open_world(&w, CNN, &IMAGES, true);
    open_world(&plain, CNN, &IMAGES, false);
    for (int i = 0; i < STEPS; i++) {
        const int launched_before = launched();
        const struct pass pass = {.rows = rows[i]};
        step(&plain, (uint64_t)i, &pass);
        step(&w, (uint64_t)i, &pass);
        assert_same(&w, &plain);
        assert_int_equal(launched() - launched_before, wanted[i]);
    }
    close_world(&w);
    close_world(&plain);
}

/* Fewer rows too: what stood behind them is gone, whatever it was. */
static void a_batch_that_is_sent_ahead_is_the_same_as_one_that_is_loaded(void **state)
{
    static const int64_t rows[STEPS] = {6, 2, 6, 5, 1, 6};
    static struct world w, plain;
    open_world(&w, CNN, &IMAGES, true);
    open_world(&plain, CNN, &IMAGES, false);
    assert_int_equal(plan_open_inlet(w.plan), OK);
    for (int i = 0; i < STEPS; i++) {
        const struct pass pass = {.rows = rows[i]};
        const struct batch batch = model_batch(&w.m, rows[i]);
        for (int k = 0; k < w.m.graph->input_count; k++)
            w.d.kernels->fill(&w.d, w.plan->inputs[k], NAN,
                              shape_count(&w.m.graph->inputs[k].tensor->shape));
        plan_send(w.plan, &batch, (uint64_t)i);
        plan_take(w.plan, rows[i]);
        stepper_run(&w.stepper, &pass);
        step(&plain, (uint64_t)i, &pass);
        assert_same(&w, &plain);
    }
    close_world(&w);
    close_world(&plain);
}

/* What a batch counts is told with it, so that a pass over labels that differ is the same pass. */
static void a_loss_that_weighs_classes_is_recorded(void **state)
{
    static struct world w, plain;
    open_world(&w, WEIGHTED, &IMAGES, true);
    open_world(&plain, WEIGHTED, &IMAGES, false);
    const int before = launched();
    const struct pass pass = whole(&w), other = whole(&plain);
    for (int i = 0; i < STEPS; i++) {
        step(&plain, (uint64_t)i, &other);
        step(&w, (uint64_t)i, &pass);
        assert_same(&w, &plain);
    }
    assert_int_equal(launched() - before, STEPS - 1);
    close_world(&w);
    close_world(&plain);
}

/* Which inputs were dropped, by the rows of the kernel's gradient that are zero: [inputs, 4] */
static void dropped(struct world *w, bool *ret, int inputs)
{
    static float gradient[FLOATS_MAX];
    const float *from = w->m.graph->params[0]->gradient;
    w->d.kernels->download(&w->d, gradient, from, (size_t)inputs * 4 * sizeof(float));
    assert_int_equal(w->d.kernels->synchronize(&w->d), OK);
    for (int i = 0; i < inputs; i++) ret[i] = gradient[4 * i] == 0 && gradient[4 * i + 1] == 0;
}

static void dropped_on_cpu(uint64_t draw, bool *ret, int inputs, const struct setting *setting)
{
    struct device host;
    struct model m;
    assert_int_equal(device_open_cpu(1, NULL, &host), OK);
    model_open(&m, &host, DROPPING, setting);
    model_forward(&m, 1, draw);
    plan_backward(m.plan, false, NULL, NULL);
    for (int i = 0; i < inputs; i++)
        ret[i] = m.graph->params[0]->gradient[4 * i] == 0 &&
                 m.graph->params[0]->gradient[4 * i + 1] == 0;
    model_close(&m);
    device_close(&host);
}

static void each_replay_drops_out_what_the_cpu_does(void **state)
{
    enum { INPUTS = 128 };
    static const struct setting one = {.batch = 1, .features = {3, {8, 8, 2}}, .training = true};
    static struct world w;
    bool here[INPUTS], there[INPUTS], before[INPUTS] = {0};
    open_world(&w, DROPPING, &one, true);
    const struct pass pass = whole(&w);
    const int launched_before = launched();
    for (int i = 0; i < STEPS; i++) {
        const uint64_t draw = 1000 + 7 * (uint64_t)i;
        step(&w, draw, &pass);
        dropped(&w, here, INPUTS);
        dropped_on_cpu(draw, there, INPUTS, &one);
        assert_memory_equal(here, there, INPUTS);
        assert_true(memcmp(here, before, INPUTS) != 0);
        memcpy(before, here, INPUTS);
    }
    assert_int_equal(launched() - launched_before, STEPS - 1);
    close_world(&w);
}

/* What was recorded knows the old addresses: memory that is gone, which the GPU may not touch. */
static void params_that_move_are_found_after_what_was_recorded_is_forgotten(void **state)
{
    static struct world w, plain;
    open_world(&w, CNN, &IMAGES, true);
    open_world(&plain, CNN, &IMAGES, false);
    const struct pass pass = whole(&w);
    const int made_before = made();
    for (int i = 0; i < STEPS; i++) {
        if (i == 1 || i == 3) {
            stepper_forget(&w.stepper);
            move_params(&w, false);
        }
        step(&plain, (uint64_t)i, &pass);
        step(&w, (uint64_t)i, &pass);
        assert_same(&w, &plain);
    }
    assert_int_equal(made() - made_before, 2);
    stepper_forget(&w.stepper);
    stepper_forget(&w.stepper);
    stepper_forget(&(struct stepper){0});
    close_world(&w);
    close_world(&plain);
}

static void passes_that_add_and_that_do_not_are_recorded_apart(void **state)
{
    static struct world w, plain;
    open_world(&w, CNN, &IMAGES, true);
    open_world(&plain, CNN, &IMAGES, false);
    const int made_before = made(), launched_before = launched();
    for (int i = 0; i < 3 * STEPS; i++) {
        const bool tells = i % 3 == 2;
        const struct pass pass = {.rows = IMAGES.batch,
                                  .add = i % 3 > 0,
                                  .finished = tells ? finish : NULL,
                                  .context = &w};
        step(&plain, (uint64_t)i, &pass);
        step(&w, (uint64_t)i, &pass);
        assert_same(&w, &plain);
    }
    assert_int_equal(made() - made_before, 3);
    assert_int_equal(launched() - launched_before, 3 * (STEPS - 1));
    close_world(&w);
    close_world(&plain);
}

/* Then each is queued anew, and never tried again; whoever is told of nodes hears of a beginning
 * before each of both times. */
static void a_pass_that_cannot_be_recorded_is_done_all_the_same(void **state)
{
    static const char *const calls[] = {"cudaStreamBeginCapture", "cudaStreamEndCapture",
                                        "cudaGraphInstantiate"};
    for (int k = 0; k < 3; k++) {
        static struct world w, plain;
        open_world(&w, CNN, &IMAGES, true);
        open_world(&plain, CNN, &IMAGES, false);
        const struct pass pass = {
            .rows = IMAGES.batch, .begin = begin, .finished = finish, .context = &w};
        const struct pass other = whole(&plain);
        for (int i = 0; i < STEPS; i++) {
            step(&plain, (uint64_t)i, &other);
            emulated_break(i == 1 ? calls[k] : NULL, 0);
            const int before = emulated_calls("cudaStreamBeginCapture");
            step(&w, (uint64_t)i, &pass);
            emulated_break(NULL, 0);
            assert_int_equal(emulated_calls("cudaStreamBeginCapture") - before, i == 1);
            assert_same(&w, &plain);
        }
        const int queued = STEPS + (k > 0);
        assert_int_equal(w.begun, queued);
        assert_int_equal(w.finished, 3 * queued);
        close_world(&w);
        close_world(&plain);
    }
}

/* ---- rows that count more or less ---- */

enum { ROWS = 300, ROWS_OF_NONE = 100 };
#define HUNDRED_CLASSES "{\"model\": [{\"op\": \"dense\", \"units\": 100}], "

/* The first rows count nothing, all others the same. */
static void open_weighted(struct world *w, const char *model)
{
    static float weights[ROWS];
    for (int i = ROWS_OF_NONE; i < ROWS; i++) weights[i] = 3;
    static const struct column weight = {.name = "weight", .shape = {1, {1}}, .at = weights};
    const struct setting setting = {.batch = ROWS,
                                    .features = {1, {6}},
                                    .training = true,
                                    .weight = "weight",
                                    .more = &weight,
                                    .more_count = 1};
    open_world(w, model, &setting, true);
    const struct batch batch = model_batch(&w->m, ROWS);
    plan_load(w->plan, &batch, 0);
    assert_int_equal(w->d.kernels->synchronize(&w->d), OK);
}

/* Losses and gradients are weighted where they lie. */
static void a_pass_of_weighted_rows_is_not_waited_for(void **state)
{
    static struct world w;
    open_weighted(&w, HUNDRED_CLASSES "\"loss\": \"softmax_cross_entropy\"}");
    const struct pass pass = whole(&w);
    const struct emulated_work before = emulated_work();
    stepper_run(&w.stepper, &pass);
    const struct emulated_work after = emulated_work();
    assert_int_equal(after.up - before.up, 0);
    assert_int_equal(after.waits - before.waits, 0);
    assert_int_equal(after.bytes_down - before.bytes_down, 0);
    close_world(&w);
}

static void weighted_rows_are_measured_by_neighbours(void **state)
{
    static struct world w;
    double states[2] = {0};
    open_weighted(&w, HUNDRED_CLASSES "\"loss\": \"softmax_cross_entropy\", \"metrics\": "
                                      "[{\"op\": \"in_top_k\", \"k\": 99}]}");
    const struct pass pass = whole(&w);
    stepper_run(&w.stepper, &pass);
    assert_int_equal(w.d.kernels->synchronize(&w.d), OK);
    const struct metric_node *metric = &w.m.graph->metrics[0];
    const int64_t before = emulated_work().waits;
    metric->metric->update(metric, &w.d, ROWS, states);
    assert_int_equal(emulated_work().waits - before, 1 + 2); /* weights; rows of none, and others */
    assert_true(states[0] > 0 && states[1] == 3 * (ROWS - ROWS_OF_NONE));
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pass_is_recorded_the_second_time_and_then_done_again),
        cmocka_unit_test(a_recording_needs_nobody_who_queues_it),
        cmocka_unit_test(nothing_is_replayed_while_nodes_are_timed),
        cmocka_unit_test(a_batch_with_fewer_rows_is_queued_anew),
        cmocka_unit_test(a_batch_that_is_sent_ahead_is_the_same_as_one_that_is_loaded),
        cmocka_unit_test(a_loss_that_weighs_classes_is_recorded),
        cmocka_unit_test(each_replay_drops_out_what_the_cpu_does),
        cmocka_unit_test(params_that_move_are_found_after_what_was_recorded_is_forgotten),
        cmocka_unit_test(passes_that_add_and_that_do_not_are_recorded_apart),
        cmocka_unit_test(a_pass_that_cannot_be_recorded_is_done_all_the_same),
        cmocka_unit_test(a_pass_of_weighted_rows_is_not_waited_for),
        cmocka_unit_test(weighted_rows_are_measured_by_neighbours),
    };
    emulated_break_by(INVALID_VALUE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
