/* convolution.c - see convolution.h. */
#include "core/ops/convolution.h"

#include "core/ops/layer.h"

size_t convolution_bytes(const struct node *node, struct device *d, convolution_of_node *of)
{
    struct conv2d conv;
    return of(node, &conv) ? 0 : d->kernels->conv2d_bytes(d, &conv);
}

err convolution_prepare(struct node *node, struct device *d, convolution_of_node *of)
{
    struct conv2d conv;
    struct conv2d_plan *plan;
    TRY(of(node, &conv));
    TRY(d->kernels->conv2d_open(d, &conv, &plan));
    node->state = plan;
    return OK;
}

void convolution_release(struct node *node, struct device *d)
{
    if (node->state) d->kernels->conv2d_close(d, node->state);
    node->state = NULL;
}

void convolution_forward(const struct node *node, struct device *d)
{
    d->kernels->conv2d_forward(d, node->state, node->output.value, node->input[0]->value,
                               layer_kernel(node), layer_bias(node), layer_sums(node),
                               layer_activation(node), (float)LEAKY_RELU_ALPHA);
}

void convolution_backward(const struct node *node, struct device *d)
{
    const struct tensor *x = node->input[0];
    const float *dy = layer_backward(node, d);
    d->kernels->conv2d_back_kernel(d, node->state, node->param[0].gradient, dy, x->value,
                                   node->add_params);
    if (x->gradient)
        d->kernels->conv2d_back_data(d, node->state, x->gradient, dy, layer_kernel(node),
                                     node->add[0]);
}
