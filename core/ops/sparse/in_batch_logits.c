/* in_batch_logits: the logits of each example's query with its own item and those of other examples
 * of the batch: y [batch, block], of which the example's own is right.
 *
 * y = query . item / temperature - log frequency of the item, which corrects for frequent items
 * being negatives more often (the logQ correction). An item that occurs more than once in a block
 * has a logit only in its own example.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "core/ops/algebra/loops.h"

static const float NO_LOGIT = -1e4f; /* e to the power of that is 0 */

struct attributes {
    const char *ids, *frequency;
    double temperature;
    int64_t block;
};

static const struct field fields[] = {
    FIELD_OF("ids", STRING, struct attributes, ids,
             .help = "column with the id of each row's item, one id per row"),
    FIELD_OF("frequency", STRING, struct attributes, frequency, .fallback = "null",
             .help = "column with the frequency of each row's item, above 0, as a count or a "
                     "fraction: its logarithm is subtracted from the item's logits (sampling bias "
                     "correction); null: no correction"),
    FIELD_OF("temperature", FLOAT, struct attributes, temperature, .fallback = "1", .min = 1e-6,
             .max = 1e6,
             .help = "divides the products; 0.05 suits vectors of length 1 (l2_normalize)"),
    FIELD_OF("block", INT, struct attributes, block, .fallback = "0", .max = 1 << 20,
             .help = "size of the consecutive blocks of a batch within which rows are compared; 0: "
                     "the whole batch (with towers: a tower's rows)"),
    {0},
};

enum { IDS, FREQUENCY }; /* named inputs */

static int64_t block_of(const struct node *node)
{
    return node->output.shape.dim[1];
}

static err check_shapes(const struct node *node)
{
    const struct shape *query = &node->input[0]->shape, *item = &node->input[1]->shape;
    const struct tensor *ids = node_named(node, IDS), *frequency = node_named(node, FREQUENCY);
    char texts[2][SHAPE_TEXT_MAX];
    if (query->rank != 2 || !shape_equal(query, item))
        return fail(ERR_INPUT,
                    "inputs: wants two of the same [batch, dimension], a query and an item, but "
                    "\"%s\" is %s, \"%s\" is %s",
                    node->input[0]->name, shape_text(query, texts[0]), node->input[1]->name,
                    shape_text(item, texts[1]));
    if (shape_count_from(&ids->shape, 1) != 1)
        return fail(ERR_INPUT, "ids: expected one in each row, \"%s\" is %s", ids->name,
                    shape_text(&ids->shape, texts[0]));
    if (frequency && shape_count_from(&frequency->shape, 1) != 1)
        return fail(ERR_INPUT, "frequency: expected one number in each row, \"%s\" is %s",
                    frequency->name, shape_text(&frequency->shape, texts[0]));
    return OK;
}

static err infer(struct node *node, struct arena *arena)
{
    const struct attributes *a = node->attributes;
    TRY(check_shapes(node));
    const int64_t batch = node->input[0]->shape.dim[0], block = a->block ? a->block : batch;
    if (batch % block)
        return fail(ERR_INPUT, "block: %" PRId64 " rows cannot be cut into blocks of %" PRId64,
                    batch, block);
    struct tensor *answers = arena_new(arena, sizeof *answers);
    *answers = (struct tensor){.name = node->name, .dtype = INT32, .shape = {1, {batch}}};
    node->output.shape = (struct shape){2, {batch, block}};
    node->output.answers = answers;
    if (node->named[FREQUENCY]) node->saved[0].shape = (struct shape){1, {batch}};
    return OK;
}

static size_t prepared_bytes(const struct node *node, struct device *d)
{
    return tensor_bytes(node->output.answers);
}

/* Fills the answers: each example's own column */
static err prepare(struct node *node, struct device *d)
{
    const int64_t batch = node->output.shape.dim[0];
    int32_t *own = malloc((size_t)batch * sizeof *own);
    if (!own) return fail(ERR_MEMORY, "no memory for %" PRId64 " answers", batch);
    for (int64_t i = 0; i < batch; i++) own[i] = (int32_t)(i % block_of(node));
    const err e = d->kernels->allocate(d, prepared_bytes(node, d), &node->state);
    if (!e) d->kernels->upload(d, node->state, own, prepared_bytes(node, d));
    ((struct tensor *)node->output.answers)->value = node->state;
    free(own);
    return e;
}

static void release(struct node *node, struct device *d)
{
    if (node->state) d->kernels->release(d, node->state);
    node->state = NULL;
}

static void set_others(const struct node *node, struct device *d, float *y, float value)
{
    d->kernels->same_ids(d, &(struct same_ids){.rows = node->output.shape.dim[0],
                                               .columns = block_of(node),
                                               .block = block_of(node),
                                               .step = block_of(node),
                                               .spares_own = true,
                                               .value = value,
                                               .row_ids = node_named(node, IDS)->value,
                                               .column_ids = node_named(node, IDS)->value,
                                               .y = y});
}

