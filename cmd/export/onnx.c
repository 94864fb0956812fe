/* onnx.c - see onnx.h. */
#include "cmd/export/onnx.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmd/out_file.h"
#include "core/train/checkpoint/stored_table.h"

enum { PATH_MAX_HERE = 4096, BESIDE_FLOATS_MIN = 1 << 16 /* for constants that are no tables */ };

struct writing_onnx {
    const struct program *program;
    const struct cells *cells;
    const char *data_name; /* name of the file with the tables */
    struct onnx_graph graph;
    struct out_file model, data; /* data.file NULL: tables are inside */
    uint64_t offset;
    int64_t width;
    struct row_key *keys; /* of the current table, if it grows; [taken] so far */
    int64_t taken;
    struct onnx_keys *keys_of; /* [values] of the program */
};

/* ---- constants ---- */

static err take_rows(void *context, const int64_t *ids, int64_t count, const float *rows)
{
    struct writing_onnx *w = context;
    const size_t bytes = (size_t)(count * w->width) * sizeof *rows;
    for (int64_t i = 0; w->keys && i < count; i++, w->taken++)
        w->keys[w->taken] = (struct row_key){ids[i], w->taken};
    w->offset += bytes;
    if (!w->data.file)
        buffer_put(&w->graph.constants, rows, bytes);
    else if (fwrite(rows, 1, bytes, w->data.file) != bytes)
        return fail(ERR_IO, "%s: %s", w->data.path, strerror(errno));
    return OK;
}

/* Writes keys in ascending order, and the indices of their rows */
static void write_keys(struct writing_onnx *w, struct onnx_keys *ret)
{
    int64_t *each = arena_array(w->program->arena, (size_t)w->taken, sizeof *each);
    program_sort_keys(w->keys, w->taken);
    for (int64_t i = 0; i < w->taken; i++) each[i] = w->keys[i].id;
    const struct shape shape = {1, {w->taken}};
    ret->ids = onnx_constant(&w->graph, ONNX_INT64, &shape, each);
    for (int64_t i = 0; i < w->taken; i++) each[i] = w->keys[i].place;
    ret->places = onnx_constant(&w->graph, ONNX_INT64, &shape, each);
}

/* Rows in stored order: shard after shard, as lookups expect. */
static err write_table(struct writing_onnx *w, const struct program_value *v, int *ret)
{
    struct stored_table table;
    struct onnx_open open = {0};
    TRY(program_find_table(w->program, v->name, &table));
    w->taken = 0;
    w->keys = v->grows ? arena_array(w->program->arena, (size_t)table.rows, sizeof *w->keys) : NULL;
    w->width = table.width;
    if (w->data.file)
        *ret = onnx_constant_beside(&w->graph, &v->shape, w->data_name, w->offset);
    else
        open = onnx_constant_open(&w->graph, &v->shape);
    TRY(stored_table_read(&table, &(struct stored_rows_taker){w, take_rows}));
    if (w->data.file) return OK;
    onnx_constant_close(&w->graph, open);
    *ret = open.value;
    return OK;
}

/* ---- the graph ---- */

/* The client gives numbers as stored, before scaling; or ids, as of text. */
static int write_features(struct writing_onnx *w, const struct program_value *v)
{
    struct onnx_graph *g = &w->graph;
    const double scale = w->cells->data->scale, offset = w->cells->data->offset;
    const int x = onnx_input(g, v->name, v->is_ids ? ONNX_INT64 : ONNX_FLOAT, &v->shape);
    if (v->is_ids || (scale == 1 && offset == 0)) return x;
    const int scaled = onnx_two(g, "Mul", onnx_cast(g, ONNX_DOUBLE, x), onnx_double(g, scale));
    return onnx_cast(g, ONNX_FLOAT, onnx_two(g, "Add", scaled, onnx_double(g, offset)));
}

static int write_input(struct writing_onnx *w, const struct program_value *v)
{
    int64_t dims[RANK_MAX];
    if (!w->cells->columns->count) return write_features(w, v);
    if (v->is_weights)
        return onnx_input(&w->graph, arena_format(w->program->arena, "%s/weights", v->name),
                          ONNX_FLOAT, &v->shape);
    const int x = onnx_write_column(&w->graph, w->cells, cells_column_named(w->cells, v->name),
                                    shape_count(&v->shape));
    for (int i = 0; i < v->shape.rank; i++) dims[i] = i ? v->shape.dim[i] : -1;
    return onnx_reshape(&w->graph, x, dims, v->shape.rank);
}

