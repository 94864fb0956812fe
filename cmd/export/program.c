/* program.c - see program.h. */
#include "cmd/export/program.h"

#include <stdlib.h>
#include <string.h>

#include "core/train/checkpoint/newest.h"

const char *const primitive_names[] = {
    [PRIMITIVE_INPUT] = "input",       [PRIMITIVE_CONSTANT] = "constant",
    [PRIMITIVE_MATMUL] = "matmul",     [PRIMITIVE_ADD] = "add",
    [PRIMITIVE_SUBTRACT] = "subtract", [PRIMITIVE_MULTIPLY] = "multiply",
    [PRIMITIVE_DIVIDE] = "divide",     [PRIMITIVE_MAXIMUM] = "maximum",
    [PRIMITIVE_MINIMUM] = "minimum",   [PRIMITIVE_EXP] = "exp",
    [PRIMITIVE_LOG] = "log",           [PRIMITIVE_SQRT] = "sqrt",
    [PRIMITIVE_TANH] = "tanh",         [PRIMITIVE_SIGMOID] = "sigmoid",
    [PRIMITIVE_SOFTPLUS] = "softplus", [PRIMITIVE_ERF] = "erf",
    [PRIMITIVE_ABS] = "abs",           [PRIMITIVE_POSITIVE] = "positive",
    [PRIMITIVE_PRESENT] = "present",   [PRIMITIVE_GATHER] = "gather",
    [PRIMITIVE_SUM] = "sum",           [PRIMITIVE_MEAN] = "mean",
    [PRIMITIVE_LARGEST] = "largest",   [PRIMITIVE_SOFTMAX] = "softmax",
    [PRIMITIVE_RESHAPE] = "reshape",   [PRIMITIVE_TRANSPOSE] = "transpose",
    [PRIMITIVE_CONCAT] = "concat",     [PRIMITIVE_SLICE] = "slice",
    [PRIMITIVE_PAD] = "pad",           [PRIMITIVE_CONV2D] = "conv2d",
    [PRIMITIVE_MAX_POOL] = "max_pool", [PRIMITIVE_AVG_POOL] = "avg_pool"};

int program_add(struct program *p, const struct program_value *value)
{
    if (p->count == p->room) {
        const int room = p->room ? 2 * p->room : 256;
        struct program_value *values = arena_array(p->arena, (size_t)room, sizeof *values);
        if (p->count) memcpy(values, p->values, (size_t)p->count * sizeof *values);
        p->values = values;
        p->room = room;
    }
    p->values[p->count] = *value;
    return p->count++;
}

int program_constant(struct program *p, const char *name, const struct shape *shape,
                     const float *data)
{
    return program_add(
        p, &(struct program_value){
               .primitive = PRIMITIVE_CONSTANT, .shape = *shape, .name = name, .data = data});
}

int program_number(struct program *p, float number)
{
    float *data = arena_new(p->arena, sizeof *data);
    *data = number;
    return program_constant(p, "", &(struct shape){0}, data);
}

static struct shape broadcast_shape(const struct shape *a, const struct shape *b)
{
    struct shape y = {.rank = a->rank > b->rank ? a->rank : b->rank};
    for (int i = 1; i <= y.rank; i++) {
        const int64_t of_a = i <= a->rank ? a->dim[a->rank - i] : 1;
        const int64_t of_b = i <= b->rank ? b->dim[b->rank - i] : 1;
        y.dim[y.rank - i] = of_a > of_b ? of_a : of_b;
    }
    return y;
}

int program_two(struct program *p, enum primitive primitive, int a, int b)
{
    const struct shape *of_a = &p->values[a].shape, *of_b = &p->values[b].shape;
    return program_add(p, &(struct program_value){.primitive = primitive,
                                                  .inputs = {a, b},
                                                  .input_count = 2,
                                                  .shape = broadcast_shape(of_a, of_b)});
}

int program_one(struct program *p, enum primitive primitive, int x)
{
    return program_add(p, &(struct program_value){.primitive = primitive,
                                                  .inputs = {x},
                                                  .input_count = 1,
                                                  .shape = p->values[x].shape});
}