/* Loops over y block by block, row by row; f.b is indexed by the column. */
static void fold_columns(struct fold *f, const struct node *node)
{
    const int64_t block = block_of(node), blocks = node->output.shape.dim[0] / block;
    f->kept = (struct fold_loops){3, .n = {blocks, block, block}, .y = {block * block, block, 1},
                                  .a = {block * block, block, 1}, .b = {block, 0, 1}};
}

static float scale_of(const struct node *node)
{
    return (float)(1 / ((const struct attributes *)node->attributes)->temperature);
}

static void take_frequency(const struct node *node, struct device *d)
{
    const struct tensor *frequency = node_named(node, FREQUENCY);
    float *logs = node->saved[0].value, *y = node->output.value;
    if (!frequency) return;
    struct fold log = {FOLD_LOG, .scale = 1, .y = logs, .a = frequency->value};
    log.kept = (struct fold_loops){1, .n = {node->output.shape.dim[0]}, .y = {1}, .a = {1}};
    d->kernels->fold(d, &log);
    struct fold f = {FOLD_SUBTRACT, .scale = 1, .y = y, .a = y, .b = logs};
    fold_columns(&f, node);
    d->kernels->fold(d, &f);
}

static void forward(const struct node *node, struct device *d)
{
    const int64_t block = block_of(node), batch = node->output.shape.dim[0];
    const struct gemm g = {.transpose_b = true,
                           .m = block,
                           .n = block,
                           .k = node->input[0]->shape.dim[1],
                           .a = node->input[0]->value,
                           .b = node->input[1]->value,
                           .c = node->output.value};
    d->kernels->gemm_each(d, &g, batch / block);
    d->kernels->scale(d, node->output.value, scale_of(node), batch * block);
    take_frequency(node, d);
    set_others(node, d, node->output.value, NO_LOGIT);
}

/* Gradient of a column's frequency f: minus the sum of the column's gradients over f */
static void frequency_back(const struct node *node, struct device *d)
{
    const struct tensor *frequency = node_named(node, FREQUENCY);
    const int64_t block = block_of(node), batch = node->output.shape.dim[0];
    if (!frequency || !frequency->gradient) return;
    struct fold f = {FOLD_DIVIDE, .scale = -1, .add = node->add[node->named[FREQUENCY]]};
    f.y = frequency->gradient;
    f.a = node->output.gradient;
    f.b = frequency->value;
    f.kept = (struct fold_loops){2, .n = {batch / block, block}, .y = {block, 1},
                                 .a = {block * block, 1}, .b = {block, 1}};
    f.folded = (struct fold_loops){1, .n = {block}, .a = {block}};
    d->kernels->fold(d, &f);
}

/* of: 0, the queries, 1, the items */
static void input_back(const struct node *node, struct device *d, int of)
{
    const int64_t block = block_of(node), batch = node->output.shape.dim[0];
    if (!node->input[of]->gradient) return;
    const struct gemm g = {.transpose_a = of == 1,
                           .add = node->add[of],
                           .m = block,
                           .n = node->input[0]->shape.dim[1],
                           .k = block,
                           .a = node->output.gradient,
                           .b = node->input[1 - of]->value,
                           .c = node->input[of]->gradient};
    d->kernels->gemm_each(d, &g, batch / block);
}

static void backward(const struct node *node, struct device *d)
{
    const int64_t count = shape_count(&node->output.shape);
    set_others(node, d, node->output.gradient, 0.0f);
    frequency_back(node, d);
    d->kernels->scale(d, node->output.gradient, scale_of(node), count);
    input_back(node, d, 0);
    input_back(node, d, 1);
}

/* Ids only; with frequencies; in blocks */
static const struct op_case cases[] = {
    {"{\"ids\": \"input_2\"}", 3, {{2, {5, 3}}, {2, {5, 3}}, {2, {5, 1}}}, 4},
    {"{\"ids\": \"input_2\", \"frequency\": \"input_3\", \"temperature\": 2}",
     4,
     {{2, {4, 3}}, {2, {4, 3}}, {2, {4, 1}}, {2, {4, 1}}},
     9,
     .is_positive = true},
    {"{\"ids\": \"input_2\", \"frequency\": \"input_3\", \"block\": 3}",
     4,
     {{2, {6, 5}}, {2, {6, 5}}, {2, {6, 1}}, {2, {6, 1}}},
     5,
     .is_positive = true},
    {0},
};

static const char *const named[] = {[IDS] = "ids", [FREQUENCY] = "frequency", NULL};

const struct op op_in_batch_logits = {
    .object = {"in_batch_logits",
               "in-batch softmax of a two-tower model: products of each example's query with the "
               "items of the whole batch, of which its own is the right class of "
               "softmax_cross_entropy; labels are ignored",
               fields, sizeof(struct attributes)},
    .inputs_min = 2,
    .inputs_max = 2,
    .named_inputs = named,
    .named_ids = 1,
    .reads_input = true,
    .infer = infer,
    .prepare = prepare,
    .prepared_bytes = prepared_bytes,
    .release = release,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};
