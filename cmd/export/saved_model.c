/* saved_model.c - see saved_model.h. The format is that of TensorFlow 1, which
 * `tf.saved_model.load`, TensorFlow Serving and the C API read: one graph, variables in a
 * checkpoint, signatures as names of tensors. Field numbers: saved_model.proto, meta_graph.proto,
 * saver.proto.
 */
#include "cmd/export/saved_model.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/files/file_system.h"
#include "core/base/files/replace.h"
#include "core/train/checkpoint/bundle/file.h"
#include "core/train/checkpoint/stored_table.h"

enum { SAVED_VERSION = 1, SAVED_GRAPH = 2 };
enum {
    META_INFO = 1,
    META_GRAPH = 2,
    META_SAVER = 3,
    META_COLLECTION = 4,
    META_SIGNATURE = 5,
};
enum { INFO_TAG = 4, INFO_TENSORFLOW = 5 };
enum { SAVER_FILE = 1, SAVER_SAVE = 2, SAVER_RESTORE = 3, SAVER_VERSION = 7 };
enum { MAP_KEY = 1, MAP_VALUE = 2 };
enum { SIGNATURE_INPUT = 1, SIGNATURE_OUTPUT = 2, SIGNATURE_METHOD = 3 };
enum { INFO_NAME = 1, INFO_TYPE = 2, INFO_SHAPE = 3 };
enum { COLLECTION_NODES = 1, NODES_VALUE = 1, SAVER_V2 = 2 };
enum { SMALL_FLOATS = 64 /* of a constant inside the graph */, PATH_MAX_HERE = 4096 };

/* An input or output of a signature */
struct named_tensor {
    const char *name;
    struct tf_tensor at;
    enum tf_type type;
    struct shape shape; /* negative: any size */
};

/* What a variable holds; a table that grows has two more, for keys and their row numbers. */
enum variable_content { CONTENT_ROWS, CONTENT_KEYS, CONTENT_PLACES };
static enum tf_type type_of(enum variable_content content)
{
    return content == CONTENT_ROWS ? TF_FLOAT : TF_INT64;
}

struct model_saving {
    const struct program *program;
    const struct cells *cells;
    struct tf_graph graph;
    struct tf_cells given;
    struct tf_tensor *constants; /* [program->count] those inside the graph */
    struct saved_variable {
        const char *name;
        enum variable_content content;
        int value; /* in the program */
        struct tf_tensor handle;
    } * variables;
    int variable_count, *variable_of; /* [program->count] first variable of a value, or -1 */
    struct named_tensor inputs[2][CELLS_MAX],
        outputs[2][PROGRAM_OUTPUTS_MAX]; /* of both signatures */
    int input_count[2];
    struct tf_tensor file;
    int restore, init; /* nodes; -1: none */
    char folder[PATH_MAX_HERE], temporary[PATH_MAX_HERE];
};

/* ---- variables ---- */

/* A name that no other variable has */
static const char *free_name(const struct model_saving *s, const char *name)
{
    const char *free_one = name;
    for (int i = 1, k = 0; k < s->variable_count; k++) /* ends: this many names are taken */
        if (strcmp(s->variables[k].name, free_one) == 0) {
            free_one = arena_format(s->program->arena, "%s_%d", name, i++);
            k = -1;
        }
    return free_one;
}

static void add_variable(struct model_saving *s, int value, enum variable_content content,
                         const char *name)
{
    struct tf_graph *g = &s->graph;
    const struct shape *rows = &s->program->values[value].shape;
    const struct shape keys = {1, {rows->dim[0]}};
    struct saved_variable *v = &s->variables[s->variable_count];
    *v = (struct saved_variable){free_name(s, name), content, value,
                                 tf_node(g, "VarHandleOp", NULL, 0)};
    tf_attr_type(g, "dtype", type_of(content));
    tf_attr_shape(g, "shape", content == CONTENT_ROWS ? rows : &keys);
    tf_attr_text(g, "shared_name", v->name);
    s->variable_count++;
}

