/* tf_graph.h - builds a TensorFlow GraphDef node by node. */
#ifndef CMD_EXPORT_TF_GRAPH_H
#define CMD_EXPORT_TF_GRAPH_H

#include "core/base/arena.h"
#include "core/base/proto.h"
#include "core/graph/tensor.h"

enum tf_type {
    TF_FLOAT = 1,
    TF_DOUBLE = 2,
    TF_INT32 = 3,
    TF_UINT8 = 4,
    TF_STRING = 7,
    TF_INT64 = 9,
    TF_BOOL = 10,
};

/* An output of a node */
struct tf_tensor {
    int node, output;
};

enum { TF_INITS_MAX = 1024, TF_NAME_MAX = 32 };
struct tf_graph {
    struct buffer bytes; /* of the GraphDef */
    int count;
    size_t node; /* offset of the open one */
    bool is_open;
    int inits[TF_INITS_MAX]; /* nodes to run once, after variables are restored */
    int init_count;
};

/* A node with these inputs; tf_attr_* calls that follow add to it. */
struct tf_tensor tf_node(struct tf_graph *, const char *op, const struct tf_tensor *inputs,
                         int count);
void tf_attr_type(struct tf_graph *, const char *name, enum tf_type);
void tf_attr_int(struct tf_graph *, const char *name, int64_t);
void tf_attr_bool(struct tf_graph *, const char *name, bool);
void tf_attr_text(struct tf_graph *, const char *name, const char *);
void tf_attr_ints(struct tf_graph *, const char *name, const int64_t *, int count);
void tf_attr_types(struct tf_graph *, const char *name, const enum tf_type *, int count);
void tf_attr_shape(struct tf_graph *, const char *name, const struct shape *);
void tf_attr_shapes(struct tf_graph *, const char *name, const struct shape *, int count);
void tf_control(struct tf_graph *, int node); /* before attributes */
void tf_finish(struct tf_graph *);            /* completes the GraphDef */

/* Nodes whose only attribute is T, the type of their inputs */
struct tf_tensor tf_one(struct tf_graph *, const char *op, enum tf_type, struct tf_tensor);
struct tf_tensor tf_two(struct tf_graph *, const char *op, enum tf_type, struct tf_tensor,
                        struct tf_tensor);
struct tf_tensor tf_with_double(struct tf_graph *, const char *op, struct tf_tensor, double);
struct tf_tensor tf_select(struct tf_graph *, enum tf_type, struct tf_tensor condition,
                           struct tf_tensor yes, struct tf_tensor no);
struct tf_tensor tf_cast(struct tf_graph *, enum tf_type from, enum tf_type to, struct tf_tensor);
struct tf_tensor tf_reshape(struct tf_graph *, enum tf_type, struct tf_tensor, const int64_t *dims,
                            int count);
struct tf_tensor tf_reduce(struct tf_graph *, const char *op, enum tf_type, struct tf_tensor,
                           const int64_t *axes, int count, bool keeps);

/* Constants; elements in native layout */
struct tf_tensor tf_constant(struct tf_graph *, enum tf_type, const struct shape *,
                             const void *elements);
struct tf_tensor tf_int32s(struct tf_graph *, const int64_t *, int count); /* a vector */
struct tf_tensor tf_int32(struct tf_graph *, int64_t);
struct tf_tensor tf_int64(struct tf_graph *, int64_t);
struct tf_tensor tf_double(struct tf_graph *, double);
struct tf_tensor tf_float(struct tf_graph *, float);
struct tf_tensor tf_texts(struct tf_graph *, const char *const *, int count, bool is_vector);
struct tf_tensor tf_placeholder(struct tf_graph *, enum tf_type, const struct shape *);

const char *tf_name(struct tf_tensor, char ret[TF_NAME_MAX]); /* "n7:0" */

/* Appends a TensorShapeProto as that field. */
void tf_put_shape(struct buffer *, int field, const struct shape *); /* negative: unknown */

#endif
