/* tf_program.c - the primitives of a program as TensorFlow's ops. */
#include <math.h>
#include <string.h>

#include "cmd/export/saved_model.h"
#include "core/train/variables/layout.h"

/* Reshapes to any batch size: the first axis is -1. */
static struct tf_tensor reshaped(struct tf_graph *g, struct tf_tensor x, const struct shape *shape)
{
    int64_t dims[RANK_MAX];
    for (int i = 0; i < shape->rank; i++) dims[i] = i ? shape->dim[i] : -1;
    return tf_reshape(g, TF_FLOAT, x, dims, shape->rank);
}

/* ---- padding ---- */

static struct tf_tensor padded(struct tf_graph *g, struct tf_tensor x, int rank,
                               const int64_t (*around)[2], float number)
{
    int32_t places[RANK_MAX][2];
    for (int i = 0; i < rank; i++)
        for (int side = 0; side < 2; side++) places[i][side] = (int32_t)around[i][side];
    const struct tf_tensor paddings =
        tf_constant(g, TF_INT32, &(struct shape){2, {rank, 2}}, places);
    const struct tf_tensor inputs[] = {x, paddings, tf_float(g, number)};
    const struct tf_tensor y = tf_node(g, "PadV2", inputs, 3);
    tf_attr_type(g, "T", TF_FLOAT);
    return y;
}

static struct tf_tensor write_pad(struct tf_graph *g, const struct program *p,
                                  const struct program_value *v, const struct tf_tensor *in)
{
    const struct shape *x = &p->values[v->inputs[0]].shape;
    int64_t around[RANK_MAX][2] = {{0}};
    for (int i = 1; i < x->rank; i++) {
        around[i][0] = v->axes[i];
        around[i][1] = v->shape.dim[i] - x->dim[i] - v->axes[i];
    }
    return padded(g, in[0], x->rank, around, v->number);
}

static struct tf_tensor write_slice(struct tf_graph *g, const struct program_value *v,
                                    const struct tf_tensor *in)
{
    int64_t size[RANK_MAX], begin[RANK_MAX] = {0};
    for (int i = 0; i < v->shape.rank; i++) {
        size[i] = i ? v->shape.dim[i] : -1;
        begin[i] = i ? v->axes[i] : 0;
    }
    const struct tf_tensor inputs[] = {in[0], tf_int32s(g, begin, v->shape.rank),
                                       tf_int32s(g, size, v->shape.rank)};
    const struct tf_tensor y = tf_node(g, "Slice", inputs, 3);
    tf_attr_type(g, "T", TF_FLOAT);
    tf_attr_type(g, "Index", TF_INT32);
    return y;
}

static struct tf_tensor concat(struct tf_graph *g, const struct tf_tensor *in, int count, int axis)
{
    struct tf_tensor inputs[GROUPS_MAX + 1];
    if (count == 1) return in[0];
    memcpy(inputs, in, (size_t)count * sizeof *inputs);
    inputs[count] = tf_int32(g, axis);
    const struct tf_tensor y = tf_node(g, "ConcatV2", inputs, count + 1);
    tf_attr_int(g, "N", count);
    tf_attr_type(g, "T", TF_FLOAT);
    return y;
}

/* ---- windows ---- */

static void put_window(struct tf_graph *g, const char *padding, const struct window2d *w)
{
    const int64_t strides[] = {1, w->stride_y, w->stride_x, 1};
    tf_attr_ints(g, "strides", strides, 4);
    tf_attr_text(g, "padding", padding);
    tf_attr_text(g, "data_format", "NHWC");
}

static struct tf_tensor convolved(struct tf_graph *g, struct tf_tensor x, struct tf_tensor kernel,
                                  const struct window2d *w, const char *op)
{
    const int64_t dilation[] = {1, w->dilation_y ? w->dilation_y : 1,
                                w->dilation_x ? w->dilation_x : 1, 1};
    const struct tf_tensor y = tf_two(g, op, TF_FLOAT, x, kernel);
    put_window(g, "VALID", w);
    tf_attr_ints(g, "dilations", dilation, 4);
    return y;
}

