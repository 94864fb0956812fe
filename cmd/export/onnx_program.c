/* onnx_program.c - the primitives of a program as operators of ai.onnx, where images are [batch,
 * channel, y, x].
 */
#include <string.h>

#include "cmd/export/onnx.h"
#include "core/train/variables/layout.h"

static int transposed(struct onnx_graph *g, int x, const int64_t *axes, int rank)
{
    const int y = onnx_one(g, "Transpose", x);
    onnx_attr_ints(g, "perm", axes, rank);
    return y;
}

static int write_reduce(struct onnx_graph *g, const struct program_value *v, int x)
{
    int64_t axes[RANK_MAX];
    int count = 0;
    for (int i = 0; i < v->shape.rank; i++)
        if (v->goes[i]) axes[count++] = i;
    return onnx_reduce(g,
                       v->primitive == PRIMITIVE_SUM    ? "ReduceSum"
                       : v->primitive == PRIMITIVE_MEAN ? "ReduceMean"
                                                        : "ReduceMax",
                       x, axes, count, true);
}

static int write_reshape(struct onnx_graph *g, const struct program_value *v, int x)
{
    int64_t dims[RANK_MAX];
    for (int i = 0; i < v->shape.rank; i++) dims[i] = i ? v->shape.dim[i] : -1;
    return onnx_reshape(g, x, dims, v->shape.rank);
}

static int write_slice(struct onnx_graph *g, const struct program_value *v, int x)
{
    int64_t begin[RANK_MAX], end[RANK_MAX], axes[RANK_MAX];
    const int count = v->shape.rank - 1;
    for (int i = 0; i < count; i++) {
        axes[i] = i + 1;
        begin[i] = v->axes[i + 1];
        end[i] = begin[i] + v->shape.dim[i + 1];
    }
    const int inputs[] = {x, onnx_int64s(g, begin, count), onnx_int64s(g, end, count),
                          onnx_int64s(g, axes, count)};
    return onnx_node(g, "Slice", inputs, 4);
}

static int write_pad(struct onnx_graph *g, const struct program *p, const struct program_value *v,
                     int x)
{
    const struct shape *from = &p->values[v->inputs[0]].shape;
    int64_t around[2 * RANK_MAX] = {0};
    for (int i = 1; i < from->rank; i++) {
        around[i] = v->axes[i];
        around[from->rank + i] = v->shape.dim[i] - from->dim[i] - v->axes[i];
    }
    const int inputs[] = {x, onnx_int64s(g, around, 2 * from->rank),
                          onnx_constant(g, ONNX_FLOAT, &(struct shape){0}, &v->number)};
    return onnx_node(g, "Pad", inputs, 3);
}

static int write_window(struct onnx_graph *g, const struct program_value *v, const int *in)
{
    const struct window2d *w = &v->window;
    const bool is_conv = v->primitive == PRIMITIVE_CONV2D;
    int inputs[2] = {transposed(g, in[0], (const int64_t[]){0, 3, 1, 2}, 4)};
    if (is_conv) inputs[1] = transposed(g, in[1], (const int64_t[]){3, 2, 0, 1}, 4);
    const int y = onnx_node(g,
                            is_conv                              ? "Conv"
                            : v->primitive == PRIMITIVE_MAX_POOL ? "MaxPool"
                                                                 : "AveragePool",
                            inputs, 1 + is_conv);
    onnx_attr_ints(g, "kernel_shape", (const int64_t[]){w->kernel_y, w->kernel_x}, 2);
    onnx_attr_ints(g, "strides", (const int64_t[]){w->stride_y, w->stride_x}, 2);
    onnx_attr_ints(g, "pads",
                   (const int64_t[]){w->pad_top, w->pad_left, w->pad_bottom, w->pad_right}, 4);
    if (is_conv) {
        const int64_t apart[] = {w->dilation_y ? w->dilation_y : 1,
                                 w->dilation_x ? w->dilation_x : 1};
        onnx_attr_ints(g, "dilations", apart, 2);
        onnx_attr_int(g, "group", v->groups);
    }
    return transposed(g, y, (const int64_t[]){0, 2, 3, 1}, 4);
}

static int gather(struct onnx_graph *g, int from, int at)
{
    const int y = onnx_two(g, "Gather", from, at);
    onnx_attr_int(g, "axis", 0);
    return y;
}

/* Row 0 for a missing id: its readers multiply by PRIMITIVE_PRESENT. */
static int write_gather(struct onnx_graph *g, const struct program_value *table, const int *in)
{
    int64_t first[PS_MAX] = {0};
    const int place = onnx_two(g, "Max", in[1], onnx_int64(g, 0));
    if (!table->parts) return gather(g, in[0], place);
    for (int i = 1; i < table->parts; i++)
        first[i] = first[i - 1] + program_part_rows(table, i - 1);
    const int parts = onnx_int64(g, table->parts);
    const int part = onnx_two(g, "Mod", place, parts);
    const int begin = gather(g, onnx_int64s(g, first, table->parts), part);
    return gather(g, in[0], onnx_two(g, "Add", begin, onnx_two(g, "Div", place, parts)));
}

