/* layer.c - parameters, fused activation and its gradient for dense and convolutional ops. */
#include "core/ops/layer.h"

/* The first param of a layer; the bias, if any, is the last. */
enum { KERNEL };

const char *const activation_names[] = {
    [ACTIVATION_LINEAR] = "linear",
    [ACTIVATION_RELU] = "relu",
    [ACTIVATION_RELU6] = "relu6",
    [ACTIVATION_ELU] = "elu",
    [ACTIVATION_LEAKY_RELU] = "leaky_relu",
    [ACTIVATION_SIGMOID] = "sigmoid",
    [ACTIVATION_TANH] = "tanh",
    [ACTIVATION_SOFTPLUS] = "softplus",
    [ACTIVATION_SWISH] = "swish",
    [ACTIVATION_GELU] = "gelu",
    [ACTIVATION_GELU_TANH] = "gelu_tanh",
    [ACTIVATION_SELU] = "selu",
    [ACTIVATION_SOFTSIGN] = "softsign",
    NULL, /* layers have no other activations */
};

/* Attributes of all such ops begin with it. */
static const struct layer *layer_of(const struct node *node)
{
    return node->attributes;
}

err layer_infer_kernel(struct node *node, struct arena *arena, const char *name,
                       const struct shape *kernel)
{
    const struct layer *layer = layer_of(node);
    const struct param param = {
        .name = name, .shape = *kernel, .regularizer = layer->kernel_regularizer};
    return node_add_initialized(node, arena, &param, &layer->kernel_initializer);
}

err layer_infer_bias(struct node *node, struct arena *arena, const char *name, int64_t outputs)
{
    const struct layer *layer = layer_of(node);
    const struct param param = {
        .name = name, .shape = {1, {outputs}}, .regularizer = layer->bias_regularizer};
    if (layer->use_bias) TRY(node_add_initialized(node, arena, &param, &layer->bias_initializer));

    node->output.is_shares = layer_activation(node) == ACTIVATION_SIGMOID;
    if (node->training && activation_reads_x(layer_activation(node)))
        node->saved[0] = (struct tensor){.dtype = FLOAT32, .shape = node->output.shape};
    return OK;
}

err layer_infer(struct node *node, struct arena *arena, const struct shape *kernel)
{
    TRY(layer_infer_kernel(node, arena, "kernel", kernel));
    return layer_infer_bias(node, arena, "bias", kernel->dim[kernel->rank - 1]);
}

void layer_finish(const struct node *node, struct device *d, float *y)
{
    const enum activation activation = layer_activation(node);
    const struct shape *shape = &node->output.shape;
    const int64_t outputs = shape->dim[shape->rank - 1];
    const float *bias = layer_bias(node);
    if (bias || activation != ACTIVATION_LINEAR)
        d->kernels->bias_activate(d, y, bias, layer_sums(node), activation, (float)LEAKY_RELU_ALPHA,
                                  shape_count(shape) / outputs, outputs);
}

const float *layer_kernel(const struct node *node)
{
    return node->param[KERNEL].value;
}

const float *layer_bias(const struct node *node)
{
    return layer_of(node)->use_bias ? node->param[node->param_count - 1].value : NULL;
}

float *layer_sums(const struct node *node)
{
    return node->saved[0].value;
}

enum activation layer_activation(const struct node *node)
{
    return (enum activation)layer_of(node)->activation;
}

/* y.gradient is [rows, columns]; the bias' gradient is its sum over the rows. */
const float *layer_backward(const struct node *node, struct device *d)
{
    const struct tensor *y = &node->output;
    const int64_t count = shape_count(&y->shape), columns = y->shape.dim[y->shape.rank - 1];
    if (layer_activation(node) != ACTIVATION_LINEAR)
        d->kernels->activate_back(d, y->gradient, y->gradient, y->value, layer_sums(node),
                                  layer_activation(node), (float)LEAKY_RELU_ALPHA, count, false);
    if (layer_of(node)->use_bias)
        d->kernels->sum_rows(d, node->param[node->param_count - 1].gradient, y->gradient,
                             count / columns, columns, node->add_params);
    return y->gradient;
}

/* x [rows, columns], y [rows, units] */
struct sizes {
    int64_t rows, columns, units;
};

static const struct tensor *last_input(const struct node *node)
{
    return node->input[node->input_count - 1];
}

static struct sizes sizes_of(const struct node *node)
{
    const struct shape *kernel = &node->param[KERNEL].shape;
    return (struct sizes){shape_count(&last_input(node)->shape) / kernel->dim[0], kernel->dim[0],
                          kernel->dim[1]};
}

void layer_multiply(const struct node *node, struct device *d, float *y)
{
    const struct sizes s = sizes_of(node);
    d->kernels->gemm(d, &(struct gemm){.m = s.rows,
                                       .n = s.units,
                                       .k = s.columns,
                                       .a = last_input(node)->value,
                                       .b = layer_kernel(node),
                                       .c = y});
}

static void tell_of_kernel_rows(const void *node, int64_t rows)
{
    const struct node *n = node;
    node_tell_finished(n, rows * n->param[KERNEL].shape.dim[1]);
}

/* dkernel = x' dy [columns, units] */
static void multiply_to_kernel(const struct node *node, struct device *d, const float *dy)
{
    const struct sizes s = sizes_of(node);
    d->kernels->gemm(d, &(struct gemm){.transpose_a = true,
                                       .add = node->add_params,
                                       .m = s.columns,
                                       .n = s.units,
                                       .k = s.rows,
                                       .a = last_input(node)->value,
                                       .b = dy,
                                       .c = node->param[KERNEL].gradient,
                                       .made = tell_of_kernel_rows,
                                       .context = node});
}

/* dx = dy kernel' [rows, columns] */
static void multiply_to_input(const struct node *node, struct device *d, const float *dy, bool add)
{
    const struct sizes s = sizes_of(node);
    const struct tensor *x = last_input(node);
    if (x->gradient)
        d->kernels->gemm(d, &(struct gemm){.transpose_b = true,
                                           .add = add,
                                           .m = s.rows,
                                           .n = s.columns,
                                           .k = s.units,
                                           .a = dy,
                                           .b = layer_kernel(node),
                                           .c = x->gradient});
}

/* The kernel's gradient comes first, so that it can be sent while x's is computed; last if its
 * values may be overwritten once it is complete. */
void layer_multiply_back(const struct node *node, struct device *d, const float *dy, bool add)
{
    const bool is_kept = node->param[KERNEL].is_kept;
    if (!is_kept) multiply_to_input(node, d, dy, add);
    multiply_to_kernel(node, d, dy);
    if (is_kept) multiply_to_input(node, d, dy, add);
}
