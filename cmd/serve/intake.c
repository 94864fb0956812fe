/* intake.c - see intake.h. */
#include "cmd/serve/intake.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/export/given.h"
#include "cmd/serve/bytes_values.h"
#include "cmd/serve/not_numbers.h"
#include "core/data/columns/column.h"
#include "core/data/columns/decimal.h"
#include "core/data/formats/example.h"
#include "core/data/formats/json_cells.h"
#include "core/data/labels.h"
#include "core/data/storage.h"

enum { BAD_REQUEST = 400, TOO_LARGE = 413, NO_SERVICE = 503, TEXT_SHOWN = 64, DEPTH_MAX = 8 };
static const char examples_name[] = "examples"; /* name of the input of parse_example */

/* What a thread needs to read a request */
struct reading {
    struct reading *next;
    struct json_cells cells;
    struct columns *columns;
};

struct intake {
    struct arena arena;
    struct spec *spec;              /* borrowed */
    const struct objects *columns;  /* of the spec, including labels */
    struct row_reader reader;       /* how rows of cells are read */
    struct strings names;           /* of all cells that columns name */
    struct strings others;          /* cells that may be sent, but are ignored */
    struct strings feature_names;   /* of stored numbers */
    struct feature_scaling scaling; /* if the format scales what it reads */
    struct columns *all;            /* NULL: rows are stored numbers */
    struct column *made;            /* [count], descriptions only: `at` is NULL */
    int count;
    bool *is_read;         /* [count] */
    struct objects wanted; /* those of the columns that are read */
    int *place;            /* per column that these make, labels first: its index in made */
    int place_count;
    struct named_attributes attributes; /* of rows of cells */
    struct intake_input *inputs;
    int input_count;

    pthread_mutex_t lock; /* guards idle, the list of unused readings */
    struct reading *idle;
};

/* ---- cells ---- */

static void add_name(struct strings *list, const char *name)
{
    if (name && !strings_have(list, name)) list->at[list->count++] = name;
}

static const struct source_spec *source_of(const struct spec *spec)
{
    return spec->data.eval.format.kind ? &spec->data.eval : &spec->data.train;
}

static const void *attribute(const struct source_spec *source, const char *name,
                             enum field_type type)
{
    const struct format *format = source->format.kind->descriptor;
    return fields_find(&format->object, source->format.attributes, name, type);
}

static const struct column_spec *column_at(const struct objects *columns, int i)
{
    return (const struct column_spec *)columns->at + i;
}

static const struct strings *keys_of(const struct column_spec *spec)
{
    static const struct strings none;
    if (!cells_is(spec, "crossed")) return &none;
    return cells_attribute(spec, "keys");
}

static int column_named(const struct objects *columns, const char *name)
{
    for (int i = 0; i < columns->count; i++)
        if (strcmp(column_at(columns, i)->name, name) == 0) return i;
    return -1;
}

static int names_of(const struct objects *columns, struct strings *ret)
{
    int most = 0;
    for (int i = 0; i < columns->count; i++) {
        const struct column_spec *spec = column_at(columns, i);
        const struct strings *keys = keys_of(spec);
        if (ret) add_name(ret, column_optional_cell(spec, true));
        for (int k = 0; k < keys->count; k++)
            if (ret && column_named(columns, keys->at[k]) < 0) add_name(ret, keys->at[k]);
        most += 1 + keys->count;
    }
    return most;
}

/* Labels: rows of a file may be sent as they are, including these. */
static void find_others(struct intake *in)
{
    const struct source_spec *source = source_of(in->spec);
    const char *const *label = attribute(source, "label", FIELD_STRING);
    json_t *const *of_csv = attribute(source, "label", FIELD_JSON);
    const struct objects *labels = labels_listed(source);
    in->others.at = arena_array(&in->arena, (size_t)labels->count + 1, sizeof *in->others.at);
    if (label) add_name(&in->others, *label);
    if (of_csv) add_name(&in->others, json_string_value(*of_csv));
    for (int i = 0; i < labels->count; i++) {
        const struct label_spec *l = (const struct label_spec *)labels->at + i;
        add_name(&in->others, l->cell ? l->cell : l->name);
    }
}

static enum dtype label_type(const struct source_spec *source)
{
    const size_t offset = ((const struct format *)source->format.kind->descriptor)->label_form;
    if (!offset) return INT32;
    return label_dtype(
        (const struct label_form *)((const char *)source->format.attributes + offset));
}

static struct format_context context_of(const struct intake *in, const struct objects *columns)
{
    return (struct format_context){.directory = in->spec->directory,
                                   .seed = (uint64_t)in->spec->seed,
                                   .without_labels = true,
                                   .columns = columns};
}