static void write_constant(struct model_saving *s, int value)
{
    struct tf_graph *g = &s->graph;
    const struct program_value *v = &s->program->values[value];
    const char *name = *v->name ? v->name : "constant";
    if (!v->is_looked_up && shape_count(&v->shape) <= SMALL_FLOATS) {
        s->constants[value] = tf_constant(g, TF_FLOAT, &v->shape, v->data);
        return;
    }
    s->variable_of[value] = s->variable_count;
    add_variable(s, value, CONTENT_ROWS, name);
    if (!v->grows) return;
    add_variable(s, value, CONTENT_KEYS, arena_format(s->program->arena, "%s/keys", name));
    add_variable(s, value, CONTENT_PLACES, arena_format(s->program->arena, "%s/places", name));
}

/* The input for the path of the checkpoint, and the node that restores all variables from it */
static void write_restore(struct model_saving *s)
{
    struct tf_graph *g = &s->graph;
    const int count = s->variable_count;
    const char **names = arena_array(s->program->arena, (size_t)count, sizeof *names);
    const char **slices = arena_array(s->program->arena, (size_t)count, sizeof *slices);
    enum tf_type *types = arena_array(s->program->arena, (size_t)count, sizeof *types);
    if (!count) return;
    for (int i = 0; i < count; i++) {
        names[i] = s->variables[i].name;
        slices[i] = "";
        types[i] = type_of(s->variables[i].content);
    }
    const struct tf_tensor fallback = tf_texts(g, &(const char *){"model"}, 1, false);
    s->file = tf_node(g, "PlaceholderWithDefault", &fallback, 1);
    tf_attr_type(g, "dtype", TF_STRING);
    tf_attr_shape(g, "shape", &(struct shape){0});
    const struct tf_tensor inputs[] = {s->file, tf_texts(g, names, count, true),
                                       tf_texts(g, slices, count, true)};
    const struct tf_tensor values = tf_node(g, "RestoreV2", inputs, 3);
    tf_attr_types(g, "dtypes", types, count);
    const int first = g->count;
    for (int i = 0; i < count; i++) {
        const struct tf_tensor pair[] = {s->variables[i].handle, {values.node, i}};
        (void)tf_node(g, "AssignVariableOp", pair, 2);
        tf_attr_type(g, "dtype", types[i]);
    }
    s->restore = tf_node(g, "NoOp", NULL, 0).node;
    for (int i = 0; i < count; i++) tf_control(g, first + i);
}

static void write_init(struct model_saving *s)
{
    s->init = tf_node(&s->graph, "NoOp", NULL, 0).node;
    for (int i = 0; i < s->graph.init_count; i++) tf_control(&s->graph, s->graph.inits[i]);
}

/* ---- inputs ---- */

static void add_input(struct model_saving *s, int signature, const char *name, enum tf_type type,
                      const struct shape *shape, struct tf_tensor at)
{
    s->inputs[signature][s->input_count[signature]++] =
        (struct named_tensor){.name = name, .at = at, .type = type, .shape = *shape};
}

/* The client gives numbers as stored, before scaling; or ids, as of text. */
static struct tf_tensor write_features(struct model_saving *s, const struct program_value *v)
{
    struct tf_graph *g = &s->graph;
    const enum tf_type type = v->is_ids ? TF_INT64 : TF_FLOAT;
    struct shape shape = v->shape;
    shape.dim[0] = -1;
    const struct tf_tensor x = tf_placeholder(g, type, &shape);
    add_input(s, 0, v->name, type, &shape, x);
    const double scale = s->cells->data->scale, offset = s->cells->data->offset;
    if (v->is_ids || (scale == 1 && offset == 0)) return x;
    struct tf_tensor y = tf_cast(g, TF_FLOAT, TF_DOUBLE, x);
    y = tf_two(g, "Mul", TF_DOUBLE, y, tf_double(g, scale));
    y = tf_two(g, "AddV2", TF_DOUBLE, y, tf_double(g, offset));
    return tf_cast(g, TF_DOUBLE, TF_FLOAT, y);
}

