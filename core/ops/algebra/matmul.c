/* matmul: the product of the matrices of each example: of two inputs [batch, ..., m, k] and [batch,
 * ..., k, n], each optionally transposed. */
#include "core/graph/op.h"

struct attributes {
    bool transpose_a, transpose_b;
};

static const struct field fields[] = {
    FIELD_OF("transpose_a", BOOL, struct attributes, transpose_a, .fallback = "false",
             .help = "transpose the first input, whose matrices are [k, m]"),
    FIELD_OF("transpose_b", BOOL, struct attributes, transpose_b, .fallback = "false",
             .help = "transpose the second input, whose matrices are [n, k]"),
    {0},
};

/* One product; infer has checked that the inputs match. */
static struct gemm product_of(const struct node *node)
{
    const struct attributes *at = node->attributes;
    const struct shape *a = &node->input[0]->shape, *y = &node->output.shape;
    return (struct gemm){.transpose_a = at->transpose_a,
                         .transpose_b = at->transpose_b,
                         .m = y->dim[y->rank - 2],
                         .n = y->dim[y->rank - 1],
                         .k = a->dim[a->rank - (at->transpose_a ? 2 : 1)]};
}

static bool goes_together(const struct shape *a, const struct shape *b, const struct attributes *at)
{
    if (a->rank < 3 || a->rank != b->rank) return false;
    for (int i = 0; i < a->rank - 2; i++)
        if (a->dim[i] != b->dim[i]) return false;
    return a->dim[a->rank - (at->transpose_a ? 2 : 1)] ==
           b->dim[b->rank - (at->transpose_b ? 1 : 2)];
}

static err infer(struct node *node, struct arena *arena)
{
    const struct attributes *at = node->attributes;
    const struct shape *a = &node->input[0]->shape, *b = &node->input[1]->shape;
    struct shape *y = &node->output.shape;
    char one[SHAPE_TEXT_MAX], other[SHAPE_TEXT_MAX];
    if (!goes_together(a, b, at))
        return fail(ERR_INPUT,
                    "inputs: expected [batch, ..., %s] and [batch, ..., %s], alike before these: "
                    "\"%s\" is %s, \"%s\" is %s",
                    at->transpose_a ? "k, m" : "m, k", at->transpose_b ? "n, k" : "k, n",
                    node->input[0]->name, shape_text(a, one), node->input[1]->name,
                    shape_text(b, other));
    *y = *a;
    y->dim[y->rank - 2] = a->dim[a->rank - (at->transpose_a ? 1 : 2)];
    y->dim[y->rank - 1] = b->dim[b->rank - (at->transpose_b ? 2 : 1)];
    return OK;
}

/* The product of each matrix of a and b, in c; matrices are contiguous. */
static void multiply_all(struct device *d, struct gemm g, const float *a, const float *b, float *c,
                         int64_t count)
{
    g.a = a;
    g.b = b;
    g.c = c;
    d->kernels->gemm_each(d, &g, count);
}

static int64_t matrices_of(const struct node *node, const struct gemm *g)
{
    return shape_count(&node->output.shape) / (g->m * g->n);
}

static void forward(const struct node *node, struct device *d)
{
    const struct gemm g = product_of(node);
    multiply_all(d, g, node->input[0]->value, node->input[1]->value, node->output.value,
                 matrices_of(node, &g));
}

/* da = dy b', or where a is transposed, b dy'; db = a' dy, or dy' a */
static void backward(const struct node *node, struct device *d)
{
    const struct gemm g = product_of(node);
    const struct tensor *a = node->input[0], *b = node->input[1];
    const float *dy = node->output.gradient;
    const int64_t count = matrices_of(node, &g);
    const struct gemm to_a = {.transpose_b = !g.transpose_b, .m = g.m, .n = g.k, .k = g.n};
    const struct gemm to_a_turned = {g.transpose_b, true, .m = g.k, .n = g.m, .k = g.n};
    const struct gemm to_b = {.transpose_a = !g.transpose_a, .m = g.k, .n = g.n, .k = g.m};
    const struct gemm to_b_turned = {true, g.transpose_a, .m = g.n, .n = g.k, .k = g.m};

    struct gemm one = g.transpose_a ? to_a_turned : to_a;
    one.add = node->add[0];
    if (a->gradient && g.transpose_a) multiply_all(d, one, b->value, dy, a->gradient, count);
    if (a->gradient && !g.transpose_a) multiply_all(d, one, dy, b->value, a->gradient, count);

    one = g.transpose_b ? to_b_turned : to_b;
    one.add = node->add[1];
    if (b->gradient && g.transpose_b) multiply_all(d, one, dy, a->value, b->gradient, count);
    if (b->gradient && !g.transpose_b) multiply_all(d, one, a->value, dy, b->gradient, count);
}

/* Each combination of transposes; several matrices per example */
static const struct op_case cases[] = {
    {"{}", 2, {{3, {2, 3, 4}}, {3, {2, 4, 5}}}},
    {"{\"transpose_a\": true}", 2, {{3, {2, 4, 3}}, {3, {2, 4, 5}}}},
    {"{\"transpose_b\": true}", 2, {{4, {2, 2, 3, 4}}, {4, {2, 2, 5, 4}}}},
    {"{\"transpose_a\": true, \"transpose_b\": true}", 2, {{3, {3, 4, 3}}, {3, {3, 5, 4}}}},
    {0},
};

const struct op op_matmul = {
    .object = {"matmul", "the product of the matrices of each example", fields,
               sizeof(struct attributes)},
    .inputs_min = 2,
    .inputs_max = 2,
    .reads_input = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};
