/* lower_sparse.c - rows of tables by ids. */
#include <string.h>

#include "cmd/export/lower.h"
#include "kernels/kernels.h"

/* The rows of ids, zeros where there is none: [batch, ..., ids, width] */
static err lower_rows(struct lowering *l, int input, int table, int *ret, int *ret_present)
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
    const int gathered = program_add(p, &rows);
    struct shape each = rows.shape;
    each.dim[each.rank - 1] = 1;
    *ret_present = program_reshape(p, program_one(p, PRIMITIVE_PRESENT, ids), &each);
    *ret = program_two(p, PRIMITIVE_MULTIPLY, gathered, *ret_present);
    return OK;
}

/* Over all axes between the batch and the last one */
static int sum_ids(struct program *p, int x, int64_t width)
{
    bool goes[RANK_MAX] = {false};
    for (int i = 1; i < p->values[x].shape.rank - 1; i++) goes[i] = true;
    return program_reshape(p, program_reduce(p, PRIMITIVE_SUM, x, goes),
                           &(struct shape){2, {1, width}});
}

/* Of no ids all is 0, whatever it is divided by. */
static int combine(struct program *p, int rows, int present, int combiner, int64_t width)
{
    int sum = sum_ids(p, rows, width);
    if (combiner == COMBINER_SUM) return sum;
    int count = sum_ids(p, present, 1);
    count = program_two(p, PRIMITIVE_MAXIMUM, count, program_number(p, 1));
    if (combiner == COMBINER_SQRTN) count = program_one(p, PRIMITIVE_SQRT, count);
    return program_two(p, PRIMITIVE_DIVIDE, sum, count);
}

static err lower_embedding(struct lowering *l, int *ret)
{
    const int combiner = lower_enum(l->node, "combiner");
    int table, rows, present;
    TRY(lower_param(l, 0, &table));
    TRY(lower_rows(l, 0, table, &rows, &present));
    const bool is_combined = l->node->output.shape.rank == 2;
    *ret = is_combined
               ? combine(l->program, rows, present, combiner, lower_int(l->node, "dimension"))
               : rows;
    return OK;
}

static err lower_linear(struct lowering *l, int *ret)
{
    int bias;
    TRY(lower_param(l, l->node->input_count, &bias));
    const int64_t units = lower_int(l->node, "units");
    for (int i = 0; i < l->node->input_count; i++) {
        int table, rows, present;
        TRY(lower_param(l, i, &table));
        TRY(lower_rows(l, i, table, &rows, &present));
        const int sum = combine(l->program, rows, present, COMBINER_SUM, units);
        *ret = i ? program_two(l->program, PRIMITIVE_ADD, *ret, sum) : sum;
    }
    *ret = program_two(l->program, PRIMITIVE_ADD, *ret, bias);
    return OK;
}

err lower_sparse(struct lowering *l, int *ret)
{
    const char *op = l->node->op->object.name;
    if (strcmp(op, "embedding") == 0) return lower_embedding(l, ret);
    if (strcmp(op, "linear") == 0) return lower_linear(l, ret);
    int ids;
    TRY(lower_input(l, 0, &ids));
    *ret = program_one(l->program, PRIMITIVE_PRESENT, ids);
    return OK;
}