static err describe_cells(struct intake *in)
{
    const struct source_spec *source = source_of(in->spec);
    const struct objects *columns = &in->spec->data.columns;
    in->columns = labels_beside(columns, source, &in->arena);
    in->names.at = arena_array(&in->arena, (size_t)names_of(columns, NULL), sizeof *in->names.at);
    names_of(columns, &in->names);
    find_others(in);
    in->attributes =
        (struct named_attributes){.names = in->names, .missing = cells_missing(source, &in->arena)};
    in->reader = (struct row_reader){.name = "instances",
                                     .numbered = "row",
                                     .cell_names = in->names.at,
                                     .cell_count = in->names.count,
                                     .label_cell = -1,
                                     .label_dtype = label_type(source)};
    const struct format_context context = context_of(in, in->columns);
    TRY(columns_new(&in->reader, &context, &in->all));
    const struct column *made = columns_made(in->all, &in->count);
    in->made = arena_array(&in->arena, (size_t)in->count, sizeof *in->made);
    memcpy(in->made, made, (size_t)in->count * sizeof *made);
    return OK;
}

/* ---- stored numbers ---- */

static struct column copy_column(struct intake *in, const struct column *from)
{
    struct column column = *from;
    column.name = arena_string(&in->arena, from->name);
    column.at = NULL;
    return column;
}

/* Reads the number and type of stored numbers from the files of data, which alone know them. */
static err describe_numbers(struct intake *in)
{
    const struct spec *spec = in->spec;
    const struct format_context context = {.directory = spec->directory,
                                           .seed = (uint64_t)spec->seed,
                                           .without_labels = true,
                                           .feature_names = spec->feature_names,
                                           .scaling = {spec->data.scale, spec->data.offset},
                                           .takes_other_features = spec->accepts_changed_features};
    struct batch_source *source;
    TRY(batch_source_open(source_of(spec), &context, &source));
    if (((const struct format *)source_of(spec)->format.kind->descriptor)->scales)
        in->scaling = context.scaling;
    in->scaling = feature_scaling_of(&(struct format_context){.scaling = in->scaling});
    find_others(in);
    in->count = source->column_count;
    in->made = arena_array(&in->arena, (size_t)in->count, sizeof *in->made);
    for (int i = 0; i < in->count; i++) in->made[i] = copy_column(in, &source->columns[i]);
    in->feature_names = (struct strings){
        arena_strings(&in->arena, source->feature_names.at, source->feature_names.count),
        source->feature_names.count};
    batch_source_close(source);
    return OK;
}

/* ---- life ---- */

err intake_open(struct spec *spec, struct intake **ret)
{
    struct intake *in = calloc(1, sizeof *in);
    if (!in) return fail(ERR_MEMORY, "no memory for rows of clients");
    in->spec = spec;
    pthread_mutex_init(&in->lock, NULL);
    const err e = spec->data.columns.count ? describe_cells(in) : describe_numbers(in);
    if (e)
        intake_close(in);
    else
        *ret = in;
    return e;
}

static void close_reading(struct reading *r)
{
    json_cells_close(&r->cells);
    columns_free(r->columns);
    free(r);
}

void intake_close(struct intake *in)
{
    if (!in) return;
    while (in->idle) {
        struct reading *r = in->idle;
        in->idle = r->next;
        close_reading(r);
    }
    columns_free(in->all);
    pthread_mutex_destroy(&in->lock);
    arena_free(&in->arena);
    free(in);
}

bool intake_takes_examples(const struct intake *in)
{
    return in->all;
}

struct asked_rows intake_asked(const struct intake *in, int64_t most)
{
    return (struct asked_rows){"instances", in->made, in->count, in->feature_names, most};
}

/* ---- columns that are read ---- */

/* Marks columns that are read, and those that a cross among them is made of. */
static void mark(const struct intake *in, bool *is_wanted)
{
    const struct objects *columns = &in->spec->data.columns;
    for (int i = columns->count - 1; i >= 0; i--) {
        const struct strings *keys = keys_of(column_at(columns, i));
        const int made = column_find(in->made, in->count, column_at(columns, i)->name);
        is_wanted[i] |= in->is_read[made];
        if (in->made[made].is_weighted) is_wanted[i] |= in->is_read[made + 1];
        for (int k = 0; is_wanted[i] && k < keys->count; k++) {
            const int column = column_named(columns, keys->at[k]);
            if (column >= 0) is_wanted[column] = true;
        }
    }
}

static void choose_columns(struct intake *in)
{
    const struct objects *columns = &in->spec->data.columns;
    bool *is_wanted = arena_array(&in->arena, (size_t)columns->count, sizeof *is_wanted);
    struct column_spec *wanted =
        arena_array(&in->arena, (size_t)columns->count + 1, sizeof *wanted);
    mark(in, is_wanted);
    in->place = arena_array(&in->arena, (size_t)in->count, sizeof *in->place);
    in->place[in->place_count++] = LABELS;
    for (int i = 0; i < columns->count; i++) {
        if (!is_wanted[i]) continue;
        const int made = column_find(in->made, in->count, column_at(columns, i)->name);
        wanted[in->wanted.count++] = *column_at(columns, i);
        in->place[in->place_count++] = made;
        if (in->made[made].is_weighted) in->place[in->place_count++] = made + 1;
    }
    in->wanted.at = wanted;
}

