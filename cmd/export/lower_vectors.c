/* lower_vectors.c - arithmetic on several inputs, and products of an example's vectors. */
#include <string.h>

#include "cmd/export/lower.h"

static const struct {
    const char *op;
    enum primitive primitive;
} folds[] = {
    {"add", PRIMITIVE_ADD},           {"subtract", PRIMITIVE_SUBTRACT},
    {"multiply", PRIMITIVE_MULTIPLY}, {"divide", PRIMITIVE_DIVIDE},
    {"maximum", PRIMITIVE_MAXIMUM},   {"minimum", PRIMITIVE_MINIMUM},
};

static err lower_fold(struct lowering *l, enum primitive primitive, int *ret)
{
    int x;
    TRY(lower_input(l, 0, ret));
    for (int i = 1; i < l->node->input_count; i++) {
        TRY(lower_input(l, i, &x));
        *ret = program_two(l->program, primitive, *ret, x);
    }
    return OK;
}

static int swap_last(struct program *p, int x)
{
    const int rank = p->values[x].shape.rank;
    int64_t axes[RANK_MAX];
    for (int i = 0; i < rank; i++) axes[i] = i;
    axes[rank - 1] = rank - 2;
    axes[rank - 2] = rank - 1;
    return program_transpose(p, x, axes);
}

static err lower_matmul(struct lowering *l, int *ret)
{
    int a, b;
    TRY(lower_input(l, 0, &a));
    TRY(lower_input(l, 1, &b));
    if (lower_bool(l->node, "transpose_a")) a = swap_last(l->program, a);
    if (lower_bool(l->node, "transpose_b")) b = swap_last(l->program, b);
    *ret = program_matmul(l->program, a, b);
    return OK;
}

/* Concatenates for each position: the vector, the position's own, their difference and product. */
static err lower_compare(struct lowering *l, int *ret)
{
    struct program *p = l->program;
    int x, places;
    TRY(lower_input(l, 0, &x));
    TRY(lower_input(l, 1, &places));
    const struct shape shape = p->values[places].shape;
    float *ones = arena_array(p->arena, (size_t)shape.dim[1], sizeof *ones);
    for (int64_t i = 0; i < shape.dim[1]; i++) ones[i] = 1;
    const int each = program_constant(p, "", &(struct shape){2, {shape.dim[1], 1}}, ones);
    x = program_reshape(p, x, &(struct shape){3, {shape.dim[0], 1, shape.dim[2]}});
    x = program_two(p, PRIMITIVE_MULTIPLY, x, each);
    const int parts[] = {x, places, program_two(p, PRIMITIVE_SUBTRACT, x, places),
                         program_two(p, PRIMITIVE_MULTIPLY, x, places)};
    *ret = program_concat(p, parts, (int)(sizeof parts / sizeof *parts), 2);
    return OK;
}

/* The inputs as [batch, vectors, width] */
static err lower_stacked(struct lowering *l, int *ret)
{
    struct program *p = l->program;
    int each[INPUTS_MAX];
    const int count = l->node->input_count;
    for (int i = 0; i < count; i++) {
        TRY(lower_input(l, i, &each[i]));
        const struct shape x = p->values[each[i]].shape;
        if (count > 1) each[i] = program_reshape(p, each[i], &(struct shape){3, {1, 1, x.dim[1]}});
    }
    *ret = count > 1 ? program_concat(p, each, count, 1) : each[0];
    return OK;
}

/* The products below the diagonal, row by row: of vector i with those before it */
static int lower_triangle(struct program *p, int products, int64_t vectors)
{
    int rows[PROGRAM_INPUTS_MAX], count = 0, all = -1;
    for (int64_t i = 1; i < vectors; i++) {
        const struct program_value row = {.primitive = PRIMITIVE_SLICE,
                                          .inputs = {products},
                                          .input_count = 1,
                                          .shape = {3, {1, 1, i}},
                                          .axes = {0, i, 0}};
        rows[count++] = program_reshape(p, program_add(p, &row), &(struct shape){2, {1, i}});
        if (count < PROGRAM_INPUTS_MAX - 1 && i + 1 < vectors) continue;
        if (count > 1) rows[0] = program_concat(p, rows, count, 1);
        all = rows[0];
        count = 1;
    }
    return all;
}

static err lower_interaction(struct lowering *l, int *ret)
{
    struct program *p = l->program;
    int x;
    TRY(lower_stacked(l, &x));
    if (strcmp(l->node->op->object.name, "dot_interaction") == 0) {
        const int products = program_matmul(p, x, swap_last(p, x));
        *ret = lower_triangle(p, products, p->values[x].shape.dim[1]);
        return OK;
    }
    const bool vectors[RANK_MAX] = {false, true}, width[RANK_MAX] = {false, false, true};
    const int sum = program_reduce(p, PRIMITIVE_SUM, x, vectors);
    const int squares = program_two(p, PRIMITIVE_MULTIPLY, x, x);
    const int of_squares = program_reduce(p, PRIMITIVE_SUM, squares, vectors);
    const int square = program_two(p, PRIMITIVE_MULTIPLY, sum, sum);
    const int more = program_two(p, PRIMITIVE_SUBTRACT, square, of_squares);
    const int twice = program_reduce(p, PRIMITIVE_SUM, more, width);
    const int half = program_two(p, PRIMITIVE_MULTIPLY, twice, program_number(p, 0.5f));
    *ret = lower_shape(l, half);
    return OK;
}

err lower_vectors(struct lowering *l, int *ret)
{
    const char *op = l->node->op->object.name;
    for (size_t i = 0; i < sizeof folds / sizeof *folds; i++)
        if (strcmp(folds[i].op, op) == 0) return lower_fold(l, folds[i].primitive, ret);
    if (strcmp(op, "compare") == 0) return lower_compare(l, ret);
    return strcmp(op, "matmul") == 0 ? lower_matmul(l, ret) : lower_interaction(l, ret);
}
