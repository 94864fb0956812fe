/* bench.c - see bench.h. */
#include "tests/core/graph/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"

struct device open_device_or_skip(const char *isa)
{
    struct device device;
    if (device_open_cpu(1, isa, &device)) skip();
    return device;
}

struct device open_device(void)
{
    struct device device;
    if (device_open_cpu(1, NULL, &device)) fail_msg("%s", error_text());
    return device;
}

void *memory_take(struct memory *memory, size_t bytes)
{
    assert_true(memory->count < BENCH_MEMORY_MAX);
    void *piece;
    if (memory->device->kernels->allocate(memory->device, bytes, &piece))
        fail_msg("%s", error_text());
    memory->at[memory->count++] = piece;
    return piece;
}

void memory_free(struct memory *memory)
{
    for (int i = 0; i < memory->count; i++)
        memory->device->kernels->release(memory->device, memory->at[i]);
    memory->count = 0;
}

json_t *object_from(const char *text)
{
    json_error_t error;
    json_t *json = json_loads(text, 0, &error);
    if (!json) fail_msg("%s: %s", text, error.text);
    return json;
}

void *attributes_from(const struct object *object, json_t *json, struct arena *arena)
{
    void *attributes = arena_new(arena, object->size);
    if (fields_parse(object, json, object->name, arena, attributes)) fail_msg("%s", error_text());
    return attributes;
}

static void *take_tensor(struct memory *memory, const struct tensor *tensor)
{
    return memory_take(memory, (size_t)shape_count(&tensor->shape) * sizeof(float));
}

/* The same weights for all of a shape */
static void set_ids(struct bench *b, struct tensor *ids, const struct op_case *shapes)
{
    ids->dtype = INT64;
    ids->buckets = shapes->buckets;
    ids->value = memory_take(&b->memory, tensor_bytes(ids));
    if (!shapes->is_weighted) return;
    if (!b->weights.value) {
        b->weights = (struct tensor){.name = "weights", .shape = ids->shape};
        b->weights.value = take_tensor(&b->memory, &b->weights);
    }
    ids->weights = &b->weights;
}

bool bench_is_ids(const struct bench *b, int input)
{
    const struct op *op = b->node.op;
    for (int k = 0; k < op->named_ids; k++)
        if (input > 0 && b->node.named[k] == input) return true;
    return op->reads_ids && input < op->inputs_max;
}

/* Those that attributes name are called input_1, input_2 ... in cases. */
static void name_inputs(struct node *node)
{
    const char *const *keys = node->op->named_inputs;
    for (int k = 0; keys && keys[k]; k++) {
        const char *name = fields_string(&node->op->object, node->attributes, keys[k]);
        for (int i = 1; i < node->input_count && name; i++)
            if (strcmp(node->input[i]->name, name) == 0) node->named[k] = i;
        assert_true(!name || node->named[k] > 0);
    }
}

bool bench_is_mask(const struct bench *b, int input)
{
    const char *const *keys = b->node.op->named_inputs;
    for (int k = 0; keys && keys[k]; k++)
        if (strcmp(keys[k], "mask") == 0 && b->node.named[k] == input) return input > 0;
    return false;
}

static void set_inputs(struct bench *b, const struct op_case *shapes)
{
    for (int i = 0; i < shapes->input_count; i++) {
        b->input[i] = (struct tensor){.name = arena_format(&b->arena, "input_%d", i),
                                      .shape = shapes->input[i]};
        b->node.input[i] = &b->input[i];
    }
    b->node.input_count = shapes->input_count;
    name_inputs(&b->node);
    for (int i = 0; i < shapes->input_count; i++) {
        if (bench_is_ids(b, i)) {
            set_ids(b, &b->input[i], shapes);
            continue;
        }
        b->input[i].value = take_tensor(&b->memory, &b->input[i]);
        b->input[i].gradient = take_tensor(&b->memory, &b->input[i]);
    }
}

/* Of labels that are drawn, as the graph would of a batch */
static void make_inputs(struct bench *b)
{
    const struct node *node = &b->node;
    const int64_t rows = node->input[0]->shape.dim[0];
    void *at[MADE_MAX];
    if (node->making.count == 0) return;
    int32_t *labels = memory_take(&b->memory, (size_t)rows * sizeof *labels);
    for (int64_t i = 0; i < rows; i++)
        labels[i] = (int32_t)(random_u64(17, (uint64_t)i) % (uint64_t)node->output.classes);
    for (int k = 0; k < node->making.count; k++) {
        struct tensor *made = &node->making.inputs[k]->tensor;
        at[k] = made->value = memory_take(&b->memory, tensor_bytes(made));
    }
    const struct column column = {.dtype = INT32, .at = labels};
    node->op->make(node, &(struct batch){.rows = rows, .columns = &column, .column_count = 1}, 0,
                   at);
}