static err list_cells(struct intake *in)
{
    static const enum intake_type types[] = {
        [GIVEN_WHOLE] = INTAKE_INT64, [GIVEN_NUMBER] = INTAKE_DOUBLE, [GIVEN_TEXT] = INTAKE_STRING};
    struct cells *cells = arena_new(&in->arena, sizeof *cells);
    struct given_cells given;
    *cells = (struct cells){
        .data = &in->spec->data, .columns = &in->wanted, .reader = in->names, .arena = &in->arena};
    for (int i = 0; i < in->wanted.count; i++) cells->is_read[i] = true;
    TRY(cells_find(cells));
    given_find(cells, false, &given);
    in->inputs = arena_array(&in->arena, (size_t)cells->count, sizeof *in->inputs);
    for (int i = 0; i < cells->count; i++)
        in->inputs[in->input_count++] =
            (struct intake_input){cells->names[i], types[given.types[i]], {given.is_list[i], {-1}}};
    return OK;
}

static void list_numbers(struct intake *in)
{
    in->inputs = arena_array(&in->arena, (size_t)in->count, sizeof *in->inputs);
    for (int i = 0; i < in->count; i++)
        if (in->is_read[i])
            in->inputs[in->input_count++] = (struct intake_input){
                in->made[i].name, in->made[i].dtype == INT64 ? INTAKE_INT64 : INTAKE_FLOAT,
                in->made[i].shape};
}

static bool reads_features_alone(const struct intake *in)
{
    return in->input_count == 1 && strcmp(in->inputs[0].name, FEATURES_NAME) == 0;
}

err intake_choose(struct intake *in, const struct session *session)
{
    in->is_read = arena_array(&in->arena, (size_t)in->count, sizeof *in->is_read);
    for (int i = 0; i < in->count; i++) in->is_read[i] = session_reads_column(session, i);
    if (in->all) {
        choose_columns(in);
        return list_cells(in);
    }
    list_numbers(in);
    return reads_features_alone(in)
               ? OK
               : fail(ERR_INPUT,
                      "its rows are stored as several columns, which no client can send");
}

const struct intake_input *intake_inputs(const struct intake *in, int *ret_count)
{
    *ret_count = in->input_count;
    return in->inputs;
}

/* ---- the readings ---- */

static err open_reading(struct intake *in, struct reading **ret)
{
    struct reading *r = calloc(1, sizeof *r);
    const struct format_context context = context_of(in, &in->wanted),
                                of_cells = {.without_labels = true};
    if (!r) return fail(ERR_MEMORY, "no memory for rows of clients");
    err e = OK;
    if (in->all) e = named_cells_open(&r->cells.named, &in->attributes, &of_cells);
    if (in->all && !e) e = columns_new(&in->reader, &context, &r->columns);
    if (e)
        close_reading(r);
    else
        *ret = r;
    return e;
}

static err take_reading(struct intake *in, struct reading **ret)
{
    pthread_mutex_lock(&in->lock);
    *ret = in->idle;
    if (*ret) in->idle = (*ret)->next;
    pthread_mutex_unlock(&in->lock);
    return *ret ? OK : open_reading(in, ret);
}

static void give_reading(struct intake *in, struct reading *r)
{
    pthread_mutex_lock(&in->lock);
    r->next = in->idle;
    in->idle = r;
    pthread_mutex_unlock(&in->lock);
}

/* ---- the body ---- */

/* A list of a columnar request, and how far it has been read */
struct lane {
    const char *name;
    const json_t *list;
    const char *at;
    int place; /* index of the stored number */
};

struct request_body {
    const char *text; /* as sent by the client, or `changed` */
    char *changed;    /* with null instead of NaN; NULL: has none */
    json_t *json;
    struct json_value rows;    /* "instances", "examples"; json NULL: use */
    struct json_value columns; /* "inputs" */
    struct json_value common;  /* "context" */
    struct lane *lanes;        /* [lane_count] of columns */
    int lane_count;
    int64_t count;
    bool has_examples; /* each row is a serialized tf.Example */
};

/* Whether rows have a cell named b64: then {"b64": ...} in the list of rows is a row, not bytes. */
static bool has_cell_b64(const struct intake *in)
{
    static const char name[] = "b64";
    return strings_have(&in->names, name) || strings_have(&in->others, name) ||
           strings_have(&in->feature_names, name);
}