static struct tf_tensor split(struct tf_graph *g, struct tf_tensor x, int64_t parts)
{
    const struct tf_tensor inputs[] = {tf_int32(g, 3), x};
    const struct tf_tensor y = tf_node(g, "Split", inputs, 2);
    tf_attr_int(g, "num_split", parts);
    tf_attr_type(g, "T", TF_FLOAT);
    return y;
}

/* One convolution per group, or a depthwise one, if TensorFlow has that. */
static struct tf_tensor write_groups(struct tf_graph *g, const struct program *p,
                                     const struct program_value *v, struct tf_tensor x,
                                     struct tf_tensor kernel)
{
    const struct window2d *w = &v->window;
    const struct shape *k = &p->values[v->inputs[1]].shape;
    struct tf_tensor parts[GROUPS_MAX];
    if (k->dim[2] == 1 && w->stride_y == w->stride_x && w->dilation_y <= 1 && w->dilation_x <= 1) {
        const int64_t dims[] = {k->dim[0], k->dim[1], v->groups, k->dim[3] / v->groups};
        kernel = tf_reshape(g, TF_FLOAT, kernel, dims, 4);
        return convolved(g, x, kernel, w, "DepthwiseConv2dNative");
    }
    const struct tf_tensor images = split(g, x, v->groups), kernels = split(g, kernel, v->groups);
    for (int i = 0; i < v->groups; i++)
        parts[i] = convolved(g, (struct tf_tensor){images.node, i},
                             (struct tf_tensor){kernels.node, i}, w, "Conv2D");
    return concat(g, parts, (int)v->groups, 3);
}

static struct tf_tensor write_conv(struct tf_graph *g, const struct program *p,
                                   const struct program_value *v, const struct tf_tensor *in)
{
    const struct window2d *w = &v->window;
    const int64_t around[RANK_MAX][2] = {
        {0, 0}, {w->pad_top, w->pad_bottom}, {w->pad_left, w->pad_right}, {0, 0}};
    const bool is_padded = w->pad_top || w->pad_bottom || w->pad_left || w->pad_right;
    const struct tf_tensor x = is_padded ? padded(g, in[0], 4, around, 0) : in[0];
    if (v->groups > 1) return write_groups(g, p, v, x, in[1]);
    return convolved(g, x, in[1], w, "Conv2D");
}

static struct tf_tensor write_pool(struct tf_graph *g, const struct program_value *v,
                                   struct tf_tensor x)
{
    const struct window2d *w = &v->window;
    const int64_t size[] = {1, w->kernel_y, w->kernel_x, 1};
    const bool is_valid = w->out_y == (w->in_y - w->kernel_y) / w->stride_y + 1 &&
                          w->out_x == (w->in_x - w->kernel_x) / w->stride_x + 1 &&
                          w->in_y >= w->kernel_y && w->in_x >= w->kernel_x;
    const struct tf_tensor y =
        tf_one(g, v->primitive == PRIMITIVE_MAX_POOL ? "MaxPool" : "AvgPool", TF_FLOAT, x);
    tf_attr_ints(g, "ksize", size, 4);
    put_window(g, is_valid ? "VALID" : "SAME", w);
    return y;
}

/* ---- the others ---- */

static struct tf_tensor write_reduce(struct tf_graph *g, const struct program_value *v,
                                     struct tf_tensor x)
{
    int64_t axes[RANK_MAX];
    int count = 0;
    for (int i = 0; i < v->shape.rank; i++)
        if (v->goes[i]) axes[count++] = i;
    return tf_reduce(g,
                     v->primitive == PRIMITIVE_SUM    ? "Sum"
                     : v->primitive == PRIMITIVE_MEAN ? "Mean"
                                                      : "Max",
                     TF_FLOAT, x, axes, count, true);
}

