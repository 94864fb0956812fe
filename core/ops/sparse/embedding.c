/* embedding: the rows of a table that an example's ids name, combined: y [batch, dimension]; or one
 * for each id: [batch, ids, dimension]. */
#include "core/ops/sparse/combine.h"

/* A row of 4 MiB: more is probably a mistake. */
enum { DIMENSION_MAX = 1 << 20 };

struct attributes {
    int64_t dimension;
    int combiner; /* enum combiner, or COMBINER_NONE */
    struct variant initializer;
    struct row_regularizer regularizer;
    const char *table, *weights;
    bool share; /* of several inputs; each is a node of its own by now */
    struct capacity capacity;
};

static const char *const combiner_names[] = {[COMBINER_SUM] = "sum",
                                             [COMBINER_MEAN] = "mean",
                                             [COMBINER_SQRTN] = "sqrtn",
                                             [COMBINER_NONE] = "none",
                                             NULL};

static const struct field fields[] = {
    FIELD_OF("dimension", INT, struct attributes, dimension, .min = 1, .max = DIMENSION_MAX,
             .help = "outputs per example; the width of the table"),
    FIELD_OF("combiner", ENUM, struct attributes, combiner, .fallback = "\"mean\"",
             .choices = combiner_names,
             .help = "how the rows of an example are combined: sum; mean (divided by the sum of "
                     "their weights); sqrtn (divided by the root of the sum of squared weights); "
                     "none: not combined, [batch, ids, dimension], padded with zeros"),
    FIELD_OF("initializer", VARIANT, struct attributes, initializer, .fallback = "null",
             .kinds = &initializer_kinds,
             .help = "initializer of the table; null: truncated_normal with stddev 1 / "
                     "sqrt(dimension), as TensorFlow; stddev 0.01 suits new click models"),
    ROW_REGULARIZER_FIELD(offsetof(struct attributes, regularizer)),
    FIELD_OF("table", STRING, struct attributes, table, .fallback = "null",
             .help =
                 "an earlier embedding, with as many rows and the same dimension, whose table this "
                 "one shares (tf.feature_column.shared_embedding_columns); null: a separate table"),
    FIELD_OF(
        "share", BOOL, struct attributes, share, .fallback = "false",
        .help = "with several inputs, whose output is [batch, inputs, ...]: use one table for all; "
                "false: one table each, NAME/INPUT/embedding_weights"),
    FIELD_OF("weights", STRING, struct attributes, weights, .fallback = "null",
             .help = "a column or node with one weight per id, instead of the weights in the "
                     "column of ids; no gradient flows into it"),
    CAPACITY_FIELDS(offsetof(struct attributes, capacity)),
    {0},
};

static err check_weights(const struct node *node)
{
    const struct tensor *weights = node_named(node, COMBINE_WEIGHTS), *ids = node->input[0];
    char texts[2][SHAPE_TEXT_MAX];
    if (!weights || shape_equal(&weights->shape, &ids->shape)) return OK;
    return fail(ERR_INPUT, "weights: expected %s, one for each id of \"%s\": \"%s\" is %s",
                shape_text(&ids->shape, texts[0]), ids->name, weights->name,
                shape_text(&weights->shape, texts[1]));
}

static err infer(struct node *node, struct arena *arena)
{
    const struct attributes *a = node->attributes;
    TRY(check_weights(node));
    const struct kind *kind = a->initializer.kind;
    if (kind && ((const struct initializer *)kind->descriptor)->is_whole)
        return fail(ERR_INPUT, "initializer: a table is made row by row, and %s makes all at once",
                    kind->object->name);
    struct shape *y = &node->output.shape;
    *y = node->input[0]->shape;
    if (a->combiner != COMBINER_NONE) y->rank = 1;
    if (y->rank == RANK_MAX)
        return fail(ERR_INPUT, "combiner: ids of %d axes are combined", RANK_MAX);
    y->dim[y->rank++] = a->dimension;
    if (a->table && (kind || a->capacity.kind))
        return fail(ERR_INPUT, "%s: the table is that of \"%s\"", kind ? "initializer" : "capacity",
                    a->table);
    struct param table = {.name = "embedding_weights",
                          .initializer = kind ? kind->descriptor : NULL,
                          .initializer_attributes = a->initializer.attributes};
    row_regularizer_apply(&a->regularizer, &table);
    TRY(capacity_growth(&a->capacity, &table.growth));
    if (!kind) TRY(combine_initialize(a->dimension, arena, &table));
    return combine_add_table(node, arena, 0, &table, a->dimension);
}

static const char *shared_name(const void *attributes)
{
    return ((const struct attributes *)attributes)->table;
}

static int combiner_of(const struct node *node)
{
    return ((const struct attributes *)node->attributes)->combiner;
}

static void forward(const struct node *node, struct device *d)
{
    combine_forward(node, d, 0, combiner_of(node), false);
}

static void backward(const struct node *node, struct device *d)
{
    const struct tensor *weights = node_named(node, COMBINE_WEIGHTS);
    combine_backward(node, d, 0, combiner_of(node));
    if (weights && weights->gradient && !node->add[node->named[COMBINE_WEIGHTS]])
        d->kernels->fill(d, weights->gradient, 0.0f, shape_count(&weights->shape));
}

/* One id and several; each combiner with weights and without */
static const struct op_case cases[] = {
    {"{\"dimension\": 3}", 1, {{2, {5, 1}}}, 4},
    {"{\"dimension\": 17}", 1, {{2, {4, 3}}}, 5},
    {"{\"dimension\": 4}", 1, {{2, {6, 3}}}, 5, true},
    {"{\"dimension\": 4, \"combiner\": \"sum\"}", 1, {{2, {6, 3}}}, 5},
    {"{\"dimension\": 4, \"combiner\": \"sum\"}", 1, {{2, {6, 3}}}, 5, true},
    {"{\"dimension\": 4, \"combiner\": \"sqrtn\"}", 1, {{2, {6, 3}}}, 5},
    {"{\"dimension\": 4, \"combiner\": \"sqrtn\"}", 1, {{2, {6, 3}}}, 5, true},
    {"{\"dimension\": 4, \"combiner\": \"none\"}", 1, {{2, {6, 3}}}, 5},
    {"{\"dimension\": 5, \"combiner\": \"none\"}", 1, {{2, {2, 4}}}, 3, true},
    {"{\"dimension\": 4, \"weights\": \"input_1\"}", 2, {{2, {6, 3}}, {2, {6, 3}}}, 5},
    {"{\"dimension\": 4, \"combiner\": \"none\", \"weights\": \"input_1\"}",
     2,
     {{2, {6, 3}}, {2, {6, 3}}},
     5},
    {0},
};

static const char *const named[] = {[COMBINE_WEIGHTS] = "weights", NULL};

const struct op op_embedding = {
    .object = {"embedding",
               "looks up the rows of a table by an example's ids, combined or one by one", fields,
               sizeof(struct attributes)},
    .inputs_min = 1,
    .inputs_max = 1,
    .named_inputs = named,
    .shared_name = shared_name,
    .reads_ids = true,
    .reads_input = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};