static void decode(const struct intake *in, enum intake_form form, struct request_body *b)
{
    json_t *row, *rows = json_object_get(b->json, form == FORM_EXAMPLES ? "examples" : "instances");
    size_t i;
    if (!strstr(b->text, "\"b64\"")) return;
    if (b->has_examples || !has_cell_b64(in)) {
        bytes_values_decode(b->json);
        return;
    }
    json_array_foreach(rows, i, row) bytes_values_decode(row);
    bytes_values_decode(json_object_get(b->json, "inputs"));
    bytes_values_decode(json_object_get(b->json, "context"));
}

static err choose_signature(const struct intake *in, enum intake_form form, struct request_body *b)
{
    const json_t *name = json_object_get(b->json, "signature_name");
    const char *text = json_string_value(name);
    if (name && !text)
        return fail(ERR_INPUT, "signature_name: expected a word, got %s", json_type_text(name));
    if (!name || !*text || strcmp(text, "serving_default") == 0) return OK;
    const bool has_others = intake_takes_examples(in) && form == FORM_PREDICT;
    b->has_examples = has_others && strcmp(text, "parse_example") == 0;
    if (b->has_examples) return OK;
    return fail(ERR_INPUT,
                "Serving signature name: \"%.64s\" not found in signature def: there %s "
                "\"serving_default\"%s",
                text, has_others ? "are" : "is only", has_others ? " and \"parse_example\"" : "");
}

static void load(struct request_body *b, size_t bytes, json_error_t *ret_error)
{
    b->json = json_cells_load(b->text, bytes, ret_error);
    if (!b->json) b->changed = not_numbers_as_null(b->text, bytes, &bytes);
    if (!b->changed) return;
    b->text = b->changed;
    b->json = json_cells_load(b->text, bytes, ret_error);
}

static err parse(const char *text, size_t bytes, struct request_body *b)
{
    json_error_t error;
    int brackets = 0;
    b->text = text;
    for (size_t i = 0; i < bytes; i++) brackets += text[i] == '[' || text[i] == '{';
    if (brackets > BRACKETS_MAX)
        return fail(ERR_INPUT, "the body has %d objects and lists: at most %d", brackets,
                    (int)BRACKETS_MAX);
    load(b, bytes, &error);
    if (!b->json)
        return fail(ERR_INPUT, "the body is no JSON: line %d, column %d: %s", error.line,
                    error.column, error.text);
    return json_is_object(b->json)
               ? OK
               : fail(ERR_INPUT, "the body: expected an object, got %s", json_type_text(b->json));
}

static void find_members(struct request_body *b, enum intake_form form)
{
    const char *name, *key = json_enter(b->text);
    json_t *json;
    json_object_foreach(b->json, name, json)
    {
        const struct json_value value = {json, json_skip_key(key)};
        if (strcmp(name, form == FORM_EXAMPLES ? "examples" : "instances") == 0) b->rows = value;
        if (form == FORM_PREDICT && strcmp(name, "inputs") == 0) b->columns = value;
        if (form == FORM_EXAMPLES && strcmp(name, "context") == 0) b->common = value;
        key = json_enter(json_skip(value.text));
    }
}

static err add_lane(struct request_body *b, const char *name, const struct json_value *value)
{
    const int64_t count = (int64_t)json_array_size(value->json);
    if (!json_is_array(value->json))
        return fail(ERR_INPUT, "inputs: \"%s\": expected a list with a value of each row, got %s",
                    name, json_type_text(value->json));
    if (b->lane_count > 0 && count != b->count)
        return fail(ERR_INPUT, "inputs: \"%s\" has %lld rows, \"%s\" %lld", name, (long long)count,
                    b->lanes[0].name, (long long)b->count);
    b->count = count;
    b->lanes[b->lane_count++] = (struct lane){name, value->json, json_enter(value->text), 0};
    return OK;
}

/* "inputs": an object of lists, or one list if there is a single input */
static err find_lanes(const struct intake *in, struct request_body *b)
{
    const bool is_object = json_is_object(b->columns.json);
    const char *name, *key = json_enter(b->columns.text);
    json_t *json;
    b->lanes = calloc(is_object ? json_object_size(b->columns.json) + 1 : 1, sizeof *b->lanes);
    if (!b->lanes) return fail(ERR_MEMORY, "no memory for the columns of a request");
    if (!is_object && in->input_count == 1) return add_lane(b, in->inputs[0].name, &b->columns);
    if (!is_object)
        return fail(ERR_INPUT, "inputs: expected an object with a list for each cell, got %s",
                    json_type_text(b->columns.json));
    json_object_foreach((json_t *)b->columns.json, name, json)
    {
        const struct json_value value = {json, json_skip_key(key)};
        TRY(add_lane(b, name, &value));
        key = json_enter(json_skip(value.text));
    }
    return OK;
}

/* Serialized Examples: {"examples": [...]}, or the list alone, become rows. */
static err find_examples(struct request_body *b)
{
    struct json_value list = b->columns;
    if (json_object_size(list.json) == 1 && json_object_get(list.json, examples_name)) {
        list.json = json_object_get(list.json, examples_name);
        list.text = json_skip_key(json_enter(list.text));
    }
    if (b->columns.json) b->rows = list;
    if (!json_is_array(b->rows.json))
        return fail(ERR_INPUT, "expected a list of serialized Examples, got %s",
                    json_type_text(b->rows.json));
    b->count = (int64_t)json_array_size(b->rows.json);
    return OK;
}

