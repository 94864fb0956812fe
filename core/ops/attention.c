/* attention: softmax(q k' / sqrt(width)) v, of several heads. Inputs are queries, keys and values,
 * [batch, ..., positions, width]; the last axis holds the heads one after the other. */
#include "core/ops/mask.h"

#include <inttypes.h>
#include <math.h>

struct attributes {
    int64_t heads;
    bool causal;
    const char *mask;
};

static const struct field fields[] = {
    FIELD_OF("heads", INT, struct attributes, heads, .fallback = "1", .min = 1, .max = 1024,
             .help = "number of heads, of at most 256 units each"),
    FIELD_OF("causal", BOOL, struct attributes, causal, .fallback = "false",
             .help = "each position attends only to itself and earlier positions"),
    MASK_FIELD(offsetof(struct attributes, mask)),
    {0},
};

enum { QUERIES, KEYS, VALUES };
enum { LOG_SUMS, DELTAS }; /* saved, one of each per head and query */

static int64_t last_of(const struct shape *shape)
{
    return shape->dim[shape->rank - 1];
}

static int64_t places_of(const struct shape *shape)
{
    return shape->dim[shape->rank - 2];
}

/* All shapes must be equal but for the number of positions, which keys and values share */
static err check_shapes(const struct node *node)
{
    const struct shape *q = &node->input[QUERIES]->shape, *k = &node->input[KEYS]->shape;
    const struct shape *v = &node->input[VALUES]->shape;
    struct shape like_q = *k;
    char texts[3][SHAPE_TEXT_MAX];
    if (q->rank >= 3 && k->rank == q->rank) {
        like_q.dim[q->rank - 2] = places_of(q);
        if (shape_equal(&like_q, q) && shape_equal(k, v)) return OK;
    }
    return fail(
        ERR_INPUT,
        "inputs: expected queries, keys and values [batch, ..., places, numbers], alike but "
        "for the places of the queries: they are %s, %s and %s",
        shape_text(q, texts[0]), shape_text(k, texts[1]), shape_text(v, texts[2]));
}

static err check_heads(const struct node *node)
{
    const struct attributes *a = node->attributes;
    const struct shape *q = &node->input[QUERIES]->shape, *k = &node->input[KEYS]->shape;
    if (last_of(q) % a->heads)
        return fail(ERR_INPUT, "heads: %" PRId64 " numbers are not divided by %" PRId64, last_of(q),
                    a->heads);
    if (last_of(q) / a->heads > ATTENTION_WIDTH_MAX)
        return fail(ERR_INPUT, "heads: %" PRId64 " numbers for each; at most %d are possible",
                    last_of(q) / a->heads, ATTENTION_WIDTH_MAX);
    if (a->causal && places_of(q) != places_of(k))
        return fail(ERR_INPUT,
                    "causal: expected as many queries as keys, got %" PRId64 " and %" PRId64,
                    places_of(q), places_of(k));
    if (mask_of(node) && q->rank != 3)
        return fail(ERR_INPUT, "mask: expected keys of [batch, places, numbers]");
    return mask_check(node, places_of(k));
}

static err infer(struct node *node, struct arena *arena)
{
    const struct attributes *a = node->attributes;
    const struct shape *q = &node->input[QUERIES]->shape;
    TRY(check_shapes(node));
    TRY(check_heads(node));
    node->output.shape = *q;
    const int64_t heads = shape_count(q) / last_of(q) * a->heads;
    const struct tensor kept = {.dtype = FLOAT32, .shape = {1, {heads}}};
    node->saved[LOG_SUMS] = kept;
    if (node->training) node->saved[DELTAS] = kept;
    return OK;
}

static struct attention attention_of(const struct node *node)
{
    const struct attributes *a = node->attributes;
    const struct tensor *q = node->input[QUERIES], *k = node->input[KEYS], *v = node->input[VALUES];
    const int64_t width = last_of(&q->shape) / a->heads;
    return (struct attention){.batch = shape_count(&q->shape) / places_of(&q->shape) /
                                       last_of(&q->shape),
                              .heads = a->heads,
                              .queries = places_of(&q->shape),
                              .keys = places_of(&k->shape),
                              .width = width,
                              .scale = 1.0f / sqrtf((float)width),
                              .is_causal = a->causal,
                              .q = q->value,
                              .k = k->value,
                              .v = v->value,
                              .mask = mask_of(node) ? mask_of(node)->value : NULL,
                              .y = node->output.value,
                              .log_sums = node->saved[LOG_SUMS].value,
                              .deltas = node->saved[DELTAS].value,
                              .dy = node->output.gradient,
                              .dq = q->gradient,
                              .dk = k->gradient,
                              .dv = v->gradient,
                              .add_q = node->add[QUERIES],
                              .add_k = node->add[KEYS],
                              .add_v = node->add[VALUES]};
}

static void forward(const struct node *node, struct device *d)
{
    const struct attention a = attention_of(node);
    d->kernels->attention(d, &a);
}

static void backward(const struct node *node, struct device *d)
{
    const struct attention a = attention_of(node);
    mask_backward(node, d);
    d->kernels->attention_back_queries(d, &a);
    d->kernels->attention_back_keys(d, &a);
}

/* Several heads; more positions than a tile has; causal; masked; several axes before the
 * positions */
static const struct op_case cases[] = {
    {"{}", 3, {{3, {2, 3, 4}}, {3, {2, 5, 4}}, {3, {2, 5, 4}}}},
    {"{\"heads\": 2, \"causal\": true}", 3, {{3, {2, 7, 6}}, {3, {2, 7, 6}}, {3, {2, 7, 6}}}},
    {"{\"heads\": 3, \"mask\": \"input_3\"}",
     4,
     {{3, {3, 2, 6}}, {3, {3, 70, 6}}, {3, {3, 70, 6}}, {2, {3, 70}}}},
    {"{\"causal\": true}", 3, {{4, {1, 2, 5, 4}}, {4, {1, 2, 5, 4}}, {4, {1, 2, 5, 4}}}},
    {0},
};

static const char *const named[] = {"mask", NULL};

const struct op op_attention = {
    .object = {"attention", "scaled dot-product attention: softmax(q k' / sqrt(width)) v", fields,
               sizeof(struct attributes)},
    .inputs_min = 3,
    .inputs_max = 3,
    .named_inputs = named,
    .reads_input = true,
    .reads_output = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};
