/* onednn.h - what differs between oneDNN 2 (Debian 12) and 3 (Debian 13): layouts were structs and
 * are handles now; a convolution was described first and its implementations listed, now each is
 * made in one call. All else is alike in both and is called as it stands.
 */
#ifndef KERNELS_CPU_ONEDNN_H
#define KERNELS_CPU_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>

#include "core/base/error.h"

/* A layout as functions of the library take it; belongs to a dnnl_memory_desc_t or to a primitive.
 */
#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t onednn_layout;
#else
typedef const dnnl_memory_desc_t *onednn_layout;
#endif

/* ERR_DEVICE, ERR_MEMORY. */
err onednn_layout_open(dnnl_memory_desc_t *ret, int axes, const dnnl_dims_t dims,
                       dnnl_data_type_t type, dnnl_format_tag_t tag);
void onednn_layout_close(dnnl_memory_desc_t *); /* one of zeros, too */
onednn_layout onednn_layout_of(const dnnl_memory_desc_t *);

dnnl_status_t onednn_append_relu(dnnl_post_ops_t);
dnnl_status_t onednn_append_sum(dnnl_post_ops_t); /* of what the destination was */

enum onednn_direction { ONEDNN_FORWARD, ONEDNN_BACK_DATA, ONEDNN_BACK_WEIGHTS };

struct onednn_convolution {
    enum onednn_direction direction;
    dnnl_engine_t engine;
    onednn_layout source, weights, bias, destination; /* bias: of ONEDNN_FORWARD alone */
    const dnnl_dim_t *strides, *dilates, *before, *after;
    const_dnnl_primitive_attr_t attributes;
    const_dnnl_primitive_desc_t hint; /* the forward convolution, for the others */
};

/* The number-th implementation, from 0, in the library's order: the best in its judgement first.
 * *ret is NULL unless dnnl_success is returned: there are fewer, or it cannot be done. */
dnnl_status_t onednn_convolution_open(const struct onednn_convolution *, int number,
                                      dnnl_primitive_desc_t *ret);

/* a b = c, the best implementation in the library's judgement */
dnnl_status_t onednn_matmul_open(dnnl_engine_t, onednn_layout a, onednn_layout b, onednn_layout c,
                                 const_dnnl_primitive_attr_t, dnnl_primitive_desc_t *ret);

#endif
