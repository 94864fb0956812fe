/* predict.c - `dtrain predict SPEC.json --checkpoint=CKPT --out=FILE`: a model's outputs for rows.
 *
 * Rows are those of the spec's evaluation data, or of another file in the same form (--data).
 * Labels are never read, and need not be there.
 */
#include <errno.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/checkpoint/npz.h"
#include "cmd/json_words.h"
#include "cmd/named_outputs.h"
#include "cmd/out_file.h"
#include "cmd/read_files.h"
#include "cmd/restored_model.h"
#include "core/base/files/file_system.h"
#include "core/base/files/pipe.h"
#include "core/base/number_text.h"
#include "core/base/standard_output.h"
#include "core/data/columns/column.h"
#include "core/data/columns/items.h"
#include "core/data/formats/label.h"
#include "core/data/parts.h"
#include "core/data/stats/beside.h"
#include "core/data/stats/label_words.h"
#include "core/train/checkpoint/bundle/bundle.h"

enum { WITH_MAX = 64 };
enum { OUTPUTS_MAX = HEADS_MAX + PREDICTED_NODES_MAX };
enum output_format { OUTPUT_AUTO, OUTPUT_CSV, OUTPUT_JSONL, OUTPUT_NPY };
static const char *const output_formats[] = {"auto", "csv", "jsonl", "npy", NULL};

struct predict_flags {
    struct restored_flags shared;
    const char *data, *out;
    struct strings with, outputs;
    int format; /* enum output_format */
};

static const struct field own_flags[] = {
    {.name = "data",
     .type = FIELD_STRING,
     .offset = offsetof(struct predict_flags, data),
     .fallback = "null",
     .help =
         "file with features, or a quoted pattern of several, in the format of data.eval (or of "
         "data.train if the spec has no data.eval); overrides the file named there"},
    {.name = "out",
     .type = FIELD_STRING,
     .offset = offsetof(struct predict_flags, out),
     .help = "write predictions to this file; -: standard output"},
    {.name = "with",
     .type = FIELD_STRINGS,
     .offset = offsetof(struct predict_flags, with),
     .fallback = "[]",
     .count_max = WITH_MAX,
     .help = "copy these cells of each row next to its prediction, as they are in the file: "
             "--with=id,day; may be repeated"},
    {.name = "outputs",
     .type = FIELD_STRINGS,
     .offset = offsetof(struct predict_flags, outputs),
     .fallback = "[]",
     .count_max = OUTPUTS_MAX,
     .help = "heads or nodes to write instead of all heads, by name, as in "
             "--outputs=user_vector,click; may be repeated. The unnamed head of a model with one "
             "head is called probabilities, probability or values"},
    {.name = "format",
     .type = FIELD_ENUM,
     .offset = offsetof(struct predict_flags, format),
     .fallback = "\"auto\"",
     .choices = output_formats,
     .help = "csv, one JSON object per line (jsonl), or the numbers alone as a matrix of float32 "
             "for numpy.load (npy); auto: by the file's ending .csv, .json, .jsonl or .npy, csv to "
             "standard output"},
    {0},
};

struct predict {
    struct predict_flags flags;
    enum output_format format;
    const char *spec_path;
    struct restored_model model;
    struct predicted_output {
        const char *name;            /* of the head or the node; NULL: the only head */
        const struct head *head;     /* NULL: a node */
        int index;                   /* of the head, or in nodes */
        const struct shape *node;    /* shape of what it says; of a head NULL */
        const struct strings *words; /* by class; none: classes are numbers */
        const char *before_class, *before_numbers, *behind; /* of JSON: ", \"class\": " */
    } outputs[OUTPUTS_MAX];
    int output_count;
    int nodes[PREDICTED_NODES_MAX]; /* of the graph, by index */
    int node_count;
    bool has_heads;
    struct strings titles;              /* of columns of csv, or of members of a row of JSON */
    int64_t first_row;                  /* of those that are not left out: what the source skips */
    struct rows_beside *beside;         /* NULL: nothing is */
    const char *before_cells[WITH_MAX]; /* of JSON: ", \"id\": " */
    char *cell;                         /* its text, for a moment */
    size_t cell_bytes;
    int64_t rows; /* written */
    struct out_file file;
    FILE *out; /* of it, or standard output */
};