/* Adds the inputs of a signature: one per cell, or serialized Examples. ret: [cells] */
static void write_given(struct model_saving *s, int signature, struct tf_tensor *ret)
{
    struct tf_graph *g = &s->graph;
    const struct shape rows = {1, {-1}};
    if (signature) {
        const struct tf_tensor serialized = tf_placeholder(g, TF_STRING, &rows);
        add_input(s, signature, "examples", TF_STRING, &rows, serialized);
        tf_parse_examples(&s->given, g, serialized, ret);
        return;
    }
    for (int i = 0; i < s->cells->count; i++) {
        const struct shape *pixels = &s->cells->pixels[i];
        const struct shape shape =
            pixels->rank ? (struct shape){4, {-1, pixels->dim[0], pixels->dim[1], pixels->dim[2]}}
                         : (struct shape){1 + s->given.given.is_list[i], {-1, -1}};
        ret[i] = tf_placeholder(g, s->given.types[i], &shape);
        add_input(s, 0, s->cells->names[i], s->given.types[i], &shape, ret[i]);
    }
}

/* ---- the program ---- */

static struct tf_tensor write_input(struct model_saving *s, const struct program_value *v,
                                    const struct tf_tensor *given)
{
    struct tf_graph *g = &s->graph;
    int64_t dims[RANK_MAX];
    if (!s->cells->columns->count) return write_features(s, v);
    const int column = cells_column_named(s->cells, v->name);
    const struct tf_tensor x = (v->is_weights ? tf_write_weights : tf_write_column)(
        &s->given, g, column, given, shape_count(&v->shape));
    for (int i = 0; i < v->shape.rank; i++) dims[i] = i ? v->shape.dim[i] : -1;
    return tf_reshape(g, v->is_ids ? TF_INT64 : TF_FLOAT, x, dims, v->shape.rank);
}

static struct tf_tensor read_variable(struct model_saving *s, int variable)
{
    const struct saved_variable *v = &s->variables[variable];
    const struct tf_tensor x = tf_node(&s->graph, "ReadVariableOp", &v->handle, 1);
    tf_attr_type(&s->graph, "dtype", type_of(v->content));
    return x;
}

/* Each signature reads a variable by its own node; lookups take the handle and read only rows. */
static struct tf_tensor read_constant(struct model_saving *s, int value)
{
    const int variable = s->variable_of[value];
    if (variable < 0) return s->constants[value];
    return s->program->values[value].is_looked_up ? s->variables[variable].handle
                                                  : read_variable(s, variable);
}

static struct tf_tensor write_value(struct model_saving *s, int value, const struct tf_tensor *at)
{
    const struct program_value *v = &s->program->values[value];
    struct tf_tensor in[INPUTS_MAX];
    for (int k = 0; k < v->input_count; k++) in[k] = at[v->inputs[k]];
    if (v->primitive == PRIMITIVE_GATHER && s->program->values[v->inputs[0]].grows) {
        const int rows = s->variable_of[v->inputs[0]];
        in[2] = read_variable(s, rows + CONTENT_KEYS);
        in[3] = read_variable(s, rows + CONTENT_PLACES);
    }
    return tf_write_value(&s->graph, s->program, value, in);
}

static void write_signature(struct model_saving *s, int signature)
{
    const struct program *p = s->program;
    struct tf_tensor given[CELLS_MAX];
    struct tf_tensor *at = arena_array(p->arena, (size_t)p->count, sizeof *at);
    if (s->cells->columns->count) write_given(s, signature, given);
    for (int i = 0; i < p->count; i++) {
        const struct program_value *v = &p->values[i];
        if (!v->uses) continue;
        at[i] = v->primitive == PRIMITIVE_CONSTANT ? read_constant(s, i)
                : v->primitive == PRIMITIVE_INPUT  ? write_input(s, v, given)
                                                   : write_value(s, i, at);
    }
    for (int i = 0; i < p->output_count; i++) {
        const struct said_value *said = &p->outputs[i];
        struct named_tensor *out = &s->outputs[signature][i];
        *out = (struct named_tensor){said->name, at[said->value], TF_FLOAT,
                                     p->values[said->value].shape};
        out->shape.dim[0] = -1;
    }
}

/* ---- the message ---- */

