/* onnx_graph.c - see onnx_graph.h. Field numbers: onnx.proto. */
#include "cmd/export/onnx_graph.h"

#include <stdio.h>

enum { IR_VERSION = 10, OPSET = 21 };
enum model_field { MODEL_IR = 1, MODEL_PRODUCER = 2, MODEL_GRAPH = 7, MODEL_OPSET = 8 };
enum { OPSET_VERSION = 2 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_CONSTANT = 5, GRAPH_IN = 11, GRAPH_OUT = 12 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_OP = 4, NODE_ATTR = 5 };
enum { ATTR_NAME = 1, ATTR_INT = 3, ATTR_INTS = 8, ATTR_TYPE = 20 };
enum { TYPE_INT = 2, TYPE_INTS = 7 };
enum {
    TENSOR_DIM = 1,
    TENSOR_TYPE = 2,
    TENSOR_NAME = 8,
    TENSOR_BYTES = 9,
    TENSOR_BESIDE = 13,
    TENSOR_LOCATION = 14,
};
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2, LOCATION_BESIDE = 1 };
enum { INFO_NAME = 1, INFO_TYPE = 2, TYPE_TENSOR = 1, KIND_ELEMENT = 1, KIND_SHAPE = 2 };
enum { SHAPE_DIM = 1, DIM_SIZE = 1, DIM_NAME = 2 };

void onnx_graph_drop(struct onnx_graph *g)
{
    buffer_drop(&g->nodes);
    buffer_drop(&g->constants);
    buffer_drop(&g->inputs);
    buffer_drop(&g->outputs);
}

/* A name that no column has */
static void put_name(struct buffer *b, int field, int value)
{
    char name[ONNX_NAME_MAX];
    snprintf(name, sizeof name, "#%d", value);
    proto_string(b, field, name);
}

/* ---- nodes ---- */

static void close_node(struct onnx_graph *g)
{
    if (g->is_open) proto_close(&g->nodes, g->node);
    g->is_open = false;
}

int onnx_node(struct onnx_graph *g, const char *op, const int *inputs, int count)
{
    close_node(g);
    g->node = proto_open(&g->nodes, GRAPH_NODE);
    g->is_open = true;
    for (int i = 0; i < count; i++) put_name(&g->nodes, NODE_INPUT, inputs[i]);
    put_name(&g->nodes, NODE_OUTPUT, g->count);
    proto_string(&g->nodes, NODE_OP, op);
    return g->count++;
}

void onnx_attr_int(struct onnx_graph *g, const char *name, int64_t number)
{
    const size_t attr = proto_open(&g->nodes, NODE_ATTR);
    proto_string(&g->nodes, ATTR_NAME, name);
    proto_varint(&g->nodes, ATTR_INT, (uint64_t)number);
    proto_varint(&g->nodes, ATTR_TYPE, TYPE_INT);
    proto_close(&g->nodes, attr);
}

void onnx_attr_ints(struct onnx_graph *g, const char *name, const int64_t *numbers, int count)
{
    const size_t attr = proto_open(&g->nodes, NODE_ATTR);
    proto_string(&g->nodes, ATTR_NAME, name);
    for (int i = 0; i < count; i++) proto_varint(&g->nodes, ATTR_INTS, (uint64_t)numbers[i]);
    proto_varint(&g->nodes, ATTR_TYPE, TYPE_INTS);
    proto_close(&g->nodes, attr);
}

int onnx_one(struct onnx_graph *g, const char *op, int x)
{
    return onnx_node(g, op, &x, 1);
}

int onnx_two(struct onnx_graph *g, const char *op, int a, int b)
{
    return onnx_node(g, op, (const int[]){a, b}, 2);
}

int onnx_where(struct onnx_graph *g, int condition, int yes, int no)
{
    return onnx_node(g, "Where", (const int[]){condition, yes, no}, 3);
}

int onnx_cast(struct onnx_graph *g, enum onnx_type type, int x)
{
    const int y = onnx_one(g, "Cast", x);
    onnx_attr_int(g, "to", type);
    return y;
}

int onnx_reshape(struct onnx_graph *g, int x, const int64_t *dims, int count)
{
    return onnx_two(g, "Reshape", x, onnx_int64s(g, dims, count));
}

int onnx_reduce(struct onnx_graph *g, const char *op, int x, const int64_t *axes, int count,
                bool keeps)
{
    const int y = onnx_two(g, op, x, onnx_int64s(g, axes, count));
    onnx_attr_int(g, "keepdims", keeps);
    return y;
}

/* ---- constants ---- */

static size_t open_tensor(struct onnx_graph *g, enum onnx_type type, const struct shape *shape)
{
    const size_t tensor = proto_open(&g->constants, GRAPH_CONSTANT);
    for (int i = 0; i < shape->rank; i++)
        proto_varint(&g->constants, TENSOR_DIM, (uint64_t)shape->dim[i]);
    proto_varint(&g->constants, TENSOR_TYPE, (uint64_t)type);
    put_name(&g->constants, TENSOR_NAME, g->count);
    return tensor;
}