static size_t value_bytes(const struct json_value *v)
{
    return v->json ? (size_t)(json_skip(v->text) - v->text) : 0;
}

static err find_rows(const struct intake *in, enum intake_form form, struct request_body *b)
{
    const char *wanted = form == FORM_EXAMPLES ? "\"examples\"" : "\"instances\" or \"inputs\"";
    TRY(choose_signature(in, form, b));
    decode(in, form, b);
    find_members(b, form);
    if (!b->rows.json == !b->columns.json)
        return fail(ERR_INPUT, "the body: expected %s%s", wanted,
                    b->rows.json            ? ", not both"
                    : form == FORM_EXAMPLES ? ", got none"
                                            : ", got neither");
    if (b->common.json && !json_is_object(b->common.json))
        return fail(ERR_INPUT, "context: expected an object, got %s",
                    json_type_text(b->common.json));
    if (b->has_examples) return find_examples(b);
    if (b->columns.json) return find_lanes(in, b);
    if (!json_is_array(b->rows.json))
        return fail(ERR_INPUT, "%s: expected a list of rows, got %s", wanted,
                    json_type_text(b->rows.json));
    b->count = (int64_t)json_array_size(b->rows.json);
    const size_t context = b->common.json ? value_bytes(&b->common) : 0;
    if (b->count == 0 || context <= CONTEXT_READ_MAX / (size_t)b->count) return OK;
    return fail(ERR_INPUT, "context: %zu bytes for %lld rows: at most %d MB for all of them",
                context, (long long)b->count, CONTEXT_READ_MAX >> 20);
}

/* ERR_INPUT: a row repeats a name of the context. */
static err refuse_repeated(const struct request_body *b, const json_t *row)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)b->common.json, name, value)
    {
        if (json_object_get(row, name))
            return fail(ERR_INPUT, "\"%.64s\" is in the context, too", name);
    }
    return OK;
}

/* ---- rows of cells ---- */

/* Whether a string contains a zero byte, which only {"b64": "..."} can bring. */
static bool has_zero(const json_t *value)
{
    const json_t *one;
    size_t i;
    json_array_foreach(value, i, one) if (has_zero(one)) return true;
    return json_is_string(value) && strlen(json_string_value(value)) != json_string_length(value);
}

/* Whether only image columns read the cell, so that it may have any bytes */
static bool is_of_bytes(const struct intake *in, const char *name)
{
    bool is_read = false;
    for (int i = 0; i < in->columns->count; i++) {
        const struct column_spec *spec = column_at(in->columns, i);
        const char *cell = column_optional_cell(spec, true);
        if (!cell || strcmp(cell, name)) continue;
        if (!cells_is(spec, "image")) return false;
        is_read = true;
    }
    return is_read;
}

static err put(const struct intake *in, struct json_cells *cells, const char *name,
               const struct json_value *value)
{
    bool is_wanted;
    if (has_zero(value->json) && !is_of_bytes(in, name))
        return fail(ERR_INPUT, "\"%.64s\": a zero byte, which no word has", name);
    const err e = json_cells_put(cells, name, value, &is_wanted);
    if (e) return bytes_values_fault(name, value->json, e);
    if (is_wanted || strings_have(&in->others, name)) return OK;
    return fail(ERR_INPUT, "\"%.64s\": no column reads a cell of this name%s", name,
                suggest(name, in->names.at, in->names.count).text);
}

static err put_object(const struct intake *in, struct json_cells *cells,
                      const struct json_value *object)
{
    const char *name, *key = json_enter(object->text);
    json_t *json;
    json_object_foreach((json_t *)object->json, name, json)
    {
        const struct json_value value = {json, json_skip_key(key)};
        TRY(put(in, cells, name, &value));
        key = json_enter(json_skip(value.text));
    }
    return OK;
}

static err put_row(const struct intake *in, struct json_cells *cells, const struct request_body *b,
                   const struct json_value *row)
{
    TRY(refuse_repeated(b, row->json));
    TRY(json_cells_clear(cells, value_bytes(row) + value_bytes(&b->common)));
    if (b->common.json) TRY(put_object(in, cells, &b->common));
    const err e = json_is_object(row->json) ? put_object(in, cells, row) : OK;
    if (e) return has_cell_b64(in) ? e : bytes_values_fault(NULL, row->json, e);
    if (json_is_object(row->json)) return OK;
    if (in->input_count == 1 && !b->common.json) return put(in, cells, in->inputs[0].name, row);
    return fail(ERR_INPUT, "expected an object of cells, got %s", json_type_text(row->json));
}

