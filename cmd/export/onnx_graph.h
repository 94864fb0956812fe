/* onnx_graph.h - builds an ONNX graph node by node; values are named by numbers. */
#ifndef CMD_EXPORT_ONNX_GRAPH_H
#define CMD_EXPORT_ONNX_GRAPH_H

#include "core/base/arena.h"
#include "core/base/proto.h"
#include "core/graph/tensor.h"

enum onnx_type { ONNX_FLOAT = 1, ONNX_UINT8 = 2, ONNX_INT64 = 7, ONNX_BOOL = 9, ONNX_DOUBLE = 11 };
enum { ONNX_NAME_MAX = 24 };

/* Fields of a GraphProto, in the order in which they are written */
struct onnx_graph {
    struct buffer nodes, constants, inputs, outputs;
    int count; /* values so far */
    size_t node;
    bool is_open;
};
void onnx_graph_drop(struct onnx_graph *);

/* A node with these inputs; returns its output. onnx_attr_* calls that follow add to this node. */
int onnx_node(struct onnx_graph *, const char *op, const int *inputs, int count);
void onnx_attr_int(struct onnx_graph *, const char *name, int64_t);
void onnx_attr_ints(struct onnx_graph *, const char *name, const int64_t *, int count);
int onnx_one(struct onnx_graph *, const char *op, int x);
int onnx_two(struct onnx_graph *, const char *op, int a, int b);
int onnx_where(struct onnx_graph *, int condition, int yes, int no);
int onnx_cast(struct onnx_graph *, enum onnx_type, int x);
int onnx_reshape(struct onnx_graph *, int x, const int64_t *dims, int count);
int onnx_reduce(struct onnx_graph *, const char *op, int x, const int64_t *axes, int count,
                bool keeps);

/* Constants; elements in native layout */
int onnx_constant(struct onnx_graph *, enum onnx_type, const struct shape *, const void *elements);
int onnx_int64(struct onnx_graph *, int64_t);
int onnx_int64s(struct onnx_graph *, const int64_t *, int count);
int onnx_double(struct onnx_graph *, double);
/* A float32 constant whose elements the caller appends to `constants` between open and close; or,
 * with _beside, whose elements are in another file from that byte offset on. */
struct onnx_open {
    size_t tensor, elements;
    int value;
};
struct onnx_open onnx_constant_open(struct onnx_graph *, const struct shape *);
void onnx_constant_close(struct onnx_graph *, struct onnx_open);
int onnx_constant_beside(struct onnx_graph *, const struct shape *, const char *file,
                         uint64_t offset);

/* Inputs and outputs of the model; the first axis is the batch, of any size. */
int onnx_input(struct onnx_graph *, const char *name, enum onnx_type, const struct shape *);
void onnx_output(struct onnx_graph *, const char *name, int value, const struct shape *);

/* Appends the complete model to ret. */
void onnx_put_model(struct onnx_graph *, const char *name, struct buffer *ret);

#endif