int onnx_constant(struct onnx_graph *g, enum onnx_type type, const struct shape *shape,
                  const void *elements)
{
    const size_t each = type == ONNX_FLOAT ? sizeof(float) : sizeof(int64_t);
    const size_t tensor = open_tensor(g, type, shape);
    proto_bytes(&g->constants, TENSOR_BYTES, elements, (size_t)shape_count(shape) * each);
    proto_close(&g->constants, tensor);
    return g->count++;
}

int onnx_int64(struct onnx_graph *g, int64_t number)
{
    return onnx_constant(g, ONNX_INT64, &(struct shape){0}, &number);
}

int onnx_int64s(struct onnx_graph *g, const int64_t *numbers, int count)
{
    return onnx_constant(g, ONNX_INT64, &(struct shape){1, {count}}, numbers);
}

int onnx_double(struct onnx_graph *g, double number)
{
    return onnx_constant(g, ONNX_DOUBLE, &(struct shape){0}, &number);
}

struct onnx_open onnx_constant_open(struct onnx_graph *g, const struct shape *shape)
{
    struct onnx_open open = {.tensor = open_tensor(g, ONNX_FLOAT, shape), .value = g->count++};
    open.elements = proto_open(&g->constants, TENSOR_BYTES);
    return open;
}

void onnx_constant_close(struct onnx_graph *g, struct onnx_open open)
{
    proto_close(&g->constants, open.elements);
    proto_close(&g->constants, open.tensor);
}

static void put_entry(struct onnx_graph *g, const char *key, const char *value)
{
    const size_t entry = proto_open(&g->constants, TENSOR_BESIDE);
    proto_string(&g->constants, ENTRY_KEY, key);
    proto_string(&g->constants, ENTRY_VALUE, value);
    proto_close(&g->constants, entry);
}

int onnx_constant_beside(struct onnx_graph *g, const struct shape *shape, const char *file,
                         uint64_t offset)
{
    char number[ONNX_NAME_MAX];
    const size_t tensor = open_tensor(g, ONNX_FLOAT, shape);
    put_entry(g, "location", file);
    snprintf(number, sizeof number, "%llu", (unsigned long long)offset);
    put_entry(g, "offset", number);
    snprintf(number, sizeof number, "%lld", (long long)shape_count(shape) * 4);
    put_entry(g, "length", number);
    proto_varint(&g->constants, TENSOR_LOCATION, LOCATION_BESIDE);
    proto_close(&g->constants, tensor);
    return g->count++;
}

/* ---- inputs and outputs ---- */

static void put_type(struct buffer *b, enum onnx_type type, const struct shape *shape)
{
    const size_t of = proto_open(b, INFO_TYPE), tensor = proto_open(b, TYPE_TENSOR);
    proto_varint(b, KIND_ELEMENT, (uint64_t)type);
    const size_t dims = proto_open(b, KIND_SHAPE);
    for (int i = 0; i < shape->rank; i++) {
        const size_t dim = proto_open(b, SHAPE_DIM);
        if (i)
            proto_varint(b, DIM_SIZE, (uint64_t)shape->dim[i]);
        else
            proto_string(b, DIM_NAME, "batch");
        proto_close(b, dim);
    }
    proto_close(b, dims);
    proto_close(b, tensor);
    proto_close(b, of);
}

/* Nodes read a copy of it, which is named by a number as all values are. */
int onnx_input(struct onnx_graph *g, const char *name, enum onnx_type type,
               const struct shape *shape)
{
    const size_t input = proto_open(&g->inputs, GRAPH_IN);
    proto_string(&g->inputs, INFO_NAME, name);
    put_type(&g->inputs, type, shape);
    proto_close(&g->inputs, input);
    const int value = onnx_node(g, "Identity", NULL, 0);
    proto_string(&g->nodes, NODE_INPUT, name);
    return value;
}

void onnx_output(struct onnx_graph *g, const char *name, int value, const struct shape *shape)
{
    const size_t output = proto_open(&g->outputs, GRAPH_OUT);
    proto_string(&g->outputs, INFO_NAME, name);
    put_type(&g->outputs, ONNX_FLOAT, shape);
    proto_close(&g->outputs, output);
    close_node(g);
    const size_t node = proto_open(&g->nodes, GRAPH_NODE);
    put_name(&g->nodes, NODE_INPUT, value);
    proto_string(&g->nodes, NODE_OUTPUT, name);
    proto_string(&g->nodes, NODE_OP, "Identity");
    proto_close(&g->nodes, node);
}

void onnx_put_model(struct onnx_graph *g, const char *name, struct buffer *ret)
{
    const struct buffer *const parts[] = {&g->nodes, &g->constants, &g->inputs, &g->outputs};
    close_node(g);
    proto_varint(ret, MODEL_IR, IR_VERSION);
    proto_string(ret, MODEL_PRODUCER, "dtrain");
    const size_t opset = proto_open(ret, MODEL_OPSET);
    proto_varint(ret, OPSET_VERSION, OPSET);
    proto_close(ret, opset);
    const size_t graph = proto_open(ret, MODEL_GRAPH);
    proto_string(ret, GRAPH_NAME, name);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        buffer_put(ret, parts[i]->at, parts[i]->used);
        ret->is_short |= parts[i]->is_short;
    }
    proto_close(ret, graph);
}