static void set_memory(struct bench *b)
{
    struct node *node = &b->node;
    node->output.value = node->is_view ? b->input[0].value : take_tensor(&b->memory, &node->output);
    node->output.gradient =
        node->is_view ? b->input[0].gradient : take_tensor(&b->memory, &node->output);
    for (int i = 0; i < SAVED_MAX; i++)
        if (node->saved[i].shape.rank)
            node->saved[i].value = take_tensor(&b->memory, &node->saved[i]);
    for (int i = 0; i < node->param_count; i++) {
        const size_t bytes = (size_t)shape_count(&node->param[i].shape) * sizeof(float);
        node->param[i].value = memory_take(&b->memory, bytes);
        node->param[i].gradient = memory_take(&b->memory, bytes);
    }
}

void bench_open(struct bench *b, struct device *device, const struct op *op, json_t *attributes,
                const struct op_case *shapes)
{
    bench_open_for(b, device, op, attributes, shapes, true);
}

void bench_open_for(struct bench *b, struct device *device, const struct op *op, json_t *attributes,
                    const struct op_case *shapes, bool training)
{
    *b = (struct bench){.device = device, .memory = {.device = device}};
    b->is_positive = shapes->is_positive;
    b->node = (struct node){.op = op, .name = op->object.name, .training = training, .key = 7};
    b->node.draw = b->draw = memory_take(&b->memory, sizeof *b->draw);
    b->node.attributes = attributes_from(&op->object, attributes, &b->arena);
    b->node.input = b->inputs;
    b->node.add = b->add;
    set_inputs(b, shapes);
    if (op->infer(&b->node, &b->arena)) fail_msg("%s: %s", op->object.name, error_text());
    set_memory(b);
    make_inputs(b);
    if (op->prepare && op->prepare(&b->node, device))
        fail_msg("%s: %s", op->object.name, error_text());
}

void bench_close(struct bench *b)
{
    if (b->node.op->release) b->node.op->release(&b->node, b->device);
    memory_free(&b->memory);
    arena_free(&b->arena);
}

void bench_forward(struct bench *b)
{
    if (!b->node.is_view) b->node.op->forward(&b->node, b->device);
    assert_int_equal(b->device->kernels->synchronize(b->device), OK);
}

void bench_backward(struct bench *b)
{
    if (!b->node.is_view) b->node.op->backward(&b->node, b->device);
    assert_int_equal(b->device->kernels->synchronize(b->device), OK);
}

void loss_bench_open(struct loss_bench *b, struct device *device, const struct loss *loss,
                     json_t *attributes, const struct shape *logits)
{
    *b = (struct loss_bench){.device = device,
                             .memory = {.device = device},
                             .logits = {.name = "logits", .shape = *logits}};
    b->logits.value = take_tensor(&b->memory, &b->logits);
    b->logits.gradient = take_tensor(&b->memory, &b->logits);
    b->node = (struct loss_node){.loss = loss, .factor = 1, .logits = &b->logits};
    b->logits.classes = logits->dim[logits->rank - 1];
    b->node.attributes = attributes_from(&loss->object, attributes, &b->arena);
    if (loss->infer(&b->node, &b->arena)) fail_msg("%s: %s", loss->object.name, error_text());
    b->node.labels.value = take_tensor(&b->memory, &b->node.labels);
    b->node.scale = memory_take(&b->memory, sizeof(float));
    b->node.losses = memory_take(&b->memory, (size_t)logits->dim[0] * sizeof(float));
    if (loss->prepare && loss->prepare(&b->node, device)) fail_msg("%s", error_text());
}

void loss_bench_close(struct loss_bench *b)
{
    if (b->node.loss->release) b->node.loss->release(&b->node, b->device);
    memory_free(&b->memory);
    arena_free(&b->arena);
}

void loss_bench_count(struct loss_bench *b, int64_t rows)
{
    struct loss_node *node = &b->node;
    node->counts = loss_count(node, node->labels.value, node->weights.value, rows);
    const float scale = loss_scale(node, &node->counts);
    b->device->kernels->upload(b->device, (void *)node->scale, &scale, sizeof scale);
}

double loss_bench_mean(struct loss_bench *b, int64_t rows)
{
    loss_bench_count(b, rows);
    b->node.loss->forward(&b->node, b->device, rows);
    const double divisor = loss_divisor(&b->node);
    return kernels_sum(b->device, b->node.losses, rows) / divisor;
}

void assert_near(double got, double want, double error)
{
    if (!(fabs(got - want) <= error)) fail_msg("%.12g, expected %.12g", got, want);
}

void assert_close(const float *got, const float *want, int64_t count, struct tolerance tolerance,
                  const char *what)
{
    double largest = 0;
    for (int64_t i = 0; i < count; i++) largest = fmax(largest, fabs((double)want[i]));
    for (int64_t i = 0; i < count; i++) {
        const double allowed = tolerance.absolute + tolerance.relative * fabs((double)want[i]) +
                               tolerance.of_largest * largest;
        if (!(fabs((double)got[i] - want[i]) <= allowed))
            fail_msg("%s[%lld]: %.9g, expected %.9g", what, (long long)i, got[i], want[i]);
    }
}