int program_reduce(struct program *p, enum primitive primitive, int x, const bool goes[RANK_MAX])
{
    struct program_value y = {
        .primitive = primitive, .inputs = {x}, .input_count = 1, .shape = p->values[x].shape};
    memcpy(y.goes, goes, sizeof y.goes);
    for (int i = 0; i < y.shape.rank; i++)
        if (goes[i]) y.shape.dim[i] = 1;
    return program_add(p, &y);
}

int program_reshape(struct program *p, int x, const struct shape *shape)
{
    if (shape_equal(&p->values[x].shape, shape)) return x;
    return program_add(
        p, &(struct program_value){
               .primitive = PRIMITIVE_RESHAPE, .inputs = {x}, .input_count = 1, .shape = *shape});
}

int program_matmul(struct program *p, int a, int b)
{
    struct program_value y = {.primitive = PRIMITIVE_MATMUL,
                              .inputs = {a, b},
                              .input_count = 2,
                              .shape = p->values[a].shape};
    y.shape.dim[y.shape.rank - 1] = p->values[b].shape.dim[p->values[b].shape.rank - 1];
    return program_add(p, &y);
}

int program_transpose(struct program *p, int x, const int64_t axes[RANK_MAX])
{
    const struct shape from = p->values[x].shape;
    struct program_value y = {
        .primitive = PRIMITIVE_TRANSPOSE, .inputs = {x}, .input_count = 1, .shape = from};
    for (int i = 0; i < from.rank; i++) {
        y.axes[i] = axes[i];
        y.shape.dim[i] = from.dim[axes[i]];
    }
    return program_add(p, &y);
}

/* Of more inputs than one value can have: concatenates groups of them, then the results. */
static int concat_in_turn(struct program *p, const int *inputs, int count, int axis)
{
    int parts[(INPUTS_MAX + PROGRAM_INPUTS_MAX - 1) / PROGRAM_INPUTS_MAX], part_count = 0;
    for (int i = 0; i < count; i += PROGRAM_INPUTS_MAX) {
        const int left = count - i;
        parts[part_count++] = program_concat(
            p, inputs + i, left < PROGRAM_INPUTS_MAX ? left : PROGRAM_INPUTS_MAX, axis);
    }
    return program_concat(p, parts, part_count, axis);
}

int program_concat(struct program *p, const int *inputs, int count, int axis)
{
    if (count > PROGRAM_INPUTS_MAX) return concat_in_turn(p, inputs, count, axis);
    struct program_value y = {.primitive = PRIMITIVE_CONCAT,
                              .input_count = count,
                              .shape = p->values[inputs[0]].shape,
                              .axis = axis};
    y.shape.dim[axis] = 0;
    for (int i = 0; i < count; i++) {
        y.inputs[i] = inputs[i];
        y.shape.dim[axis] += p->values[inputs[i]].shape.dim[axis];
    }
    return program_add(p, &y);
}

int64_t program_part_rows(const struct program_value *table, int part)
{
    return (table->shape.dim[0] - part + table->parts - 1) / table->parts;
}

static int by_id(const void *a, const void *b)
{
    const int64_t x = ((const struct row_key *)a)->id, y = ((const struct row_key *)b)->id;
    return (x > y) - (x < y);
}

void program_sort_keys(struct row_key *keys, int64_t count)
{
    qsort(keys, (size_t)count, sizeof *keys, by_id);
}

err program_find_table(const struct program *p, const char *name, struct stored_table *ret)
{
    TRY(stored_table_find(p->bundle, name, ret));
    return newest_lay_over(p->newest, ret);
}

void program_count_uses(struct program *p)
{
    p->constant_floats = 0;
    for (int i = 0; i < p->count; i++) p->values[i].uses = 0;
    for (int i = 0; i < p->output_count; i++) p->values[p->outputs[i].value].uses++;
    for (int i = p->count - 1; i >= 0; i--) {
        const struct program_value *v = &p->values[i];
        for (int k = 0; v->uses && k < v->input_count; k++) p->values[v->inputs[k]].uses++;
    }
    for (int i = 0; i < p->count; i++)
        if (p->values[i].uses && p->values[i].primitive == PRIMITIVE_CONSTANT)
            p->constant_floats += shape_count(&p->values[i].shape);
}