static struct tf_tensor write_transpose(struct tf_graph *g, const struct program_value *v,
                                        struct tf_tensor x)
{
    const struct tf_tensor y =
        tf_two(g, "Transpose", TF_FLOAT, x, tf_int32s(g, v->axes, v->shape.rank));
    tf_attr_type(g, "Tperm", TF_INT32);
    return y;
}

static struct tf_tensor taken(struct tf_graph *g, struct tf_tensor from, struct tf_tensor places)
{
    const struct tf_tensor inputs[] = {from, places, tf_int32(g, 0)};
    const struct tf_tensor y = tf_node(g, "GatherV2", inputs, 3);
    tf_attr_type(g, "Tparams", TF_INT64);
    tf_attr_type(g, "Tindices", TF_INT64);
    tf_attr_type(g, "Taxis", TF_INT32);
    return y;
}

/* Looks up rows of a variable. */
static struct tf_tensor gathered(struct tf_graph *g, struct tf_tensor table,
                                 struct tf_tensor places)
{
    const struct tf_tensor y =
        tf_node(g, "ResourceGather", (const struct tf_tensor[]){table, places}, 2);
    tf_attr_type(g, "dtype", TF_FLOAT);
    tf_attr_type(g, "Tindices", TF_INT64);
    return y;
}

/* Row numbers of ids in a table of several shards, which are concatenated */
static struct tf_tensor place_in_parts(struct tf_graph *g, const struct program_value *table,
                                       struct tf_tensor ids)
{
    int64_t first[PS_MAX] = {0};
    for (int i = 1; i < table->parts; i++)
        first[i] = first[i - 1] + program_part_rows(table, i - 1);
    const struct tf_tensor parts = tf_int64(g, table->parts);
    const struct tf_tensor begin =
        taken(g, tf_constant(g, TF_INT64, &(struct shape){1, {table->parts}}, first),
              tf_two(g, "FloorMod", TF_INT64, ids, parts));
    return tf_two(g, "AddV2", TF_INT64, begin, tf_two(g, "FloorDiv", TF_INT64, ids, parts));
}

/* Row 0 for a missing id: its readers multiply by PRIMITIVE_PRESENT. */
static struct tf_tensor write_gather(struct tf_graph *g, const struct program_value *of,
                                     struct tf_tensor table, struct tf_tensor ids)
{
    struct tf_tensor place = tf_two(g, "Maximum", TF_INT64, ids, tf_int64(g, 0));
    if (of->parts) place = place_in_parts(g, of, place);
    return gathered(g, table, place);
}

/* in: the table, ids, keys in ascending order, the numbers of their rows. Zeros for an id that is
 * no key */
static struct tf_tensor write_find(struct tf_graph *g, const struct program_value *of,
                                   const struct tf_tensor *in)
{
    const struct tf_tensor like = tf_one(g, "Shape", TF_INT64, in[1]);
    const struct tf_tensor sorted = tf_reshape(g, TF_INT64, in[2], (const int64_t[]){1, -1}, 2);
    const struct tf_tensor row = tf_reshape(g, TF_INT64, in[1], (const int64_t[]){1, -1}, 2);
    struct tf_tensor at = tf_two(g, "LowerBound", TF_INT64, sorted, row);
    tf_attr_type(g, "out_type", TF_INT64);
    at = tf_two(g, "Minimum", TF_INT64, at, tf_int64(g, of->shape.dim[0] - 1));
    at = tf_two(g, "Reshape", TF_INT64, at, like);
    const struct tf_tensor is_it = tf_two(g, "Equal", TF_INT64, taken(g, in[2], at), in[1]);
    const struct tf_tensor rows = gathered(g, in[0], taken(g, in[3], at));
    const struct tf_tensor inputs[] = {tf_cast(g, TF_BOOL, TF_FLOAT, is_it), tf_int32(g, -1)};
    const struct tf_tensor each = tf_node(g, "ExpandDims", inputs, 2);
    tf_attr_type(g, "T", TF_FLOAT);
    return tf_two(g, "Mul", TF_FLOAT, rows, each);
}