/* Puts one value of each lane. */
static err put_lanes(const struct intake *in, struct json_cells *cells, struct request_body *b,
                     int64_t row)
{
    size_t bytes = 0;
    for (int i = 0; i < b->lane_count; i++) {
        const struct json_value value = {json_array_get(b->lanes[i].list, (size_t)row),
                                         b->lanes[i].at};
        bytes += value_bytes(&value);
    }
    TRY(json_cells_clear(cells, bytes));
    for (int i = 0; i < b->lane_count; i++) {
        struct lane *lane = &b->lanes[i];
        const struct json_value value = {json_array_get(lane->list, (size_t)row), lane->at};
        TRY(put(in, cells, lane->name, &value));
        lane->at = json_enter(json_skip(lane->at));
    }
    return OK;
}

/* Features that no column reads are ignored, as in TensorFlow. */
static err put_example(struct json_cells *cells, const json_t *row)
{
    const json_t *only = json_object_size(row) == 1 ? json_object_get(row, examples_name) : NULL;
    const json_t *value = only ? only : row;
    const uint8_t *bytes = (const uint8_t *)json_string_value(value);
    if (!bytes)
        return bytes_values_fault(
            NULL, value,
            fail(ERR_INPUT, "expected a serialized tf.Example, {\"b64\": \"...\"}, got %s",
                 json_type_text(value)));
    return example_read(&cells->named, (struct view){bytes, bytes + json_string_length(value)});
}

static err read_cells(struct intake *in, struct reading *r, struct request_body *b,
                      const struct taken_rows *to)
{
    void **places = calloc((size_t)in->place_count, sizeof *places);
    struct json_value row = {.text = b->rows.json ? json_enter(b->rows.text) : NULL};
    int32_t *labels = calloc((size_t)b->count, sizeof *labels);
    err e = places && labels ? OK : fail(ERR_MEMORY, "no memory for the rows of a request");
    for (int i = 0; !e && i < in->place_count; i++)
        places[i] = i == LABELS ? labels : (void *)to->columns[in->place[i]].at;
    for (int64_t i = 0; !e && i < b->count; i++) {
        if (b->rows.json) {
            row.json = json_array_get(b->rows.json, (size_t)i);
            e = b->has_examples ? put_example(&r->cells, row.json)
                                : put_row(in, &r->cells, b, &row);
            row.text = json_enter(json_skip(row.text));
        } else {
            e = put_lanes(in, &r->cells, b, i);
        }
        if (e) e = fail_prefix(e, "instances: row %lld", (long long)i + 1);
        const struct row cells = {.cells = r->cells.named.cells, .number = i + 1};
        if (!e) e = columns_make(r->columns, &in->reader, &cells, places, i);
    }
    free(labels);
    free(places);
    return e;
}

/* ---- rows of numbers ---- */

struct filling {
    const struct intake *in;
    const struct column *column;
    char *to;
    int64_t width, at, filled;
};

static err store_whole(struct filling *f, const char *text, size_t length)
{
    const bool is_byte = f->column->dtype == UINT8;
    const int64_t below = is_byte ? UINT8_MAX + 1 : f->column->buckets;
    bool is_negative;
    uint64_t size;
    if (!decimal_whole(text, length, &is_negative, &size) || (is_negative && size > 0) ||
        size >= (uint64_t)below)
        return fail(ERR_INPUT, "expected a whole number from 0 to %lld, as in the data, got %.*s",
                    (long long)below - 1, (int)(length < TEXT_SHOWN ? length : TEXT_SHOWN), text);
    if (is_byte)
        ((uint8_t *)f->to)[f->at] = (uint8_t)size;
    else
        ((int64_t *)(void *)f->to)[f->at] = (int64_t)size;
    return OK;
}

/* Stores bytes of the data's own type, one number per byte. */
static err store_bytes(struct filling *f, const json_t *bytes)
{
    const int64_t count = (int64_t)json_string_length(bytes);
    const int64_t room = f->at < f->width ? f->width - f->at : 0;
    const int64_t taken = count < room ? count : room;
    memcpy(f->to + f->at, json_string_value(bytes), (size_t)taken);
    f->filled += count;
    f->at += taken;
    return OK;
}

/* {"b64": "..."} has become a string by now. */
static bool is_bytes(const struct json_value *value)
{
    return json_is_string(value->json) && *json_skip_blanks(value->text) == '{';
}