static void put_tensors(struct buffer *b, int field, const struct named_tensor *tensors, int count)
{
    char name[TF_NAME_MAX];
    for (int i = 0; i < count; i++) {
        const size_t entry = proto_open(b, field);
        proto_string(b, MAP_KEY, tensors[i].name);
        const size_t info = proto_open(b, MAP_VALUE);
        proto_string(b, INFO_NAME, tf_name(tensors[i].at, name));
        proto_varint(b, INFO_TYPE, (uint64_t)tensors[i].type);
        tf_put_shape(b, INFO_SHAPE, &tensors[i].shape);
        proto_close(b, info);
        proto_close(b, entry);
    }
}

static void put_signature(struct buffer *b, const struct model_saving *s, int signature)
{
    const size_t entry = proto_open(b, META_SIGNATURE);
    proto_string(b, MAP_KEY, signature ? "parse_example" : "serving_default");
    const size_t message = proto_open(b, MAP_VALUE);
    put_tensors(b, SIGNATURE_INPUT, s->inputs[signature], s->input_count[signature]);
    put_tensors(b, SIGNATURE_OUTPUT, s->outputs[signature], s->program->output_count);
    proto_string(b, SIGNATURE_METHOD, "tensorflow/serving/predict");
    proto_close(b, message);
    proto_close(b, entry);
}

static void put_saver(struct buffer *b, const struct model_saving *s)
{
    char name[TF_NAME_MAX];
    if (s->restore < 0) return;
    const size_t saver = proto_open(b, META_SAVER);
    proto_string(b, SAVER_FILE, tf_name(s->file, name));
    proto_string(b, SAVER_SAVE, tf_name(s->file, name));
    snprintf(name, sizeof name, "n%d", s->restore);
    proto_string(b, SAVER_RESTORE, name);
    proto_varint(b, SAVER_VERSION, SAVER_V2);
    proto_close(b, saver);
}

/* The op to run after variables are restored */
static void put_init(struct buffer *b, const struct model_saving *s)
{
    char name[TF_NAME_MAX];
    const size_t entry = proto_open(b, META_COLLECTION);
    proto_string(b, MAP_KEY, "saved_model_main_op");
    const size_t value = proto_open(b, MAP_VALUE), nodes = proto_open(b, COLLECTION_NODES);
    snprintf(name, sizeof name, "n%d", s->init);
    proto_string(b, NODES_VALUE, name);
    proto_close(b, nodes);
    proto_close(b, value);
    proto_close(b, entry);
}

static void put_all(struct buffer *b, const struct model_saving *s)
{
    proto_varint(b, SAVED_VERSION, 1);
    const size_t meta = proto_open(b, SAVED_GRAPH), info = proto_open(b, META_INFO);
    proto_string(b, INFO_TAG, "serve");
    proto_string(b, INFO_TENSORFLOW, "1.15.0");
    proto_close(b, info);
    proto_bytes(b, META_GRAPH, s->graph.bytes.at, s->graph.bytes.used);
    put_saver(b, s);
    put_init(b, s);
    for (int i = 0; i < 2; i++)
        if (s->input_count[i]) put_signature(b, s, i);
    proto_close(b, meta);
}

/* ---- files ---- */

static struct bundle_piece piece_of(const struct model_saving *s, const struct saved_variable *v)
{
    const struct shape *shape = &s->program->values[v->value].shape;
    const bool is_rows = v->content == CONTENT_ROWS;
    struct bundle_piece piece = {.name = v->name,
                                 .dtype = is_rows ? BUNDLE_FLOAT : BUNDLE_INT64,
                                 .shape = {.rank = is_rows ? shape->rank : 1}};
    for (int i = 0; i < piece.shape.rank; i++) piece.shape.dim[i] = shape->dim[i];
    return piece;
}

/* Copies rows in stored order, or collects their keys. */
struct copying {
    struct bundle_writer *writer;
    int64_t width, taken;
    struct row_key *keys;
};

static err copy_rows(void *context, const int64_t *ids, int64_t count, const float *rows)
{
    struct copying *c = context;
    (void)ids;
    return bundle_append(c->writer, 0, rows, (size_t)(count * c->width) * sizeof *rows);
}