/* The index of the last key that is not above the id, or 0: an unrolled binary search. */
static int place_of_key(struct onnx_graph *g, int ids, int keys, int64_t count)
{
    int64_t step = 1;
    int at = onnx_two(g, "Sub", ids, ids);
    const int last = onnx_int64(g, count - 1);
    while (2 * step < count) step *= 2;
    for (; step && count > 1; step /= 2) {
        const int next = onnx_two(g, "Min", onnx_two(g, "Add", at, onnx_int64(g, step)), last);
        const int is_before = onnx_two(g, "GreaterOrEqual", ids, gather(g, keys, next));
        at = onnx_where(g, is_before, next, at);
    }
    return at;
}

/* Rows by key; zeros for an id that is no key */
static int write_find(struct onnx_graph *g, const struct program_value *table, const int *in,
                      const struct onnx_keys *keys)
{
    const int at = place_of_key(g, in[1], keys->ids, table->shape.dim[0]);
    const int is_it =
        onnx_cast(g, ONNX_FLOAT, onnx_two(g, "Equal", gather(g, keys->ids, at), in[1]));
    const int each = onnx_two(g, "Unsqueeze", is_it, onnx_int64s(g, (const int64_t[]){-1}, 1));
    return onnx_two(g, "Mul", gather(g, in[0], gather(g, keys->places, at)), each);
}

static int write_present(struct onnx_graph *g, int ids)
{
    return onnx_cast(g, ONNX_FLOAT, onnx_two(g, "GreaterOrEqual", ids, onnx_int64(g, 0)));
}

static int write_positive(struct onnx_graph *g, int x)
{
    const float zero = 0;
    const int none = onnx_constant(g, ONNX_FLOAT, &(struct shape){0}, &zero);
    return onnx_cast(g, ONNX_FLOAT, onnx_two(g, "Greater", x, none));
}

static int write_concat(struct onnx_graph *g, const struct program_value *v, const int *in)
{
    const int y = onnx_node(g, "Concat", in, v->input_count);
    onnx_attr_int(g, "axis", v->axis);
    return y;
}

static int write_softmax(struct onnx_graph *g, int x)
{
    const int y = onnx_one(g, "Softmax", x);
    onnx_attr_int(g, "axis", -1);
    return y;
}

/* Primitives that are one operator without attributes */
static const char *const ops[PRIMITIVE_COUNT] = {
    [PRIMITIVE_MATMUL] = "MatMul",     [PRIMITIVE_ADD] = "Add",    [PRIMITIVE_SUBTRACT] = "Sub",
    [PRIMITIVE_MULTIPLY] = "Mul",      [PRIMITIVE_DIVIDE] = "Div", [PRIMITIVE_MAXIMUM] = "Max",
    [PRIMITIVE_MINIMUM] = "Min",       [PRIMITIVE_EXP] = "Exp",    [PRIMITIVE_LOG] = "Log",
    [PRIMITIVE_SQRT] = "Sqrt",         [PRIMITIVE_TANH] = "Tanh",  [PRIMITIVE_SIGMOID] = "Sigmoid",
    [PRIMITIVE_SOFTPLUS] = "Softplus", [PRIMITIVE_ERF] = "Erf",    [PRIMITIVE_ABS] = "Abs",
};

int onnx_write_value(struct onnx_graph *g, const struct program *p, int value, const int *in,
                     const struct onnx_keys *keys)
{
    const struct program_value *v = &p->values[value];
    if (ops[v->primitive]) return onnx_node(g, ops[v->primitive], in, v->input_count);
    switch (v->primitive) {
    case PRIMITIVE_PRESENT:
        return write_present(g, in[0]);
    case PRIMITIVE_POSITIVE:
        return write_positive(g, in[0]);
    case PRIMITIVE_GATHER:
        if (p->values[v->inputs[0]].grows) return write_find(g, &p->values[v->inputs[0]], in, keys);
        return write_gather(g, &p->values[v->inputs[0]], in);
    case PRIMITIVE_SUM:
    case PRIMITIVE_MEAN:
    case PRIMITIVE_LARGEST:
        return write_reduce(g, v, in[0]);
    case PRIMITIVE_SOFTMAX:
        return write_softmax(g, in[0]);
    case PRIMITIVE_RESHAPE:
        return write_reshape(g, v, in[0]);
    case PRIMITIVE_TRANSPOSE:
        return transposed(g, in[0], v->axes, v->shape.rank);
    case PRIMITIVE_CONCAT:
        return write_concat(g, v, in);
    case PRIMITIVE_SLICE:
        return write_slice(g, v, in[0]);
    case PRIMITIVE_PAD:
        return write_pad(g, p, v, in[0]);
    default:
        return write_window(g, v, in);
    }
}