static err store(struct filling *f, const struct json_value *value)
{
    const struct feature_scaling *scaling = &f->in->scaling;
    const size_t length = strcspn(value->text, ",]} \t\r\n");
    if (f->column->dtype == UINT8 && is_bytes(value)) return store_bytes(f, value->json);
    f->filled++;
    if (f->at >= f->width) return OK; /* reported when all are counted */
    if (!json_is_number(value->json))
        return bytes_values_fault(
            NULL, value->json,
            fail(ERR_INPUT, "expected a number, got %s", json_type_text(value->json)));
    if (f->column->dtype != FLOAT32) {
        TRY(store_whole(f, value->text, length));
    } else {
        const double number = json_number_value(value->json);
        const float stored = (float)(scaling->scale * number + scaling->offset);
        if (!isfinite(stored))
            return fail(ERR_INPUT, "%.*s is too large a number",
                        (int)(length < TEXT_SHOWN ? length : TEXT_SHOWN), value->text);
        ((float *)(void *)f->to)[f->at] = stored;
    }
    f->at++;
    return OK;
}

/* A number, or lists of lists of them */
static err fill(struct filling *f, const struct json_value *value, int depth)
{
    if (!json_is_array(value->json)) return store(f, value);
    if (depth == DEPTH_MAX) return fail(ERR_INPUT, "lists in more than %d lists", (int)DEPTH_MAX);
    struct json_value one = {.text = json_enter(value->text)};
    for (size_t i = 0; i < json_array_size(value->json); i++) {
        one.json = json_array_get(value->json, i);
        TRY(fill(f, &one, depth + 1));
        one.text = json_enter(json_skip(one.text));
    }
    return OK;
}

static err check_filled(const struct filling *f)
{
    if (f->filled == f->width) return OK;
    return fail(ERR_INPUT, "\"%s\": expected %lld number%s, got %lld", FEATURES_NAME,
                (long long)f->width, f->width == 1 ? "" : "s", (long long)f->filled);
}

static bool has_names(const struct intake *in, const struct filling *f)
{
    return in->feature_names.count > 0 && in->feature_names.count == f->width;
}

/* The index of a named number, searched from `from` on, where it most likely is; -1: unknown */
static int place_of(const struct intake *in, const char *name, int from)
{
    const int count = in->feature_names.count;
    for (int i = 0; i < count; i++)
        if (strcmp(in->feature_names.at[(from + i) % count], name) == 0) return (from + i) % count;
    return -1;
}

static err fill_named(struct filling *f, const char *name, int place,
                      const struct json_value *value)
{
    const int64_t before = f->filled;
    f->at = place;
    const err e = fill(f, value, 0);
    if (e) return fail_prefix(e, "\"%s\"", name);
    if (f->filled == before + 1) return OK;
    return fail(ERR_INPUT, "\"%s\": expected one number, got %lld", name,
                (long long)(f->filled - before));
}

static err refuse_name(const struct intake *in, const char *name)
{
    return fail(ERR_INPUT, "the data have no number \"%.64s\"%s", name,
                suggest(name, in->feature_names.at, in->feature_names.count).text);
}

/* {"features": [...]}, or numbers by their names in the file. Keys are unique, so none is missing
 * if their count is right. */
static err fill_object(const struct intake *in, struct filling *f, const struct json_value *row)
{
    const char *name, *key = json_enter(row->text);
    int place = -1;
    json_t *json;
    json_object_foreach((json_t *)row->json, name, json)
    {
        const struct json_value value = {json, json_skip_key(key)};
        key = json_enter(json_skip(value.text));
        if (strcmp(name, FEATURES_NAME) == 0 && f->filled == 0) {
            TRY(fill(f, &value, 0));
            TRY(check_filled(f));
        } else if (has_names(in, f)) {
            place = place_of(in, name, place + 1);
            if (place < 0 && strings_have(&in->others, name)) continue;
            if (place < 0) return refuse_name(in, name);
            TRY(fill_named(f, name, place, &value));
        } else {
            return fail(ERR_INPUT, "\"%.64s\": expected a list of %lld numbers, or {\"%s\": [...]}",
                        name, (long long)f->width, FEATURES_NAME);
        }
    }
    return OK;
}

static err fill_row(const struct intake *in, struct filling *f, const struct request_body *b,
                    const struct json_value *row)
{
    TRY(refuse_repeated(b, row->json));
    if (b->common.json) TRY(fill_object(in, f, &b->common));
    const err e = json_is_object(row->json) ? fill_object(in, f, row) : OK;
    if (e) return has_cell_b64(in) ? e : bytes_values_fault(NULL, row->json, e);
    if (json_is_object(row->json)) return check_filled(f);
    if (f->filled > 0)
        return fail(ERR_INPUT, "expected an object of numbers, as the context is one, got %s",
                    json_type_text(row->json));
    TRY(fill(f, row, 0));
    return check_filled(f);
}

/* Lanes are "features", or one list for each named number. */
static err place_lanes(const struct intake *in, struct request_body *b)
{
    for (int i = 0; i < b->lane_count; i++) {
        struct lane *lane = &b->lanes[i];
        if (strcmp(lane->name, FEATURES_NAME) == 0 && b->lane_count == 1)
            lane->place = -1;
        else if (in->feature_names.count == 0)
            return refuse_name(in, lane->name);
        else
            lane->place = place_of(in, lane->name, i % in->feature_names.count);
        if (lane->place < 0 && strcmp(lane->name, FEATURES_NAME))
            return refuse_name(in, lane->name);
    }
    return OK;
}

