/* layer.h - shared by ops with a kernel and a bias: y = activation(product(x, kernel) + bias). */
#ifndef CORE_OPS_LAYER_H
#define CORE_OPS_LAYER_H

#include "core/graph/op.h"

/* Names in the order of enum activation; ends with NULL. */
extern const char *const activation_names[];

static const double LEAKY_RELU_ALPHA = 0.2; /* tf.nn.leaky_relu's default */

/* The attributes of such an op begin with it. */
struct layer {
    int activation; /* enum activation */
    bool use_bias;
    struct variant kernel_initializer, bias_initializer;
    struct regularizer kernel_regularizer, bias_regularizer;
};

/* Rows of the field table of an op whose attributes begin with a struct layer. */
#define LAYER_FIELDS                                                                               \
    {.name = "activation",                                                                         \
     .type = FIELD_ENUM,                                                                           \
     .offset = offsetof(struct layer, activation),                                                 \
     .fallback = "\"linear\"",                                                                     \
     .choices = activation_names,                                                                  \
     .help = "activation applied to the outputs"},                                                 \
        LAYER_LINEAR_FIELDS

/* The same without an activation. */
#define LAYER_LINEAR_FIELDS                                                                        \
    {.name = "use_bias",                                                                           \
     .type = FIELD_BOOL,                                                                           \
     .offset = offsetof(struct layer, use_bias),                                                   \
     .fallback = "true",                                                                           \
     .help = "add a trained bias per output"},                                                     \
        {.name = "kernel_initializer",                                                             \
         .type = FIELD_VARIANT,                                                                    \
         .offset = offsetof(struct layer, kernel_initializer),                                     \
         .fallback = "\"glorot_uniform\"",                                                         \
         .kinds = &initializer_kinds,                                                              \
         .help = "initializer of the kernel"},                                                     \
        {.name = "bias_initializer",                                                               \
         .type = FIELD_VARIANT,                                                                    \
         .offset = offsetof(struct layer, bias_initializer),                                       \
         .fallback = "\"zeros\"",                                                                  \
         .kinds = &initializer_kinds,                                                              \
         .help = "initializer of the bias"},                                                       \
        {.name = "kernel_regularizer",                                                             \
         .type = FIELD_OBJECT,                                                                     \
         .offset = offsetof(struct layer, kernel_regularizer),                                     \
         .fallback = "{}",                                                                         \
         .object = &regularizer_object,                                                            \
         .help = "a penalty on the kernel"},                                                       \
    {                                                                                              \
        .name = "bias_regularizer", .type = FIELD_OBJECT,                                          \
        .offset = offsetof(struct layer, bias_regularizer), .fallback = "{}",                      \
        .object = &regularizer_object, .help = "a penalty on the bias"                             \
    }

/* Declares kernel and bias ([the last dimension of the kernel]), and what backward needs saved;
 * node->output.shape is set already. */
err layer_infer(struct node *, struct arena *, const struct shape *kernel);

/* The same in two steps, for a kernel and a bias of other names and another number of outputs. The
 * op may add params of its own between them; the bias must be the last. */
err layer_infer_kernel(struct node *, struct arena *, const char *name, const struct shape *);
err layer_infer_bias(struct node *, struct arena *, const char *name, int64_t outputs);

/* y = activation(y + bias), in rows of outputs */
void layer_finish(const struct node *, struct device *, float *y);

/* Values of kernel and bias, and memory where forward saves the sums before the activation; NULL:
 * there is none. */
const float *layer_kernel(const struct node *);
const float *layer_bias(const struct node *);
float *layer_sums(const struct node *);
enum activation layer_activation(const struct node *);

/* For a kernel [columns, units] applied to the last axis of the last input x: y [rows, units] = x
 * kernel. layer_multiply_back computes from dy the gradient of the kernel and, if needed, of x; not
 * that of the bias. */
void layer_multiply(const struct node *, struct device *, float *y);
void layer_multiply_back(const struct node *, struct device *, const float *dy, bool add);

/* The common part of backward: turns output.gradient into the gradient of the sums before the
 * activation, and computes the bias' gradient. Returns output.gradient. */
const float *layer_backward(const struct node *, struct device *);

#endif