static void print_predict_help(FILE *out)
{
    struct arena arena = {0};
    const struct object flags =
        restored_model_flags_with(own_flags, sizeof(struct predict_flags), &arena);
    fputs(
        "  dtrain predict --checkpoint=CKPT --out=FILE [FLAGS] SPEC.json\n\n"
        "Writes one row per row of data: its number in the file, from 0 (skipped rows count, too;\n"
        "messages count lines and rows from 1), and the model's prediction. With\n"
        "softmax_cross_entropy that is the class and the probabilities of all classes\n"
        "(probability_K is that of class K); with a binary loss the probability of each label,\n"
        "called probability if there is one label, and the class if there is one; otherwise the\n"
        "outputs. A model with several heads gives each under its name: click/probability in\n"
        "csv, {\"click\": {\"probability\": 0.5}} in JSON. Classes that are words are written as\n"
        "words. Labels are not read: idx and raw formats need only the features, a csv file may\n"
        "lack the label's column if the spec gives that by name, and files of named cells may\n"
        "lack those that only weights and metrics read.\n\n",
        out);
    flags_help(out, &flags);
    arena_free(&arena);
}

/* ---- rows ---- */

/* The output of a head for one row, and what its columns mean */
struct head_answer {
    const char *name;         /* NULL: of the only head */
    const struct shape *node; /* NULL: a head says it */
    enum prediction predicts;
    const struct strings *words; /* by class; none: classes are numbers */
    const float *row;            /* [columns] */
    int64_t columns;
};

static int64_t columns_of(const struct predicted_output *o)
{
    return shape_count_from(o->head ? &o->head->loss.logits->shape : o->node, 1);
}

/* Of any row */
static struct head_answer said_always(const struct predicted_output *o)
{
    return (struct head_answer){
        o->name,  o->node, o->head ? o->head->loss.loss->predicts : PREDICTS_NUMBER,
        o->words, NULL,    columns_of(o)};
}

static struct head_answer said_of(const struct predicted_output *o, const struct predictions *batch,
                                  int64_t row)
{
    const struct predicted *of = o->head ? &batch->heads[o->index] : &batch->nodes[o->index];
    struct head_answer said = said_always(o);
    said.row = of->at + row * of->columns;
    return said;
}

static bool has_class(const struct head_answer *s)
{
    return prediction_has_class(s->predicts, s->columns);
}

static int64_t class_of(const struct head_answer *s)
{
    return prediction_class(s->predicts, s->row, s->columns);
}

/* Its word, or its number where labels are numbers. */
static const char *name_of(const struct head_answer *s, int64_t class,
                           char number[NUMBER_TEXT_BYTES])
{
    if (class < s->words->count) return s->words->at[class];
    whole_text(class, number);
    return number;
}

/* Whether the output is a single probability, of class 1. */
static bool is_yes(const struct head_answer *s)
{
    return s->predicts != PREDICTS_CLASS && has_class(s) && s->words->count == 0;
}

/* Of a column: what it is the probability of; of yes, which is 1, where there is but one. */
static const char *column_name(const struct head_answer *s, int64_t column,
                               char number[NUMBER_TEXT_BYTES])
{
    const bool is_of_yes = s->predicts != PREDICTS_CLASS && has_class(s);
    return name_of(s, is_of_yes ? 1 : column, number);
}

/* ---- cells beside ---- */

enum { BESIDE_TEXT_MAX = 2 * ITEM_TEXT_MAX };

/* An id with a weight becomes "ID:WEIGHT", as exported models and servers read it. */
static const char *item_beside(const struct item *item, char buffer[BESIDE_TEXT_MAX],
                               size_t *ret_length)
{
    char id[ITEM_TEXT_MAX], weight[ITEM_TEXT_MAX];
    const struct item number = {.number = item->number};
    if (item->written) {
        *ret_length = item->written->length;
        return item->written->text;
    }
    if (!item->is_pair) return item_text(item, buffer, ret_length);
    item_text(item, id, ret_length);
    item_text(&number, weight, ret_length);
    *ret_length = (size_t)snprintf(buffer, BESIDE_TEXT_MAX, "%s:%s", id, weight);
    return buffer;
}

