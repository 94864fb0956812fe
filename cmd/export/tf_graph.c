/* tf_graph.c - see tf_graph.h. Field numbers: TensorFlow's graph.proto, node_def.proto,
 * attr_value.proto, tensor.proto, tensor_shape.proto. */
#include "cmd/export/tf_graph.h"

#include <stdio.h>
#include <string.h>

enum { GRAPH_NODE = 1, GRAPH_VERSIONS = 4, VERSIONS_PRODUCER = 1 };
enum { NODE_NAME = 1, NODE_OP = 2, NODE_INPUT = 3, NODE_ATTR = 5 };
enum { MAP_KEY = 1, MAP_VALUE = 2 };
/* Fields of AttrValue, and of its list */
enum {
    VALUE_LIST = 1,
    VALUE_TEXT = 2,
    VALUE_INT = 3,
    VALUE_BOOL = 5,
    VALUE_TYPE = 6,
    VALUE_SHAPE = 7,
    VALUE_TENSOR = 8,
};
enum { SHAPE_DIM = 2, DIM_SIZE = 1 };
enum { TENSOR_TYPE = 1, TENSOR_SHAPE = 2, TENSOR_CONTENT = 4, TENSOR_TEXT = 8 };
enum { PRODUCER = 134 /* TensorFlow 1.15, whose ops all later ones have */ };

/* ---- nodes ---- */

static void close_node(struct tf_graph *g)
{
    if (g->is_open) proto_close(&g->bytes, g->node);
    g->is_open = false;
}

const char *tf_name(struct tf_tensor t, char ret[TF_NAME_MAX])
{
    snprintf(ret, TF_NAME_MAX, "n%d:%d", t.node, t.output);
    return ret;
}

struct tf_tensor tf_node(struct tf_graph *g, const char *op, const struct tf_tensor *inputs,
                         int count)
{
    char name[TF_NAME_MAX];
    close_node(g);
    g->node = proto_open(&g->bytes, GRAPH_NODE);
    g->is_open = true;
    snprintf(name, sizeof name, "n%d", g->count);
    proto_string(&g->bytes, NODE_NAME, name);
    proto_string(&g->bytes, NODE_OP, op);
    for (int i = 0; i < count; i++) proto_string(&g->bytes, NODE_INPUT, tf_name(inputs[i], name));
    return (struct tf_tensor){g->count++, 0};
}

void tf_control(struct tf_graph *g, int node)
{
    char name[TF_NAME_MAX];
    snprintf(name, sizeof name, "^n%d", node);
    proto_string(&g->bytes, NODE_INPUT, name);
}

void tf_finish(struct tf_graph *g)
{
    close_node(g);
    const size_t versions = proto_open(&g->bytes, GRAPH_VERSIONS);
    proto_varint(&g->bytes, VERSIONS_PRODUCER, PRODUCER);
    proto_close(&g->bytes, versions);
}

/* ---- attributes ---- */

struct attr {
    size_t entry, value;
};

static struct attr open_attr(struct tf_graph *g, const char *name)
{
    struct attr a = {.entry = proto_open(&g->bytes, NODE_ATTR)};
    proto_string(&g->bytes, MAP_KEY, name);
    a.value = proto_open(&g->bytes, MAP_VALUE);
    return a;
}

static void close_attr(struct tf_graph *g, struct attr a)
{
    proto_close(&g->bytes, a.value);
    proto_close(&g->bytes, a.entry);
}

void tf_attr_type(struct tf_graph *g, const char *name, enum tf_type type)
{
    const struct attr a = open_attr(g, name);
    proto_varint(&g->bytes, VALUE_TYPE, (uint64_t)type);
    close_attr(g, a);
}

void tf_attr_int(struct tf_graph *g, const char *name, int64_t number)
{
    const struct attr a = open_attr(g, name);
    proto_varint(&g->bytes, VALUE_INT, (uint64_t)number);
    close_attr(g, a);
}

void tf_attr_bool(struct tf_graph *g, const char *name, bool is_set)
{
    const struct attr a = open_attr(g, name);
    proto_varint(&g->bytes, VALUE_BOOL, is_set);
    close_attr(g, a);
}

void tf_attr_text(struct tf_graph *g, const char *name, const char *text)
{
    const struct attr a = open_attr(g, name);
    proto_bytes(&g->bytes, VALUE_TEXT, text, strlen(text));
    close_attr(g, a);
}

void tf_attr_ints(struct tf_graph *g, const char *name, const int64_t *numbers, int count)
{
    const struct attr a = open_attr(g, name);
    const size_t list = proto_open(&g->bytes, VALUE_LIST);
    proto_packed_varints(&g->bytes, VALUE_INT, numbers, count);
    proto_close(&g->bytes, list);
    close_attr(g, a);
}

void tf_attr_types(struct tf_graph *g, const char *name, const enum tf_type *types, int count)
{
    const struct attr a = open_attr(g, name);
    const size_t list = proto_open(&g->bytes, VALUE_LIST);
    for (int i = 0; i < count; i++) proto_varint(&g->bytes, VALUE_TYPE, (uint64_t)types[i]);
    proto_close(&g->bytes, list);
    close_attr(g, a);
}

void tf_put_shape(struct buffer *b, int field, const struct shape *shape)
{
    const size_t message = proto_open(b, field);
    for (int i = 0; i < shape->rank; i++) {
        const size_t dim = proto_open(b, SHAPE_DIM);
        proto_varint(b, DIM_SIZE, (uint64_t)shape->dim[i]);
        proto_close(b, dim);
    }
    proto_close(b, message);
}

void tf_attr_shape(struct tf_graph *g, const char *name, const struct shape *shape)
{
    const struct attr a = open_attr(g, name);
    tf_put_shape(&g->bytes, VALUE_SHAPE, shape);
    close_attr(g, a);
}

