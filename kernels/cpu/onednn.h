/* onednn.h - the differences between oneDNN 2 (Debian 12) and 3 (Debian 13): layouts were structs
 * and are handles now; a convolution was described first and its implementations listed, now each
 * is created in one call. Everything else is the same in both and called directly. */
#ifndef KERNELS_CPU_ONEDNN_H
#define KERNELS_CPU_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>

#include "core/base/error.h"

/* A layout as an argument of the library's functions; owned by a dnnl_memory_desc_t or a primitive.
 */
#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t onednn_layout;
#else
typedef const dnnl_memory_desc_t *onednn_layout;
#endif

/* ERR_DEVICE, ERR_MEMORY. */
err onednn_layout_open(dnnl_memory_desc_t *ret, int axes, const dnnl_dims_t dims,
                       dnnl_data_type_t type, dnnl_format_tag_t tag);
void onednn_layout_close(dnnl_memory_desc_t *); /* a zeroed one is fine */
onednn_layout onednn_layout_of(const dnnl_memory_desc_t *);

dnnl_status_t onednn_append_relu(dnnl_post_ops_t);
dnnl_status_t onednn_append_sum(dnnl_post_ops_t); /* adds the old destination */

enum onednn_direction { ONEDNN_FORWARD, ONEDNN_BACK_DATA, ONEDNN_BACK_WEIGHTS };

struct onednn_convolution {
    enum onednn_direction direction;
    dnnl_engine_t engine;
    onednn_layout source, weights, bias, destination; /* bias: ONEDNN_FORWARD only */
    const dnnl_dim_t *strides, *dilates, *before, *after;
    const_dnnl_primitive_attr_t attributes;
    const_dnnl_primitive_desc_t hint; /* the forward convolution, for the others */
};

/* Implementation `number`, from 0, in the library's order of preference. *ret is NULL unless it
 * returns dnnl_success: there are fewer, or none. */
dnnl_status_t onednn_convolution_open(const struct onednn_convolution *, int number,
                                      dnnl_primitive_desc_t *ret);

/* c = a b, by the library's preferred implementation */
dnnl_status_t onednn_matmul_open(dnnl_engine_t, onednn_layout a, onednn_layout b, onednn_layout c,
                                 const_dnnl_primitive_attr_t, dnnl_primitive_desc_t *ret);

#endif