static struct tf_tensor write_rows(struct tf_graph *g, const struct program_value *of,
                                   const struct tf_tensor *in)
{
    return of->grows ? write_find(g, of, in) : write_gather(g, of, in[0], in[1]);
}

static struct tf_tensor write_present(struct tf_graph *g, struct tf_tensor ids)
{
    return tf_cast(g, TF_BOOL, TF_FLOAT, tf_two(g, "GreaterEqual", TF_INT64, ids, tf_int64(g, 0)));
}

static struct tf_tensor write_positive(struct tf_graph *g, struct tf_tensor x)
{
    return tf_cast(g, TF_BOOL, TF_FLOAT, tf_two(g, "Greater", TF_FLOAT, x, tf_float(g, 0)));
}

static struct tf_tensor write_matmul(struct tf_graph *g, const struct program *p,
                                     const struct program_value *v, const struct tf_tensor *in)
{
    const bool is_plain =
        v->shape.rank == 2 && p->values[v->inputs[1]].primitive == PRIMITIVE_CONSTANT;
    return tf_two(g, is_plain ? "MatMul" : "BatchMatMulV2", TF_FLOAT, in[0], in[1]);
}

static const char *const ops[PRIMITIVE_COUNT] = {
    [PRIMITIVE_ADD] = "AddV2",       [PRIMITIVE_SUBTRACT] = "Sub",
    [PRIMITIVE_MULTIPLY] = "Mul",    [PRIMITIVE_DIVIDE] = "RealDiv",
    [PRIMITIVE_MAXIMUM] = "Maximum", [PRIMITIVE_MINIMUM] = "Minimum",
    [PRIMITIVE_EXP] = "Exp",         [PRIMITIVE_LOG] = "Log",
    [PRIMITIVE_SQRT] = "Sqrt",       [PRIMITIVE_TANH] = "Tanh",
    [PRIMITIVE_SIGMOID] = "Sigmoid", [PRIMITIVE_SOFTPLUS] = "Softplus",
    [PRIMITIVE_ERF] = "Erf",         [PRIMITIVE_ABS] = "Abs",
    [PRIMITIVE_SOFTMAX] = "Softmax",
};

struct tf_tensor tf_write_value(struct tf_graph *g, const struct program *p, int value,
                                const struct tf_tensor *in)
{
    const struct program_value *v = &p->values[value];
    if (ops[v->primitive] && v->input_count == 2)
        return tf_two(g, ops[v->primitive], TF_FLOAT, in[0], in[1]);
    if (ops[v->primitive]) return tf_one(g, ops[v->primitive], TF_FLOAT, in[0]);
    switch (v->primitive) {
    case PRIMITIVE_MATMUL:
        return write_matmul(g, p, v, in);
    case PRIMITIVE_PRESENT:
        return write_present(g, in[0]);
    case PRIMITIVE_POSITIVE:
        return write_positive(g, in[0]);
    case PRIMITIVE_GATHER:
        return write_rows(g, &p->values[v->inputs[0]], in);
    case PRIMITIVE_SUM:
    case PRIMITIVE_MEAN:
    case PRIMITIVE_LARGEST:
        return write_reduce(g, v, in[0]);
    case PRIMITIVE_RESHAPE:
        return reshaped(g, in[0], &v->shape);
    case PRIMITIVE_TRANSPOSE:
        return write_transpose(g, v, in[0]);
    case PRIMITIVE_CONCAT:
        return concat(g, in, v->input_count, v->axis);
    case PRIMITIVE_SLICE:
        return write_slice(g, v, in);
    case PRIMITIVE_PAD:
        return write_pad(g, p, v, in);
    case PRIMITIVE_CONV2D:
        return write_conv(g, p, v, in);
    default:
        return write_pool(g, v, in[0]);
    }
}