/* Values of a list are put together with blanks. */
static const char *beside_text(struct predict *p, int i)
{
    const struct cell *cell = beside_cell(p->beside, i);
    struct items items = {.cell = cell};
    struct item item;
    size_t used = 0, length;
    char buffer[BESIDE_TEXT_MAX];
    if (cell->text) return cell->text;
    while (items_next(&items, &item)) {
        const char *text = item_beside(&item, buffer, &length);
        const size_t wanted = used + length + 2;
        if (wanted > p->cell_bytes) {
            char *more = realloc(p->cell, 2 * wanted);
            if (!more) break;
            p->cell = more;
            p->cell_bytes = 2 * wanted;
        }
        if (used) p->cell[used++] = ' ';
        memcpy(p->cell + used, text, length);
        used += length;
    }
    if (!used) return "";
    p->cell[used] = '\0';
    return p->cell;
}

static err open_beside(struct predict *p)
{
    const struct spec *spec = &p->model.spec;
    const struct format_context context = {.directory = spec->directory,
                                           .seed = (uint64_t)spec->seed,
                                           .later_columns = &spec->data.columns,
                                           .without_labels = true};
    if (!p->flags.with.count) return OK;
    const err e = beside_open(&spec->data.eval, &context, &p->flags.with, &p->beside);
    return e ? fail_prefix(e, "--with") : OK;
}

/* ---- csv ---- */

static void write_cell(const struct predict *p, const char *text)
{
    const bool is_plain = !strpbrk(text, ",\"\r\n");
    if (is_plain) {
        fputs(text, p->out);
        return;
    }
    fputc('"', p->out);
    for (const char *at = text; *at; at++) {
        if (*at == '"') fputc('"', p->out);
        fputc(*at, p->out);
    }
    fputc('"', p->out);
}

static void add_title(struct predict *p, const char *title)
{
    p->titles.at[p->titles.count++] = title;
}

/* "class", or "click/class" */
static void add_title_of(struct predict *p, const struct head_answer *s, const char *what,
                         const char *of)
{
    const char *between = s->name && *what ? "/" : "";
    add_title(p, arena_format(&p->model.spec.arena, "%s%s%s%s", s->name ? s->name : "", between,
                              what, of));
}

/* A node's: "vector_0", "vector_1" */
static void add_node_titles(struct predict *p, const struct head_answer *s)
{
    char number[NUMBER_TEXT_BYTES];
    for (int64_t i = 0; i < s->columns; i++) {
        snprintf(number, sizeof number, "_%lld", (long long)i);
        add_title_of(p, s, "", s->columns > 1 ? number : "");
    }
}

static void add_titles(struct predict *p, const struct head_answer *s)
{
    char number[NUMBER_TEXT_BYTES];
    if (s->node) {
        add_node_titles(p, s);
        return;
    }
    const char *before = s->predicts == PREDICTS_NUMBER ? "value_" : "probability_";
    if (has_class(s)) add_title_of(p, s, "class", "");
    if (is_yes(s)) add_title_of(p, s, "probability", "");
    for (int64_t i = 0; i < s->columns && !is_yes(s); i++)
        add_title_of(p, s, before, column_name(s, i, number));
}

static void write_first_line(const struct predict *p)
{
    for (int i = 0; i < p->titles.count; i++) {
        if (i > 0) fputc(',', p->out);
        write_cell(p, p->titles.at[i]);
    }
    fputc('\n', p->out);
}

/* Nine digits restore a float exactly. */
static void write_said(const struct predict *p, const struct head_answer *s)
{
    char text[NUMBER_TEXT_BYTES];
    if (has_class(s)) {
        fputc(',', p->out);
        write_cell(p, name_of(s, class_of(s), text));
    }
    for (int64_t i = 0; i < s->columns; i++) {
        fputc(',', p->out);
        fwrite(text, 1, number_text(s->row[i], text), p->out);
    }
}

static void write_whole(const struct predict *p, int64_t number)
{
    char text[NUMBER_TEXT_BYTES];
    fwrite(text, 1, whole_text(number, text), p->out);
}

static void write_csv(struct predict *p, int64_t number, const struct predictions *batch,
                      int64_t row)
{
    write_whole(p, number);
    for (int i = 0; i < p->flags.with.count; i++) {
        fputc(',', p->out);
        write_cell(p, beside_text(p, i));
    }
    for (int i = 0; i < p->output_count; i++) {
        const struct head_answer said = said_of(&p->outputs[i], batch, row);
        write_said(p, &said);
    }
    fputc('\n', p->out);
}