/* A constant that is in memory */
static err write_constant(struct writing_onnx *w, const struct program_value *v, int *ret)
{
    const int64_t count = shape_count(&v->shape);
    if (!w->data.file || count < BESIDE_FLOATS_MIN) {
        *ret = onnx_constant(&w->graph, ONNX_FLOAT, &v->shape, v->data);
        return OK;
    }
    *ret = onnx_constant_beside(&w->graph, &v->shape, w->data_name, w->offset);
    w->offset += (uint64_t)count * sizeof *v->data;
    if (fwrite(v->data, sizeof *v->data, (size_t)count, w->data.file) != (size_t)count)
        return fail(ERR_IO, "%s: %s", w->data.path, strerror(errno));
    return OK;
}

static err write_value(struct writing_onnx *w, int value, int *at)
{
    const struct program_value *v = &w->program->values[value];
    int in[INPUTS_MAX];
    for (int k = 0; k < v->input_count; k++) in[k] = at[v->inputs[k]];
    if (v->primitive == PRIMITIVE_CONSTANT && !v->data) {
        TRY(write_table(w, v, &at[value]));
        if (v->grows) write_keys(w, &w->keys_of[value]);
        return OK;
    }
    if (v->primitive == PRIMITIVE_CONSTANT) return write_constant(w, v, &at[value]);
    if (v->primitive == PRIMITIVE_INPUT)
        at[value] = write_input(w, v);
    else
        at[value] = onnx_write_value(&w->graph, w->program, value, in,
                                     v->input_count ? &w->keys_of[v->inputs[0]] : NULL);
    return OK;
}

static err write_graph(struct writing_onnx *w)
{
    const struct program *p = w->program;
    int *at = arena_array(p->arena, (size_t)p->count, sizeof *at);
    w->keys_of = arena_array(p->arena, (size_t)p->count, sizeof *w->keys_of);
    for (int i = 0; i < p->count; i++)
        if (p->values[i].uses) TRY(write_value(w, i, at));
    for (int i = 0; i < p->output_count; i++) {
        const struct said_value *said = &p->outputs[i];
        onnx_output(&w->graph, said->name, at[said->value], &p->values[said->value].shape);
    }
    return OK;
}

/* ---- files ---- */

static err write_model(struct writing_onnx *w, const char *name)
{
    struct buffer b = {0};
    onnx_put_model(&w->graph, name, &b);
    err e = b.is_short ? fail(ERR_MEMORY, "no memory for the graph") : OK;
    if (!e && b.used > INT32_MAX)
        e = fail(ERR_INPUT, "%s: %zu bytes beside tables are more than ONNX takes", w->model.path,
                 b.used);
    if (!e && fwrite(b.at, 1, b.used, w->model.file) != b.used)
        e = fail(ERR_IO, "%s: %s", w->model.path, strerror(errno));
    buffer_drop(&b);
    return e;
}

static err open_files(struct writing_onnx *w, const char *out, const char *name, bool is_beside)
{
    char path[PATH_MAX_HERE];
    const int length = snprintf(path, sizeof path, "%s/%s.onnx.data", out, name);
    if (length >= PATH_MAX_HERE) return fail(ERR_INPUT, "--out: too long a path");
    w->data_name = arena_format(w->program->arena, "%s.onnx.data", name);
    if (is_beside) TRY(out_file_open(&w->data, path));
    path[length - (int)strlen(".data")] = '\0';
    return out_file_open(&w->model, path);
}

/* Removes the data file of an earlier export when the new model contains its tables */
static err remove_tables(const struct writing_onnx *w)
{
    return out_file_remove(arena_format(w->program->arena, "%s.data", w->model.path));
}

static err write_all(struct writing_onnx *w, const char *name)
{
    const bool are_beside = w->data.file != NULL;
    TRY(write_graph(w));
    TRY(write_model(w, name));
    if (are_beside) TRY(out_file_publish(&w->data));
    TRY(out_file_publish(&w->model));
    return are_beside ? OK : remove_tables(w);
}

err onnx_write(const char *out, const char *name, const struct program *p,
               const struct cells *cells, bool tables_beside)
{
    struct writing_onnx *w = arena_new(p->arena, sizeof *w);
    w->program = p;
    w->cells = cells;
    const bool is_large = p->constant_floats > ONNX_INSIDE_BYTES / (int64_t)sizeof(float);
    err e = open_files(w, out, name, tables_beside || is_large);
    if (!e) e = write_all(w, name);
    out_file_close(&w->data);
    out_file_close(&w->model);
    onnx_graph_drop(&w->graph);
    return e;
}