static err take_keys(void *context, const int64_t *ids, int64_t count, const float *rows)
{
    struct copying *c = context;
    (void)rows;
    for (int64_t i = 0; i < count; i++, c->taken++)
        c->keys[c->taken] = (struct row_key){ids[i], c->taken};
    return OK;
}

/* In stored order: shard after shard, as lookups expect. */
static err write_rows(const struct bundle_piece *piece, const struct stored_table *table,
                      struct bundle_writer *writer)
{
    struct copying c = {.writer = writer, .width = table->width};
    TRY(bundle_begin(writer, piece, 1));
    TRY(stored_table_read(table, &(struct stored_rows_taker){&c, copy_rows}));
    return bundle_end(writer);
}

static err write_keys(const struct bundle_piece *piece, enum variable_content content,
                      const struct stored_table *table, struct bundle_writer *writer)
{
    struct copying c = {.keys = malloc((size_t)table->rows * sizeof *c.keys)};
    if (!c.keys) return fail(ERR_MEMORY, "no memory for the keys of %s", table->name);
    err e = stored_table_read(table, &(struct stored_rows_taker){&c, take_keys});
    if (!e) program_sort_keys(c.keys, c.taken);
    if (!e) e = bundle_begin(writer, piece, 1);
    for (int64_t i = 0; i < table->rows && !e; i++) {
        const struct row_key *key = &c.keys[i];
        e = bundle_append(writer, 0, content == CONTENT_KEYS ? &key->id : &key->place,
                          sizeof key->id);
    }
    free(c.keys);
    return e ? e : bundle_end(writer);
}

static err write_variable(const struct model_saving *s, const struct saved_variable *v,
                          struct bundle_writer *writer)
{
    const struct program_value *value = &s->program->values[v->value];
    const struct bundle_piece piece = piece_of(s, v);
    struct stored_table table;
    if (value->data) return bundle_add(writer, &piece, value->data);
    TRY(program_find_table(s->program, value->name, &table));
    return v->content == CONTENT_ROWS ? write_rows(&piece, &table, writer)
                                      : write_keys(&piece, v->content, &table, writer);
}

static err write_values(const struct model_saving *s, struct bundle_writer *writer)
{
    for (int i = 0; i < s->variable_count; i++) TRY(write_variable(s, &s->variables[i], writer));
    return OK;
}

static err make_folder(const char *path)
{
    if (path_is_url(path)) return OK;
    if (mkdir(path, 0777) && errno != EEXIST) return fail(ERR_IO, "%s: %s", path, strerror(errno));
    return OK;
}

static err path_in(const struct model_saving *s, const char *name, char ret[PATH_MAX_HERE])
{
    const int length = snprintf(ret, PATH_MAX_HERE, "%s%s", s->temporary, name);
    return length < PATH_MAX_HERE ? OK : fail(ERR_INPUT, "--out: too long a path");
}

static err write_variables(const struct model_saving *s)
{
    char path[PATH_MAX_HERE];
    struct bundle_writer *writer;
    TRY(path_in(s, "/variables", path));
    TRY(make_folder(path));
    if (s->restore < 0) return OK;
    TRY(path_in(s, "/variables/variables", path));
    TRY(bundle_create(path, &writer));
    const err e = write_values(s, writer);
    if (e) bundle_abandon(writer);
    return e ? e : bundle_finish(writer);
}

static err write_message(const struct model_saving *s)
{
    char path[PATH_MAX_HERE];
    struct buffer b = {0};
    TRY(path_in(s, "/saved_model.pb", path));
    put_all(&b, s);
    err e =
        b.is_short || s->graph.bytes.is_short ? fail(ERR_MEMORY, "no memory for the graph") : OK;
    if (!e && b.used > INT32_MAX)
        e = fail(ERR_INPUT,
                 "the graph takes %zu bytes, TensorFlow reads 2 GB: vocabularies are in "
                 "it",
                 b.used);
    if (!e) e = file_replace(path, b.at, b.used);
    buffer_drop(&b);
    return e;
}