/* ---- json ---- */

/* The next member of an object, or of a list at NULL */
static void write_member(FILE *out, bool is_first, const char *name)
{
    if (!is_first) fputs(", ", out);
    if (!name) return;
    json_write_text(out, name);
    fputs(": ", out);
}

/* By their words, or a list. */
static void write_json_numbers(FILE *out, const struct head_answer *s)
{
    char number[NUMBER_TEXT_BYTES];
    fputc(s->words->count ? '{' : '[', out);
    for (int64_t i = 0; i < s->columns; i++) {
        write_member(out, i == 0, s->words->count ? column_name(s, i, number) : NULL);
        json_write_number(out, s->row[i]);
    }
    fputc(s->words->count ? '}' : ']', out);
}

/* Lists in lists, as its shape says; a number where there is but one */
static void write_json_node(FILE *out, const struct head_answer *s, int axis, const float *at)
{
    if (s->columns == 1 || axis == s->node->rank) {
        json_write_number(out, *at);
        return;
    }
    const int64_t each = shape_count_from(s->node, axis + 1);
    fputc('[', out);
    for (int64_t i = 0; i < s->node->dim[axis]; i++) {
        write_member(out, i == 0, NULL);
        write_json_node(out, s, axis + 1, at + i * each);
    }
    fputc(']', out);
}

static void write_json_said(FILE *out, const struct predicted_output *o,
                            const struct head_answer *s)
{
    if (o->before_class) {
        fputs(o->before_class, out);
        json_write_class(out, s->words, class_of(s), false);
    }
    fputs(o->before_numbers, out);
    if (s->node)
        write_json_node(out, s, 1, s->row);
    else if (is_yes(s))
        json_write_number(out, s->row[0]);
    else
        write_json_numbers(out, s);
    fputs(o->behind, out);
}

static void write_json_beside(struct predict *p, int i)
{
    const struct cell *cell = beside_cell(p->beside, i);
    const bool is_id = !cell->text && cell->count == 1 && cell->ids && !cell->numbers;
    if (is_id)
        write_whole(p, cell->ids[0]);
    else if (cell->text || cell->count)
        json_write_text(p->out, beside_text(p, i));
    else
        fputs("null", p->out);
}

static void write_json(struct predict *p, int64_t number, const struct predictions *batch,
                       int64_t row)
{
    fputs("{\"row\": ", p->out);
    write_whole(p, number);
    for (int i = 0; i < p->flags.with.count; i++) {
        fputs(p->before_cells[i], p->out);
        write_json_beside(p, i);
    }
    for (int i = 0; i < p->output_count; i++) {
        const struct head_answer said = said_of(&p->outputs[i], batch, row);
        write_json_said(p->out, &p->outputs[i], &said);
    }
    fputs("}\n", p->out);
}

/* ", \"NAME\": ": what stands before a value of each row is made once. */
static err make_json_name(struct predict *p, const char *before, const char *name, const char **ret)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (out) fputs(before, out);
    if (out) write_member(out, true, name);
    if (!out || fclose(out)) {
        free(text);
        return fail(ERR_MEMORY, "no memory for names");
    }
    *ret = arena_string(&p->model.spec.arena, text);
    free(text);
    return OK;
}

static const char *json_numbers(const struct head_answer *s)
{
    if (is_yes(s)) return "probability";
    return s->predicts == PREDICTS_NUMBER ? "values" : "probabilities";
}

static void add_json_titles(struct predict *p, const struct head_answer *s)
{
    if (s->name) {
        add_title(p, s->name);
        return;
    }
    if (has_class(s)) add_title(p, "class");
    add_title(p, json_numbers(s));
}

/* Members of the row, or of an object that is called as the head. */
static err make_json_names_of(struct predict *p, struct predicted_output *o)
{
    const char *before = ", ", *name = o->name;
    const struct head_answer said = said_always(o);
    o->behind = "";
    if (o->node) return make_json_name(p, before, name, &o->before_numbers);
    if (name) {
        TRY(make_json_name(p, before, name, &before));
        before = arena_format(&p->model.spec.arena, "%s{", before);
        o->behind = "}";
    }
    if (has_class(&said)) TRY(make_json_name(p, before, "class", &o->before_class));
    return make_json_name(p, has_class(&said) ? ", " : before, json_numbers(&said),
                          &o->before_numbers);
}