void tf_attr_shapes(struct tf_graph *g, const char *name, const struct shape *shapes, int count)
{
    const struct attr a = open_attr(g, name);
    const size_t list = proto_open(&g->bytes, VALUE_LIST);
    for (int i = 0; i < count; i++) tf_put_shape(&g->bytes, VALUE_SHAPE, &shapes[i]);
    proto_close(&g->bytes, list);
    close_attr(g, a);
}

/* ---- common nodes ---- */

struct tf_tensor tf_one(struct tf_graph *g, const char *op, enum tf_type type, struct tf_tensor x)
{
    const struct tf_tensor y = tf_node(g, op, &x, 1);
    tf_attr_type(g, "T", type);
    return y;
}

struct tf_tensor tf_two(struct tf_graph *g, const char *op, enum tf_type type, struct tf_tensor a,
                        struct tf_tensor b)
{
    const struct tf_tensor y = tf_node(g, op, (const struct tf_tensor[]){a, b}, 2);
    tf_attr_type(g, "T", type);
    return y;
}

struct tf_tensor tf_select(struct tf_graph *g, enum tf_type type, struct tf_tensor condition,
                           struct tf_tensor yes, struct tf_tensor no)
{
    const struct tf_tensor y =
        tf_node(g, "SelectV2", (const struct tf_tensor[]){condition, yes, no}, 3);
    tf_attr_type(g, "T", type);
    return y;
}

struct tf_tensor tf_cast(struct tf_graph *g, enum tf_type from, enum tf_type to, struct tf_tensor x)
{
    if (from == to) return x;
    const struct tf_tensor y = tf_node(g, "Cast", &x, 1);
    tf_attr_type(g, "SrcT", from);
    tf_attr_type(g, "DstT", to);
    return y;
}

struct tf_tensor tf_reshape(struct tf_graph *g, enum tf_type type, struct tf_tensor x,
                            const int64_t *dims, int count)
{
    return tf_two(g, "Reshape", type, x, tf_int32s(g, dims, count));
}

struct tf_tensor tf_reduce(struct tf_graph *g, const char *op, enum tf_type type,
                           struct tf_tensor x, const int64_t *axes, int count, bool keeps)
{
    const struct tf_tensor y = tf_two(g, op, type, x, tf_int32s(g, axes, count));
    tf_attr_bool(g, "keep_dims", keeps);
    return y;
}

/* ---- constants ---- */

static size_t size_of(enum tf_type type)
{
    return type == TF_DOUBLE || type == TF_INT64 ? 8 : 4;
}

struct tf_tensor tf_constant(struct tf_graph *g, enum tf_type type, const struct shape *shape,
                             const void *elements)
{
    const struct tf_tensor y = tf_node(g, "Const", NULL, 0);
    tf_attr_type(g, "dtype", type);
    const struct attr a = open_attr(g, "value");
    const size_t tensor = proto_open(&g->bytes, VALUE_TENSOR);
    proto_varint(&g->bytes, TENSOR_TYPE, (uint64_t)type);
    tf_put_shape(&g->bytes, TENSOR_SHAPE, shape);
    proto_bytes(&g->bytes, TENSOR_CONTENT, elements, (size_t)shape_count(shape) * size_of(type));
    proto_close(&g->bytes, tensor);
    close_attr(g, a);
    return y;
}

struct tf_tensor tf_texts(struct tf_graph *g, const char *const *texts, int count, bool is_vector)
{
    const struct shape shape = {is_vector, {count}};
    const struct tf_tensor y = tf_node(g, "Const", NULL, 0);
    tf_attr_type(g, "dtype", TF_STRING);
    const struct attr a = open_attr(g, "value");
    const size_t tensor = proto_open(&g->bytes, VALUE_TENSOR);
    proto_varint(&g->bytes, TENSOR_TYPE, TF_STRING);
    tf_put_shape(&g->bytes, TENSOR_SHAPE, &shape);
    for (int i = 0; i < count; i++) proto_bytes(&g->bytes, TENSOR_TEXT, texts[i], strlen(texts[i]));
    proto_close(&g->bytes, tensor);
    close_attr(g, a);
    return y;
}

struct tf_tensor tf_int32s(struct tf_graph *g, const int64_t *numbers, int count)
{
    int32_t elements[INT8_MAX];
    for (int i = 0; i < count; i++) elements[i] = (int32_t)numbers[i];
    return tf_constant(g, TF_INT32, &(struct shape){1, {count}}, elements);
}

struct tf_tensor tf_int32(struct tf_graph *g, int64_t number)
{
    return tf_constant(g, TF_INT32, &(struct shape){0}, &(int32_t){(int32_t)number});
}

struct tf_tensor tf_int64(struct tf_graph *g, int64_t number)
{
    return tf_constant(g, TF_INT64, &(struct shape){0}, &number);
}

struct tf_tensor tf_double(struct tf_graph *g, double number)
{
    return tf_constant(g, TF_DOUBLE, &(struct shape){0}, &number);
}

struct tf_tensor tf_float(struct tf_graph *g, float number)
{
    return tf_constant(g, TF_FLOAT, &(struct shape){0}, &number);
}

struct tf_tensor tf_placeholder(struct tf_graph *g, enum tf_type type, const struct shape *shape)
{
    const struct tf_tensor y = tf_node(g, "Placeholder", NULL, 0);
    tf_attr_type(g, "dtype", type);
    tf_attr_shape(g, "shape", shape);
    return y;
}

struct tf_tensor tf_with_double(struct tf_graph *g, const char *op, struct tf_tensor x,
                                double number)
{
    return tf_two(g, op, TF_DOUBLE, x, tf_double(g, number));
}