static err fill_lanes(struct filling *f, struct request_body *b, int64_t row)
{
    for (int i = 0; i < b->lane_count; i++) {
        struct lane *lane = &b->lanes[i];
        const struct json_value value = {json_array_get(lane->list, (size_t)row), lane->at};
        lane->at = json_enter(json_skip(lane->at));
        TRY(lane->place < 0 ? fill(f, &value, 0) : fill_named(f, lane->name, lane->place, &value));
    }
    return check_filled(f);
}

static err read_numbers(const struct intake *in, struct request_body *b,
                        const struct taken_rows *to)
{
    const struct column *column = &to->columns[column_find(in->made, in->count, FEATURES_NAME)];
    struct json_value row = {.text = b->rows.json ? json_enter(b->rows.text) : NULL};
    TRY(place_lanes(in, b));
    for (int64_t i = 0; i < b->count; i++) {
        struct filling f = {.in = in,
                            .column = column,
                            .to = (char *)column->at + column_row_bytes(column) * (size_t)i,
                            .width = column_width(column)};
        err e;
        if (b->rows.json) {
            row.json = json_array_get(b->rows.json, (size_t)i);
            e = fill_row(in, &f, b, &row);
            row.text = json_enter(json_skip(row.text));
        } else {
            e = fill_lanes(&f, b, i);
        }
        if (e) return fail_prefix(e, "instances: row %lld", (long long)i + 1);
    }
    return OK;
}

/* ---- a request ---- */

static bool is_made(const struct intake *in, int column)
{
    if (!in->all) return in->is_read[column];
    for (int i = LABELS + 1; i < in->place_count; i++)
        if (in->place[i] == column) return true;
    return false;
}

static err make_room(const struct intake *in, int64_t rows, struct taken_rows *ret)
{
    size_t bytes = 0, at = 0;
    *ret = (struct taken_rows){.rows = rows,
                               .columns = calloc((size_t)in->count, sizeof *ret->columns),
                               .column_count = in->count};
    if (!ret->columns) return fail(ERR_MEMORY, "no memory for the rows of a request");
    for (int i = 0; i < in->count; i++) {
        ret->columns[i] = in->made[i];
        if (is_made(in, i)) bytes += whole_lines(column_row_bytes(&in->made[i]) * (uint64_t)rows);
    }
    ret->memory = calloc(1, bytes + CACHE_LINE);
    if (!ret->memory) return fail(ERR_MEMORY, "no memory for %lld rows", (long long)rows);
    for (int i = 0; i < in->count; i++) {
        if (!is_made(in, i)) continue;
        ret->columns[i].at = (char *)ret->memory + at;
        at += whole_lines(column_row_bytes(&in->made[i]) * (uint64_t)rows);
    }
    return OK;
}

void taken_rows_free(struct taken_rows *t)
{
    free(t->columns);
    free(t->memory);
    *t = (struct taken_rows){0};
}

/* Limits the pixels to decode: a few bytes may be an image that takes seconds. Photographs have
 * about 8 pixels per byte, in ten passes. */
static int64_t pixels_for(size_t bytes)
{
    enum { LEAST = 1 << 22, OF_BYTE = 256 };
    return LEAST + OF_BYTE * (int64_t)bytes;
}

static err read_body(struct intake *in, struct request_body *b, size_t bytes,
                     struct taken_rows *ret)
{
    struct reading *reading;
    TRY(make_room(in, b->count, ret));
    ret->is_columnar = b->columns.json != NULL;
    if (!in->all) return read_numbers(in, b, ret);
    TRY(take_reading(in, &reading));
    columns_limit_pixels(reading->columns, pixels_for(bytes));
    const err e = read_cells(in, reading, b, ret);
    give_reading(in, reading);
    return e;
}

int intake_read(struct intake *in, enum intake_form form, const char *body, size_t bytes,
                int64_t rows_max, struct taken_rows *ret)
{
    struct request_body b = {0};
    bool is_too_much = false;
    *ret = (struct taken_rows){0};
    err e = parse(body, bytes, &b);
    if (!e) e = find_rows(in, form, &b);
    if (!e && b.count == 0) e = fail(ERR_INPUT, "the body: expected one row or more, got none");
    if (!e && b.count > rows_max) {
        is_too_much = true;
        e = fail(ERR_INPUT, "%lld rows: at most %lld (--max_rows)", (long long)b.count,
                 (long long)rows_max);
    }
    if (!e) e = read_body(in, &b, bytes, ret);
    if (e) taken_rows_free(ret);
    free(b.lanes);
    json_decref(b.json);
    free(b.changed);
    return !e ? 0 : is_too_much ? TOO_LARGE : e == ERR_INPUT ? BAD_REQUEST : NO_SERVICE;
}