static err make_json_names(struct predict *p)
{
    for (int i = 0; i < p->flags.with.count; i++)
        TRY(make_json_name(p, ", ", p->flags.with.at[i], &p->before_cells[i]));
    for (int i = 0; i < p->output_count; i++) TRY(make_json_names_of(p, &p->outputs[i]));
    return OK;
}

/* ---- npy ---- */

/* The source knows how many rows it has. */
static void write_npy_header(const struct predict *p)
{
    int64_t dim[] = {p->model.session.data.evaluation->rows, 0};
    for (int i = 0; i < p->output_count; i++) dim[1] += columns_of(&p->outputs[i]);
    const struct npz_array array = {.type = "<f4", .rank = 2, .dim = dim};
    const struct npy_header header = npy_header(&array);
    fwrite(header.at, 1, header.length, p->out);
}

static void write_npy(const struct predict *p, const struct predictions *batch, int64_t row)
{
    for (int i = 0; i < p->output_count; i++) {
        const struct head_answer said = said_of(&p->outputs[i], batch, row);
        fwrite(said.row, sizeof *said.row, (size_t)said.columns, p->out);
    }
}

static err check_npy_rows(const struct predict *p)
{
    const int64_t rows = p->model.session.data.evaluation->rows;
    if (p->format != OUTPUT_NPY || p->rows == rows) return OK;
    return fail(ERR_IO, "--out=%s: %lld rows came, and %lld were counted before: it is of no use",
                p->flags.out, (long long)p->rows, (long long)rows);
}

static err publish(struct predict *p)
{
    if (p->out == stdout) return OK;
    return out_file_publish(&p->file) ? fail(ERR_IO, "--out=%s", error_text()) : OK;
}

static err check_written(struct predict *p)
{
    if (p->out == stdout) return standard_output_flush();
    return ferror(p->out) ? publish(p) : OK;
}

static err take(void *context, const struct predictions *batch)
{
    struct predict *p = context;
    if (p->rows == 0 && p->format == OUTPUT_CSV) write_first_line(p);
    for (int64_t i = 0; i < batch->rows; i++) {
        const int64_t number = left_out_number(p->model.session.data.evaluation->left_out,
                                               p->first_row + batch->first + i);
        if (p->beside) TRY(beside_next(p->beside, number));
        if (p->format == OUTPUT_NPY)
            write_npy(p, batch, i);
        else if (p->format == OUTPUT_CSV)
            write_csv(p, number, batch, i);
        else
            write_json(p, number, batch, i);
    }
    p->rows += batch->rows;
    return check_written(p);
}

/* ---- what is read ---- */

/* Formats have a field of files: the command knows none of them. */
static const struct field *find_field(const struct format *format)
{
    for (const struct field *f = format->object.fields; f && f->name; f++)
        if (f->type == FIELD_FILES) return f;
    return NULL;
}

/* --data: all rows of another file of the spec's format. Its path is relative to the working
 * directory, not to the spec. */
static err replace_file(struct predict *p, struct source_spec *source)
{
    const struct format *format = source->format.kind->descriptor;
    const struct field *field = find_field(format);
    if (!field)
        return fail(ERR_INPUT, "--data: the spec's %s data come from no file", format->object.name);
    const bool stays = path_is_url(p->flags.data) || strcmp(p->flags.data, STANDARD_INPUT) == 0;
    char *path = stays ? strdup(p->flags.data) : realpath(p->flags.data, NULL);
    const bool is_here = path || access(p->flags.data, F_OK) == 0; /* a pipe has no other path */
    if (!path && (is_here || strpbrk(p->flags.data, "*?["))) path = path_from_here(p->flags.data);
    if (!path)
        return fail(ERR_INPUT, "--data=%s: %s%s", p->flags.data, strerror(errno),
                    strchr(p->flags.data, ',') ? "; it names one file, or a pattern (*)" : "");
    struct arena *arena = &p->model.spec.arena;
    char *own = arena_array(arena, format->object.size, 1); /* data.train may have the same ones */
    memcpy(own, source->format.attributes, format->object.size);
    source->format.attributes = own;
    struct strings *files = (struct strings *)(void *)(own + field->offset);
    *files = (struct strings){arena_array(arena, 1, sizeof *files->at), 1};
    files->at[0] = arena_string(arena, path);
    free(path);
    source->skip = 0;
    source->take = 0;
    return OK;
}

