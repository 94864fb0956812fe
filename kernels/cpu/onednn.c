/* onednn.c - see onednn.h. */
#include "kernels/cpu/onednn.h"

#include <string.h>

#include "kernels/cpu/cpu.h"

#if DNNL_VERSION_MAJOR >= 3

err onednn_layout_open(dnnl_memory_desc_t *ret, int axes, const dnnl_dims_t dims,
                       dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    return onednn_check(dnnl_memory_desc_create_with_tag(ret, axes, dims, type, tag),
                        "dnnl_memory_desc_create_with_tag");
}

void onednn_layout_close(dnnl_memory_desc_t *desc)
{
    if (*desc) (void)dnnl_memory_desc_destroy(*desc);
    *desc = NULL;
}

onednn_layout onednn_layout_of(const dnnl_memory_desc_t *desc)
{
    return *desc;
}

dnnl_status_t onednn_append_relu(dnnl_post_ops_t after)
{
    return dnnl_post_ops_append_eltwise(after, dnnl_eltwise_relu, 0.0f, 0.0f);
}

dnnl_status_t onednn_append_sum(dnnl_post_ops_t after)
{
    return dnnl_post_ops_append_sum(after, 1.0f, 0, dnnl_data_type_undef);
}

dnnl_status_t onednn_matmul_open(dnnl_engine_t engine, onednn_layout a, onednn_layout b,
                                 onednn_layout c, const_dnnl_primitive_attr_t attributes,
                                 dnnl_primitive_desc_t *ret)
{
    return dnnl_matmul_primitive_desc_create(ret, engine, a, b, NULL, c, attributes);
}

static dnnl_status_t first_convolution(const struct onednn_convolution *c,
                                       dnnl_primitive_desc_t *ret)
{
    if (c->direction == ONEDNN_BACK_DATA)
        return dnnl_convolution_backward_data_primitive_desc_create(
            ret, c->engine, dnnl_convolution_auto, c->source, c->weights, c->destination,
            c->strides, c->dilates, c->before, c->after, c->hint, c->attributes);
    if (c->direction == ONEDNN_BACK_WEIGHTS)
        return dnnl_convolution_backward_weights_primitive_desc_create(
            ret, c->engine, dnnl_convolution_auto, c->source, c->weights, NULL, c->destination,
            c->strides, c->dilates, c->before, c->after, c->hint, c->attributes);
    return dnnl_convolution_forward_primitive_desc_create(
        ret, c->engine, dnnl_forward_training, dnnl_convolution_auto, c->source, c->weights,
        c->bias, c->destination, c->strides, c->dilates, c->before, c->after, c->attributes);
}

dnnl_status_t onednn_convolution_open(const struct onednn_convolution *c, int number,
                                      dnnl_primitive_desc_t *ret)
{
    dnnl_status_t status = first_convolution(c, ret);
    if (status != dnnl_success) *ret = NULL;
    for (int i = 0; i < number && status == dnnl_success; i++)
        status = dnnl_primitive_desc_next_impl(*ret);
    if (status == dnnl_success || !*ret) return status;
    (void)dnnl_primitive_desc_destroy(*ret);
    *ret = NULL;
    return status;
}

#else

err onednn_layout_open(dnnl_memory_desc_t *ret, int axes, const dnnl_dims_t dims,
                       dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    return onednn_check(dnnl_memory_desc_init_by_tag(ret, axes, dims, type, tag),
                        "dnnl_memory_desc_init_by_tag");
}

void onednn_layout_close(dnnl_memory_desc_t *desc)
{
    memset(desc, 0, sizeof *desc);
}

onednn_layout onednn_layout_of(const dnnl_memory_desc_t *desc)
{
    return desc;
}

dnnl_status_t onednn_append_relu(dnnl_post_ops_t after)
{
    return dnnl_post_ops_append_eltwise(after, 1.0f, dnnl_eltwise_relu, 0.0f, 0.0f);
}

dnnl_status_t onednn_append_sum(dnnl_post_ops_t after)
{
    return dnnl_post_ops_append_sum(after, 1.0f);
}

dnnl_status_t onednn_matmul_open(dnnl_engine_t engine, onednn_layout a, onednn_layout b,
                                 onednn_layout c, const_dnnl_primitive_attr_t attributes,
                                 dnnl_primitive_desc_t *ret)
{
    dnnl_matmul_desc_t desc;
    const dnnl_status_t status = dnnl_matmul_desc_init(&desc, a, b, NULL, c);
    if (status != dnnl_success) return status;
    return dnnl_primitive_desc_create(ret, &desc, attributes, engine, NULL);
}

static dnnl_status_t describe(const struct onednn_convolution *c, dnnl_convolution_desc_t *ret)
{
    if (c->direction == ONEDNN_BACK_DATA)
        return dnnl_dilated_convolution_backward_data_desc_init(
            ret, dnnl_convolution_auto, c->source, c->weights, c->destination, c->strides,
            c->dilates, c->before, c->after);
    if (c->direction == ONEDNN_BACK_WEIGHTS)
        return dnnl_dilated_convolution_backward_weights_desc_init(
            ret, dnnl_convolution_auto, c->source, c->weights, NULL, c->destination, c->strides,
            c->dilates, c->before, c->after);
    return dnnl_dilated_convolution_forward_desc_init(
        ret, dnnl_forward_training, dnnl_convolution_auto, c->source, c->weights, c->bias,
        c->destination, c->strides, c->dilates, c->before, c->after);
}

dnnl_status_t onednn_convolution_open(const struct onednn_convolution *c, int number,
                                      dnnl_primitive_desc_t *ret)
{
    dnnl_convolution_desc_t desc;
    dnnl_primitive_desc_iterator_t list;
    *ret = NULL;
    dnnl_status_t status = describe(c, &desc);
    if (status == dnnl_success)
        status =
            dnnl_primitive_desc_iterator_create(&list, &desc, c->attributes, c->engine, c->hint);
    if (status != dnnl_success) return status;
    for (int i = 0; i < number && status == dnnl_success; i++)
        status = dnnl_primitive_desc_iterator_next(list);
    if (status == dnnl_success) *ret = dnnl_primitive_desc_iterator_fetch(list);
    (void)dnnl_primitive_desc_iterator_destroy(list);
    return *ret || status != dnnl_success ? status : dnnl_out_of_memory;
}

#endif
