/* lower_sparse.c - ops that look up rows of tables by ids. */
#include <string.h>

#include "cmd/export/lower.h"
#include "core/ops/sparse/combine.h"
#include "kernels/kernels.h"

enum { INDICATOR_MAX = 1 << 24 }; /* ids: floats represent integers up to here exactly */

/* The rows of ids, in the order of the ids */
struct looked_up {
    int found;  /* [batch, ..., ids, width], without weights; row 0 for a missing id */
    int rows;   /* [batch, ..., ids, width], times the weight; zeros for a missing id */
    int counts; /* [batch, ..., ids, 1]: 1, or the weight; 0 for a missing id */
    bool has_weights;
};

/* As in combine.h: in a mean, ids with a weight of 0 or less do not count. */
static err lower_rows(struct lowering *l, int input, int table, int combiner, struct looked_up *ret)
{
    struct program *p = l->program;
    int ids, weights;
    TRY(lower_input(l, input, &ids));
    TRY(lower_weights(l, input, &weights));
    struct program_value rows = {.primitive = PRIMITIVE_GATHER,
                                 .inputs = {table, ids},
                                 .input_count = 2,
                                 .shape = p->values[ids].shape};
    p->values[table].is_looked_up = true;
    if (rows.shape.rank == RANK_MAX) return lower_refuse("its ids have too many axes");
    rows.shape.dim[rows.shape.rank++] = p->values[table].shape.dim[1];
    ret->found = program_add(p, &rows);
    struct shape each = rows.shape;
    each.dim[each.rank - 1] = 1;
    int counts = program_one(p, PRIMITIVE_PRESENT, ids);
    if (weights >= 0 && combiner != COMBINER_SUM && combiner != COMBINER_NONE)
        weights = program_two(p, PRIMITIVE_MAXIMUM, weights, program_number(p, 0));
    if (weights >= 0) counts = program_two(p, PRIMITIVE_MULTIPLY, counts, weights);
    ret->has_weights = weights >= 0;
    ret->counts = program_reshape(p, counts, &each);
    ret->rows = program_two(p, PRIMITIVE_MULTIPLY, ret->found, ret->counts);
    return OK;
}

/* Sums over all axes between the batch and the last one. */
static int sum_ids(struct program *p, int x, int64_t width)
{
    bool goes[RANK_MAX] = {false};
    for (int i = 1; i < p->values[x].shape.rank - 1; i++) goes[i] = true;
    return program_reshape(p, program_reduce(p, PRIMITIVE_SUM, x, goes),
                           &(struct shape){2, {1, width}});
}

/* What the sum of rows is divided by; not 0 if there are no ids, where the sum is 0. */
static int divisor_of(struct program *p, const struct looked_up *of, int combiner)
{
    const bool is_root = combiner == COMBINER_SQRTN;
    int counts = of->counts;
    if (of->has_weights && is_root) counts = program_two(p, PRIMITIVE_MULTIPLY, counts, counts);
    int sum = sum_ids(p, counts, 1);
    if (of->has_weights) {
        const int some = program_one(p, PRIMITIVE_POSITIVE, sum);
        const int none = program_two(p, PRIMITIVE_SUBTRACT, program_number(p, 1), some);
        sum = program_two(p, PRIMITIVE_ADD, sum, none);
    } else {
        sum = program_two(p, PRIMITIVE_MAXIMUM, sum, program_number(p, 1));
    }
    return is_root ? program_one(p, PRIMITIVE_SQRT, sum) : sum;
}

static int combine(struct program *p, const struct looked_up *of, int combiner, int64_t width)
{
    const int sum = sum_ids(p, of->rows, width);
    if (combiner == COMBINER_SUM) return sum;
    return program_two(p, PRIMITIVE_DIVIDE, sum, divisor_of(p, of, combiner));
}

static err lower_embedding(struct lowering *l, int *ret)
{
    const int combiner = lower_enum(l->node, "combiner");
    struct looked_up of;
    int table;
    TRY(lower_param(l, 0, &table));
    TRY(lower_rows(l, 0, table, combiner, &of));
    *ret = combiner == COMBINER_NONE
               ? of.rows
               : combine(l->program, &of, combiner, lower_int(l->node, "dimension"));
    return OK;
}

static err lower_linear(struct lowering *l, int *ret)
{
    int bias;
    TRY(lower_param(l, l->node->input_count, &bias));
    const int64_t units = lower_int(l->node, "units");
    for (int i = 0; i < l->node->input_count; i++) {
        struct looked_up of;
        int table;
        TRY(lower_param(l, i, &table));
        TRY(lower_rows(l, i, table, COMBINER_SUM, &of));
        const int sum = combine(l->program, &of, COMBINER_SUM, units);
        *ret = i ? program_two(l->program, PRIMITIVE_ADD, *ret, sum) : sum;
    }
    *ret = program_two(l->program, PRIMITIVE_ADD, *ret, bias);
    return OK;
}

/* Multi-hot: looks ids up in a table whose row i is the number i, and compares with 0, 1, 2, ... */
static err lower_indicator(struct lowering *l, int *ret)
{
    struct program *p = l->program;
    const int64_t ids = l->node->output.shape.dim[1];
    const char *of_ids = arena_format(p->arena, "%s/ids", l->node->name);
    const char *of_places = arena_format(p->arena, "%s/places", l->node->name);
    struct looked_up of;
    if (ids > INDICATOR_MAX)
        return fail(ERR_INPUT, "cannot be exported: it has more than %d ids", (int)INDICATOR_MAX);
    float *numbers = arena_array(p->arena, (size_t)ids, sizeof *numbers);
    for (int64_t i = 0; i < ids; i++) numbers[i] = (float)i;
    const int table = lower_constant(l, of_ids, &(struct shape){2, {ids, 1}}, numbers);
    const int places = lower_constant(l, of_places, &(struct shape){2, {1, ids}}, numbers);
    TRY(lower_rows(l, 0, table, COMBINER_SUM, &of));
    const int off =
        program_one(p, PRIMITIVE_ABS, program_two(p, PRIMITIVE_SUBTRACT, of.found, places));
    const int is_it = program_two(p, PRIMITIVE_SUBTRACT, program_number(p, 1),
                                  program_one(p, PRIMITIVE_POSITIVE, off));
    of.rows = program_two(p, PRIMITIVE_MULTIPLY, is_it, of.counts);
    *ret = combine(p, &of, COMBINER_SUM, ids);
    return OK;
}

/* The logits of all classes, as in evaluation, not of a sample */
static err lower_classes(struct lowering *l, int *ret)
{
    int weights, biases;
    TRY(lower_input(l, 0, ret));
    TRY(lower_turned(l, 0, &weights));
    *ret = program_matmul(l->program, *ret, weights);
    if (l->node->param_count < 2) return OK;
    TRY(lower_turned(l, 1, &biases));
    *ret = program_two(l->program, PRIMITIVE_ADD, *ret, biases);
    return OK;
}

err lower_sparse(struct lowering *l, int *ret)
{
    const char *op = l->node->op->object.name;
    if (strcmp(op, "embedding") == 0) return lower_embedding(l, ret);
    if (strcmp(op, "linear") == 0) return lower_linear(l, ret);
    if (strcmp(op, "indicator") == 0) return lower_indicator(l, ret);
    if (strcmp(op, "sampled_logits") == 0) return lower_classes(l, ret);
    int ids;
    TRY(lower_input(l, 0, &ids));
    *ret = program_one(l->program, PRIMITIVE_PRESENT, ids);
    return OK;
}