/* --data reads a whole file: skip and take apply only to the spec's own. */
static err choose_data(struct predict *p)
{
    struct data_spec *data = &p->model.spec.data;
    if (p->flags.data) {
        if (!data->eval.format.kind) restored_model_use_train(&p->model);
        TRY(replace_file(p, &data->eval));
    }
    if (!data->eval.format.kind)
        return fail(ERR_INPUT, "the spec has no data.eval: name a file with --data");
    p->first_row = data->eval.skip;
    return OK;
}

/* ---- where it goes ---- */

static err choose_format(struct predict *p)
{
    const char *dot = strrchr(p->flags.out, '.');
    p->format = (enum output_format)p->flags.format;
    if (p->format == OUTPUT_NPY && strcmp(p->flags.out, "-") == 0)
        return fail(ERR_INPUT, "--format=npy: standard output takes text only: name a file");
    if (p->format != OUTPUT_AUTO) return OK;
    if (strcmp(p->flags.out, "-") == 0 || (dot && strcmp(dot, ".csv") == 0))
        p->format = OUTPUT_CSV;
    else if (dot && (strcmp(dot, ".json") == 0 || strcmp(dot, ".jsonl") == 0))
        p->format = OUTPUT_JSONL;
    else if (dot && strcmp(dot, ".npy") == 0)
        p->format = OUTPUT_NPY;
    else
        return fail(ERR_INPUT,
                    "--out=%s: its ending is neither .csv, .json, .jsonl nor .npy: say with "
                    "--format=csv, --format=jsonl or --format=npy",
                    p->flags.out);
    return OK;
}

static err check_output(const struct predict *p)
{
    const struct written_file out = {"out", p->flags.out};
    TRY(output_check(&out, "is the spec", p->spec_path));
    TRY(output_check_folder(&out, bundle_prefix(p->model.bundle)));
    return output_check_data(&out, &p->model.spec);
}

static err open_output(struct predict *p)
{
    p->out = stdout;
    if (strcmp(p->flags.out, "-") == 0) return OK;
    TRY(check_output(p));
    if (out_file_open(&p->file, p->flags.out)) return fail(ERR_INPUT, "--out=%s", error_text());
    p->out = p->file.file;
    if (p->format == OUTPUT_NPY) write_npy_header(p);
    return OK;
}

/* ---- what is written ---- */

static void add_head(struct predict *p, int index)
{
    const struct head *head = &p->model.session.graph->heads[index];
    p->outputs[p->output_count++] = (struct predicted_output){
        .name = head->name,
        .head = head,
        .index = index,
        .words = label_words_named(&p->model.spec.data.train, head->loss.labels.name)};
    p->has_heads = true;
}

static err add_node(struct predict *p, int index)
{
    static const struct strings none = {0};
    const struct node *node = &p->model.session.graph->nodes[index];
    if (p->node_count == PREDICTED_NODES_MAX)
        return fail(ERR_INPUT, "--outputs: more than %d nodes", PREDICTED_NODES_MAX);
    p->outputs[p->output_count++] = (struct predicted_output){
        .name = node->name, .index = p->node_count, .node = &node->output.shape, .words = &none};
    p->nodes[p->node_count++] = index;
    return OK;
}

static err add_output(struct predict *p, const char *name)
{
    struct named_output named;
    TRY(named_output_find(p->model.session.graph, name, &named));
    if (!named.is_head) return add_node(p, named.index);
    add_head(p, named.index);
    return OK;
}

/* Without --outputs: all heads */
static err find_outputs(struct predict *p)
{
    const struct strings *names = &p->flags.outputs;
    for (int i = 0; i < p->model.session.graph->head_count && !names->count; i++) add_head(p, i);
    for (int i = 0; i < names->count; i++) {
        if (text_find(names->at, i, names->at[i]) >= 0)
            return fail(ERR_INPUT, "--outputs=%.64s: named twice", names->at[i]);
        TRY(add_output(p, names->at[i]));
    }
    return OK;
}