/* The graph is what makes a folder a model; behind a URL it is written last. */
static void remove_partial(const struct model_saving *s)
{
    static const char *const files[] = {"/saved_model.pb", "/variables/variables.index",
                                        "/variables/variables.data-00000-of-00001"};
    char path[PATH_MAX_HERE];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (!path_in(s, files[i], path)) (void)bundle_unlink(path);
    if (path_is_url(s->temporary)) return;
    if (!path_in(s, "/variables", path)) rmdir(path);
    rmdir(s->temporary);
}

static err find_version(const struct model_saving *s, bool *ret_is_there)
{
    char path[PATH_MAX_HERE];
    struct file_state unused;
    struct stat there;
    *ret_is_there = false;
    if (!path_is_url(s->folder)) {
        *ret_is_there = !stat(s->folder, &there);
        return OK;
    }
    TRY(path_in(s, "/saved_model.pb", path));
    return file_find(path, ret_is_there, &unused);
}

/* Behind a URL folders cannot be renamed, so files go to the final one. */
static err name_folders(struct model_saving *s, const char *out, int64_t version)
{
    bool is_there;
    const int length = snprintf(s->temporary, PATH_MAX_HERE, "%s/.%" PRId64 ".partial-%ld", out,
                                version, (long)getpid());
    if (length >= PATH_MAX_HERE) return fail(ERR_INPUT, "--out: too long a path");
    snprintf(s->folder, PATH_MAX_HERE, "%s/%" PRId64, out, version);
    if (path_is_url(s->folder)) memcpy(s->temporary, s->folder, sizeof s->folder);
    TRY(find_version(s, &is_there));
    if (is_there)
        return fail(ERR_INPUT,
                    "%s: this version is there already: remove it, or name another "
                    "folder",
                    s->folder);
    return make_folder(s->temporary);
}

static err publish(const struct model_saving *s)
{
    if (path_is_url(s->folder)) return OK;
    if (rename(s->temporary, s->folder)) return fail(ERR_IO, "%s: %s", s->folder, strerror(errno));
    return OK;
}

/* Keeps the error of writing even if removing the partial folder fails. */
static err fail_partial(const struct model_saving *s, err e)
{
    char text[ERROR_TEXT_MAX];
    snprintf(text, sizeof text, "%s", error_text());
    remove_partial(s);
    return fail(e, "%s", text);
}

static err write_files(struct model_saving *s, const char *out, int64_t version)
{
    TRY(name_folders(s, out, version));
    err e = write_variables(s);
    if (!e) e = write_message(s);
    if (!e) e = publish(s);
    return e ? fail_partial(s, e) : file_sync_folder(s->folder);
}

/* ---- all of it ---- */

static err check_program(const struct program *p)
{
    for (int i = 0; i < p->count; i++)
        if (p->values[i].uses && p->values[i].groups > GROUPS_MAX)
            return fail(ERR_INPUT, "a convolution of more than %d groups cannot be exported",
                        GROUPS_MAX);
    return OK;
}

static err write_graph(struct model_saving *s)
{
    const struct program *p = s->program;
    TRY(check_program(p));
    s->constants = arena_array(p->arena, (size_t)p->count, sizeof *s->constants);
    s->variable_of = arena_array(p->arena, (size_t)p->count, sizeof *s->variable_of);
    s->variables = arena_array(p->arena, 3 * (size_t)p->count, sizeof *s->variables);
    s->restore = -1;
    for (int i = 0; i < p->count; i++) s->variable_of[i] = -1;
    for (int i = 0; i < p->count; i++)
        if (p->values[i].uses && p->values[i].primitive == PRIMITIVE_CONSTANT) write_constant(s, i);
    write_restore(s);
    if (s->cells->columns->count) TRY(tf_cells_open(&s->given, &s->graph, s->cells));
    write_init(s);
    write_signature(s, 0);
    if (s->cells->columns->count) write_signature(s, 1);
    tf_finish(&s->graph);
    return OK;
}

err saved_model_write(const char *out, int64_t version, const struct program *p,
                      const struct cells *cells)
{
    struct model_saving *s = arena_new(p->arena, sizeof *s);
    s->program = p;
    s->cells = cells;
    err e = write_graph(s);
    if (!e) e = write_files(s, out, version);
    buffer_drop(&s->graph.bytes);
    return e;
}
