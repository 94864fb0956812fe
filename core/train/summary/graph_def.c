/* graph_def.c - the message: GraphDef of TensorFlow's graph.proto, node_def.proto and
 * attr_value.proto. A map is written as sorted entries, so that a model gives the same bytes in
 * every run.
 */
#include "core/train/summary/graph_def.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/proto.h"

enum { GRAPH_NODE = 1, GRAPH_VERSIONS = 4 };
enum { VERSIONS_PRODUCER = 1 };
enum { NODE_NAME = 1, NODE_OP = 2, NODE_INPUT = 3, NODE_DEVICE = 4, NODE_ATTR = 5 };
enum { MAP_KEY = 1, MAP_VALUE = 2 };
enum {
    VALUE_LIST = 1,
    VALUE_STRING = 2,
    VALUE_INT = 3,
    VALUE_FLOAT = 4,
    VALUE_BOOL = 5,
    VALUE_TYPE = 6,
    VALUE_SHAPE = 7,
};
/* of a list, numbered as the values themselves */
enum { SHAPE_DIM = 2 };
enum { DIM_SIZE = 1 };

enum {
    PRODUCER = 134,        /* TensorFlow 1.15: its ops are the ones that are written */
    FIELDS_SHOWN_MAX = 64, /* of one object; no kind has a third of that */
    OWN_ATTRIBUTES = 3,    /* type, output shape and, for an op that holds a value, its shape */
};

/* field NULL: not from the spec */
struct attribute {
    const char *key;
    const struct field *field;
};

/* As the value of an attribute, and within a list of shapes: both use the same number. */
static void add_shape(struct buffer *b, const struct shape *shape)
{
    const size_t message = proto_open(b, VALUE_SHAPE);
    for (int i = 0; i < shape->rank; i++) {
        const size_t dim = proto_open(b, SHAPE_DIM);
        proto_varint(b, DIM_SIZE, (uint64_t)shape->dim[i]);
        proto_close(b, dim);
    }
    proto_close(b, message);
}

/* Attributes of every node; the key says which. */
static void add_own_value(struct buffer *b, const char *key, const struct graph_node *node)
{
    if (strcmp(key, "shape") == 0) {
        add_shape(b, &node->shape);
    } else if (strcmp(key, "_output_shapes") == 0) {
        const size_t list = proto_open(b, VALUE_LIST);
        add_shape(b, &node->shape);
        proto_close(b, list);
    } else {
        proto_varint(b, VALUE_TYPE, node->dtype);
    }
}

/* at: the value of the field, laid out as fields.h says. Objects within objects are not shown. */
static bool is_shown(const struct field *field, const void *at)
{
    switch (field->type) {
    case FIELD_BOOL:
    case FIELD_INT:
    case FIELD_FLOAT:
    case FIELD_ENUM:
    case FIELD_INTS:
    case FIELD_FLOATS:
        return true;
    case FIELD_STRING:
        return *(const char *const *)at != NULL;
    case FIELD_VARIANT:
        return ((const struct variant *)at)->kind != NULL;
    default:
        return false;
    }
}

/* Packed, as proto3 writes lists of numbers. */
static void add_list(struct buffer *b, const struct field *field, const void *at)
{
    const struct ints *ints = at;
    const struct floats *floats = at;
    const size_t list = proto_open(b, VALUE_LIST);
    if (field->type == FIELD_INTS)
        proto_packed_varints(b, VALUE_INT, ints->at, ints->count);
    else
        proto_packed_floats(b, VALUE_FLOAT, floats->at, floats->count);
    proto_close(b, list);
}

/* For a variant, the name of its kind. */
static void add_field_value(struct buffer *b, const struct field *field, const void *at)
{
    if (field->type == FIELD_BOOL)
        proto_varint(b, VALUE_BOOL, *(const bool *)at);
    else if (field->type == FIELD_INT)
        proto_varint(b, VALUE_INT, (uint64_t) * (const int64_t *)at);
    else if (field->type == FIELD_FLOAT)
        proto_float(b, VALUE_FLOAT, (float)*(const double *)at);
    else if (field->type == FIELD_ENUM)
        proto_string(b, VALUE_STRING, field->choices[*(const int *)at]);
    else if (field->type == FIELD_STRING)
        proto_string(b, VALUE_STRING, *(const char *const *)at);
    else if (field->type == FIELD_VARIANT)
        proto_string(b, VALUE_STRING, ((const struct variant *)at)->kind->object->name);
    else
        add_list(b, field, at);
}

/* One entry of the map. */
static void add_attribute(struct buffer *b, const struct attribute *a,
                          const struct graph_node *node)
{
    const size_t entry = proto_open(b, NODE_ATTR);
    proto_string(b, MAP_KEY, a->key);
    const size_t value = proto_open(b, MAP_VALUE);
    if (a->field)
        add_field_value(b, a->field, (const char *)node->attributes + a->field->offset);
    else
        add_own_value(b, a->key, node);
    proto_close(b, value);
    proto_close(b, entry);
}

static int by_key(const void *left, const void *right)
{
    const struct attribute *a = left, *b = right;
    return strcmp(a->key, b->key);
}

/* Ops that hold a value have a dtype and a shape of their own; others have a T. */
static bool holds_value(const struct graph_node *node)
{
    return strcmp(node->op, "VariableV2") == 0 || strcmp(node->op, "Placeholder") == 0;
}

static int own_attributes(const struct graph_node *node, struct attribute ret[OWN_ATTRIBUTES])
{
    int count = 0;
    const bool holds = holds_value(node);
    ret[count++] = (struct attribute){.key = holds ? "dtype" : "T"};
    ret[count++] = (struct attribute){.key = "_output_shapes"};
    if (holds) ret[count++] = (struct attribute){.key = "shape"};
    return count;
}

static void add_attributes(struct buffer *b, const struct graph_node *node)
{
    struct attribute attributes[OWN_ATTRIBUTES + FIELDS_SHOWN_MAX];
    int count = own_attributes(node, attributes);
    const struct field *field = node->object && node->attributes ? node->object->fields : NULL;
    for (int i = 0; field && field->name && i < FIELDS_SHOWN_MAX; i++, field++)
        if (is_shown(field, (const char *)node->attributes + field->offset))
            attributes[count++] = (struct attribute){field->name, field};
    qsort(attributes, (size_t)count, sizeof *attributes, by_key);
    for (int i = 0; i < count; i++) add_attribute(b, &attributes[i], node);
}

static void add_node(struct buffer *b, const struct graph_node *node)
{
    const size_t message = proto_open(b, GRAPH_NODE);
    proto_string(b, NODE_NAME, node->name);
    proto_string(b, NODE_OP, node->op);
    for (int i = 0; i < node->input_count; i++) proto_string(b, NODE_INPUT, node->inputs[i]);
    if (node->device) proto_string(b, NODE_DEVICE, node->device);
    add_attributes(b, node);
    proto_close(b, message);
}

/* The producer tells readers which version of the ops is meant. */
void *graph_def_serialize(const struct graph_def *def, size_t *ret_bytes)
{
    struct buffer b = {0};
    for (int i = 0; i < def->node_count; i++) add_node(&b, &def->nodes[i]);
    const size_t versions = proto_open(&b, GRAPH_VERSIONS);
    proto_varint(&b, VERSIONS_PRODUCER, PRODUCER);
    proto_close(&b, versions);
    if (b.is_short) {
        buffer_drop(&b);
        return NULL;
    }
    *ret_bytes = b.used;
    return b.at;
}