static int compare_titles(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static err fail_title(const struct predict *p, const char *title)
{
    if (text_find(p->flags.with.at, p->flags.with.count, title) >= 0)
        return fail(ERR_INPUT, "--with=%s: another value of a row has this name", title);
    return fail(ERR_INPUT,
                "two values of a row have the name \"%s\"; --outputs chooses among them%s", title,
                p->format == OUTPUT_CSV ? ", and jsonl has one name for all numbers of an output"
                                        : "");
}

/* Each name is one value's. */
static err check_titles(const struct predict *p)
{
    const size_t count = (size_t)p->titles.count;
    const char **sorted = malloc(count * sizeof *sorted), *twice = NULL;
    if (!sorted) return fail(ERR_MEMORY, "no memory for names");
    memcpy(sorted, p->titles.at, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_titles);
    for (size_t i = 1; i < count && !twice; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0) twice = sorted[i];
    free(sorted);
    return twice ? fail_title(p, twice) : OK;
}

static err make_titles(struct predict *p)
{
    const struct strings *with = &p->flags.with;
    size_t room = 1 + (size_t)with->count;
    if (p->format == OUTPUT_NPY)
        return with->count ? fail(ERR_INPUT, "--with: an npy file has numbers of the model only; "
                                             "csv and jsonl take cells")
                           : OK;
    for (int i = 0; i < p->output_count; i++) room += 1 + (size_t)columns_of(&p->outputs[i]);
    p->titles.at = arena_array(&p->model.spec.arena, room, sizeof *p->titles.at);
    add_title(p, "row");
    for (int i = 0; i < with->count; i++) add_title(p, with->at[i]);
    for (int i = 0; i < p->output_count; i++) {
        const struct head_answer said = said_always(&p->outputs[i]);
        (p->format == OUTPUT_CSV ? add_titles : add_json_titles)(p, &said);
    }
    return check_titles(p);
}

/* Opens the output last, so that a wrong argument does not overwrite a file. */
static err predict(struct predict *p, int argc, char **argv, struct arena *arena)
{
    const struct restored_call call = {argc, argv, own_flags, sizeof p->flags};
    const char *path;
    TRY(restored_model_parse(&call, arena, &p->flags, &path));
    TRY(named_outputs_split(&p->flags.with, "--with", WITH_MAX, arena));
    TRY(named_outputs_split(&p->flags.outputs, "--outputs", OUTPUTS_MAX, arena));
    TRY(choose_format(p));
    p->spec_path = path;
    TRY(restored_model_load_spec(&p->model, &p->flags.shared, path));
    TRY(choose_data(p));
    TRY(restored_model_open(&p->model, true));
    TRY(find_outputs(p));
    TRY(make_titles(p));
    if (p->format == OUTPUT_JSONL) TRY(make_json_names(p));
    TRY(open_beside(p));
    TRY(open_output(p));
    __fsetlocking(p->out, FSETLOCKING_BYCALLER); /* nobody else writes there */
    const struct prediction_taker taker = {take, p, p->nodes, p->node_count, !p->has_heads};
    err e = session_predict(&p->model.session, &taker);
    if (!e) e = check_npy_rows(p);
    return e ? e : publish(p);
}

static int cmd_predict(int argc, char **argv)
{
    struct arena arena = {0};
    struct predict p = {0};
    char shown[PATH_BYTES_MAX];
    cpu_environment_prepare(argv);
    err e = predict(&p, argc - 1, argv + 1, &arena);
    int code = e ? report_error(e) : EXIT_DONE;
    if (!e && strcmp(p.flags.out, "-"))
        printf("%s: %lld rows at step %lld\n", path_shown(p.flags.out, shown), (long long)p.rows,
               (long long)p.model.step);
    out_file_close(&p.file);
    beside_close(p.beside);
    free(p.cell);
    restored_model_close(&p.model);
    arena_free(&arena);
    return code;
}

const struct command command_predict = {
    .name = "predict",
    .arguments = "[FLAGS] SPEC.json",
    .summary = "write a model's predictions for rows of data",
    .run = cmd_predict,
    .topic = "predict with a checkpoint",
    .print_help = print_predict_help,
};
