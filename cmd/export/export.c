/* export.c - `dtrain export SPEC.json --checkpoint=CKPT --format=c --out=FOLDER`: a model for use
 * without dtrain, as C, ONNX or TensorFlow's SavedModel. Its inputs are the raw cells of a row:
 * hashing, vocabularies, crosses and standardization are part of the export.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/checkpoint/checkpoint.h"
#include "cmd/export/c_writer.h"
#include "cmd/export/onnx.h"
#include "cmd/export/saved_model.h"
#include "cmd/named_outputs.h"
#include "cmd/out_file.h"
#include "cmd/restored_model.h"
#include "core/base/files/file_system.h"
#include "core/data/columns/date.h"
#include "core/train/checkpoint/newest.h"

enum export_format { EXPORT_C, EXPORT_SAVED_MODEL, EXPORT_ONNX };
static const char *const export_formats[] = {"c", "saved_model", "onnx", NULL};

struct export_flags {
    struct restored_flags shared;
    const char *out;
    struct strings outputs;
    int format; /* enum export_format */
    bool optimize, tables_beside, delta;
};

static const struct field own_flags[] = {
    FIELD_OF("format", ENUM, struct export_flags, format, .choices = export_formats,
             .help = "c: NAME.h and NAME.c, which need no library but libm; NAME is that of the "
                     "spec. saved_model: TensorFlow's, in FOLDER/STEP, as TensorFlow Serving looks "
                     "for it. onnx: NAME.onnx, of the operators of ai.onnx"),
    FIELD_OF("out", STRING, struct export_flags, out,
             .help = "folder to write to, made where it is absent; or its URL (s3://, "
                     "gs://, hdfs://, ...)"),
    FIELD_OF("outputs", STRINGS, struct export_flags, outputs, .fallback = "[]",
             .count_max = PROGRAM_OUTPUTS_MAX,
             .help =
                 "heads or nodes to export instead of all heads, by name, as for dtrain predict; "
                 "cells that only other nodes read are left out: --outputs=user exports one of "
                 "two towers"),
    FIELD_OF("optimize", BOOL, struct export_flags, optimize, .fallback = "false",
             .help = "fold batch normalization into the layer before it, which changes rounding"),
    FIELD_OF(
        "tables_beside", BOOL, struct export_flags, tables_beside, .fallback = "false",
        .help =
            "onnx: store tables in a file NAME.onnx.data, as is always done above 1 GB; c: store "
            "all numbers in a file NAME.weights, which NAME_open maps, as is always done above "
            "8388608 numbers"),
    FIELD_OF("delta", BOOL, struct export_flags, delta, .fallback = "false",
             .help = "include what the run has published since that checkpoint (train.publish), as "
                     "dtrain serve --follow does"),
    {0},
};

static void print_export_help(FILE *out)
{
    struct arena arena = {0};
    const struct object flags =
        restored_model_flags_with(own_flags, sizeof(struct export_flags), &arena);
    fputs(
        "  dtrain export --checkpoint=CKPT --format=FORMAT --out=FOLDER [FLAGS] SPEC.json\n\n"
        "Writes the model's predictions for programs that know nothing of dtrain. The client\n"
        "gives a row of the data: each cell that columns are made of; or, without columns, the\n"
        "numbers as they are stored. The outputs are those of predict; for in_batch_logits,\n"
        "which compares rows of a batch, its two inputs. Dropout is left out, and images are\n"
        "cropped at the centre, as in evaluation. If something cannot be exported, the error\n"
        "names the node or the column, and says why. The names of cells are read from the\n"
        "spec's data.eval (or data.train).\n\n"
        "c: a row for NAME_predict has the text of each cell as in the file, but times that have\n"
        "a format of their own in ISO 8601, or as seconds since 1970.\n"
        "saved_model: signature serving_default takes each cell as a tensor of its name: words\n"
        "as strings, numbers and times (seconds since 1970) as float64, ids as int64; the values\n"
        "of a list side by side, a cell with a separator as its text. Empty texts, NaN and -1 are\n"
        "cells without a value. parse_example takes serialized Examples of the same cells.\n"
        "onnx: each column is an input of its name: float64 numbers of its cell, or int64 ids, -1\n"
        "for none. Words are hashed, looked up and crossed by the client.\n"
        "For columns of images the client gives the pixels, decoded and of the column's size, as\n"
        "bytes [y, x, channel] under the column's name; in Examples as one string of these "
        "bytes.\n\n"
        "The rows of one table: dtrain checkpoint rows. Outputs of single nodes: dtrain predict\n"
        "--outputs.\n\n",
        out);
    flags_help(out, &flags);
    arena_free(&arena);
}

struct export
{
    struct export_flags flags;
    struct restored_model model;
    struct newest *newest; /* with --delta */
    struct program program;
    struct cells cells;
    const char *name; /* a valid C identifier */
    const char *made; /* what was written */
    int folds;
};

static const char *identifier(const char *name, struct arena *arena)
{
    char *made = arena_format(arena, "%s%s", isdigit((unsigned char)*name) ? "m" : "", name);
    for (char *at = made; *at; at++)
        if (!isalnum((unsigned char)*at)) *at = '_';
    return made;
}

/* Builds the graph for batches of one row; the first axis of each value is the batch. */
static err load(struct export *x, const char *path)
{
    const struct spec *spec = &x->model.spec;
    TRY(restored_model_load_spec(&x->model, &x->flags.shared, path));
    program_leave_blocks(spec->model.nodes.at, spec->model.nodes.count);
    if (!x->model.spec.data.eval.format.kind) restored_model_use_train(&x->model);
    x->model.spec.data.eval_batch_size = 1;
    TRY(restored_model_open(&x->model, true));
    if (!x->flags.delta) return OK;
    TRY(newest_open(x->model.bundle, &x->newest));
    return checkpoint_global_step(newest_dense(x->newest), &x->model.step);
}

/* Marks a column that the program reads, and for a cross the columns it is made of */
static void mark(struct cells *c, int column)
{
    const struct column_spec *spec = cells_column(c, column);
    c->is_read[column] = true;
    if (!cells_is(spec, "crossed")) return;
    const struct strings *keys = cells_attribute(spec, "keys");
    for (int i = 0; i < keys->count; i++) {
        const int of = cells_column_named(c, keys->at[i]);
        if (of >= 0 && !cells_crosses_words(c, keys->at[i])) mark(c, of);
    }
}

static void mark_input(struct cells *c, int column)
{
    c->is_input[column] = true;
    mark(c, column);
}

static err find_cells(struct export *x, struct arena *arena)
{
    const struct program *p = &x->program;
    TRY(cells_open(&x->cells, &x->model.spec, arena));
    for (int i = 0; i < p->count; i++) {
        const struct program_value *v = &p->values[i];
        if (v->primitive != PRIMITIVE_INPUT || !v->uses) continue;
        if (x->cells.columns->count)
            mark_input(&x->cells, cells_column_named(&x->cells, v->name));
        else
            x->cells.features = shape_count(&v->shape);
    }
    x->cells.takes_pixels = true;
    return cells_find(&x->cells);
}

static err lower(struct export *x, struct arena *arena)
{
    x->program = (struct program){.arena = arena,
                                  .bundle = x->model.bundle,
                                  .newest = x->newest,
                                  .averages = x->model.session.restored.averages,
                                  .average_count = x->model.session.restored.average_count,
                                  .leaves_tables = x->flags.format != EXPORT_C};
    TRY(program_lower(&x->program, x->model.session.graph, &x->flags.outputs));
    if (x->flags.optimize) x->folds = program_fold(&x->program);
    return find_cells(x, arena);
}

/* ---- c ---- */

static err name_file(const struct export *x, const char *ending, char ret[PATH_BYTES_MAX])
{
    const int length = snprintf(ret, PATH_BYTES_MAX, "%s/%s%s", x->flags.out, x->name, ending);
    return length < PATH_BYTES_MAX ? OK : fail(ERR_INPUT, "--out: too long a path");
}

static err open_file(const struct export *x, const char *ending, struct out_file *out)
{
    char path[PATH_BYTES_MAX];
    TRY(name_file(x, ending, path));
    return out_file_open(out, path);
}

/* Removes the weights file of an earlier export when the new source contains its weights */
static err remove_weights(const struct export *x)
{
    char path[PATH_BYTES_MAX];
    TRY(name_file(x, ".weights", path));
    return c_weights_are(path) ? out_file_remove(path) : OK;
}

/* Writes the header last: if it exists the other files do. */
static err write_c(const struct export *x)
{
    struct out_file source = {0}, header = {0}, weights = {0};
    struct c_model m = {.name = x->name, .program = &x->program, .cells = &x->cells};
    const bool are_beside =
        x->flags.tables_beside || x->program.constant_floats > PROGRAM_FLOATS_MAX;
    err e = are_beside ? open_file(x, ".weights", &weights) : OK;
    if (!e && are_beside) c_write_weights(weights.file, &x->program, &m.weights);
    if (!e) e = open_file(x, ".c", &source);
    if (!e) e = c_write_source(source.file, &m);
    if (!e) e = open_file(x, ".h", &header);
    if (!e) c_write_header(header.file, &m);
    if (!e && are_beside) e = out_file_publish(&weights);
    if (!e) e = out_file_publish(&source);
    if (!e) e = out_file_publish(&header);
    if (!e && !are_beside) e = remove_weights(x);
    out_file_close(&weights);
    out_file_close(&source);
    out_file_close(&header);
    return e;
}

/* Creates it, with its parent folders. */
static err make_folder(const char *out, struct arena *arena)
{
    if (path_is_url(out)) return OK;
    char *path = arena_string(arena, out);
    for (char *at = path + 1;; at++) {
        const char was = *at;
        if (was && was != '/') continue;
        *at = '\0';
        if (mkdir(path, 0777) && errno != EEXIST)
            return fail(ERR_IO, "--out=%s: %s: %s", out, path, strerror(errno));
        if (!was) return OK;
        *at = was;
    }
}

static err write_model(struct export *x, struct arena *arena)
{
    TRY(make_folder(x->flags.out, arena));
    if (x->flags.format == EXPORT_C) {
        x->made = arena_format(arena, "%s/%s.c", x->flags.out, x->name);
        return write_c(x);
    }
    if (x->flags.format == EXPORT_ONNX) {
        x->made = arena_format(arena, "%s/%s.onnx", x->flags.out, x->name);
        return onnx_write(x->flags.out, x->name, &x->program, &x->cells, x->flags.tables_beside);
    }
    x->made = arena_format(arena, "%s/%" PRId64, x->flags.out, x->model.step);
    return saved_model_write(x->flags.out, x->model.step, &x->program, &x->cells);
}

/* Names the columns whose ids the client has to make */
static void report_left(const struct export *x)
{
    const char *before = "ids of these columns are left to the client: ";
    for (int i = 0; i < x->cells.columns->count; i++) {
        const struct column_spec *spec = cells_column(&x->cells, i);
        if (!x->cells.is_input[i] || !onnx_leaves(spec)) continue;
        printf("%s%s (%s)", before, spec->name, cells_kind(spec));
        before = ", ";
    }
    if (*before == ',') putchar('\n');
}

static bool leaves_time(const struct export *x, const struct column_spec *spec)
{
    const struct date_attributes *a = spec->column.attributes;
    if (!cells_is(spec, "date")) return false;
    if (x->flags.format == EXPORT_ONNX) return cells_is_seconds(spec);
    return !date_is_in_milliseconds(a) && (a->format || x->flags.format != EXPORT_C);
}

/* Names the times that the client has to convert from text */
static void report_times(const struct export *x)
{
    const char *before = "seconds since 1970 are given of the times of these columns: ";
    for (int i = 0; i < x->cells.columns->count; i++) {
        const struct column_spec *spec = cells_column(&x->cells, i);
        if (!x->cells.is_read[i] || !leaves_time(x, spec)) continue;
        printf("%s%s", before, spec->name);
        before = ", ";
    }
    if (*before == ',') putchar('\n');
}

/* Names the images that the client has to decode */
static void report_images(const struct export *x)
{
    const struct cells *c = &x->cells;
    for (int i = 0; i < c->count; i++)
        if (c->pixels[i].rank)
            printf("of \"%s\" the pixels are given, [%" PRId64 ", %" PRId64 ", %" PRId64
                   "] from 0 to 255\n",
                   c->names[i], c->pixels[i].dim[0], c->pixels[i].dim[1], c->pixels[i].dim[2]);
}

static void report(const struct export *x)
{
    const struct program *p = &x->program;
    int steps = 0;
    for (int i = 0; i < p->count; i++)
        steps += p->values[i].uses && p->values[i].primitive > PRIMITIVE_CONSTANT;
    char shown[PATH_BYTES_MAX];
    printf("%s: step %" PRId64 ", %d operations, %" PRId64 " numbers (%.1f MB)",
           path_shown(x->made, shown), x->model.step, steps, p->constant_floats,
           (double)p->constant_floats * 4e-6);
    if (x->newest) printf(", with %d deltas", newest_deltas(x->newest));
    if (p->dropped) printf(", left out: %" PRId64 " nodes for training", p->dropped);
    if (x->flags.optimize) printf(", folded: %d", x->folds);
    printf("\n");
    if (x->flags.format == EXPORT_ONNX) report_left(x);
    report_times(x);
    report_images(x);
}

/* Removes "/" from the end: behind a URL "//" would be part of a key. */
static void trim(struct export *x, struct arena *arena)
{
    if (!path_is_url(x->flags.out)) return;
    char *out = arena_string(arena, x->flags.out);
    size_t length = strlen(out);
    while (out[length - 1] == '/') length--; /* ends: at the scheme's colon */
    out[length] = '\0';
    x->flags.out = out;
}

static err export(struct export *x, int argc, char **argv, struct arena *arena)
{
    const struct restored_call call = {argc, argv, own_flags, sizeof x->flags};
    const char *path;
    TRY(restored_model_parse(&call, arena, &x->flags, &path));
    TRY(named_outputs_split(&x->flags.outputs, "--outputs", PROGRAM_OUTPUTS_MAX, arena));
    if (strcmp(x->flags.out, "-") == 0 || !*x->flags.out)
        return fail(ERR_INPUT, "--out=%s: several files are written: name a folder", x->flags.out);
    if (!files_can_be_written(x->flags.out))
        return fail(ERR_INPUT, "--out=%s: nothing can be written there", x->flags.out);
    trim(x, arena);
    TRY(load(x, path));
    TRY(lower(x, arena));
    x->name = identifier(x->model.spec.name, arena);
    return write_model(x, arena);
}

static int cmd_export(int argc, char **argv)
{
    struct arena arena = {0};
    struct export x = {0};
    cpu_environment_prepare(argv);
    const err e = export(&x, argc - 1, argv + 1, &arena);
    const int code = e ? report_error(e) : EXIT_DONE;
    if (!e) report(&x);
    newest_close(x.newest);
    restored_model_close(&x.model);
    arena_free(&arena);
    return code;
}

const struct command command_export = {
    .name = "export",
    .arguments = "[FLAGS] SPEC.json",
    .summary = "write a model for other programs",
    .run = cmd_export,
    .topic = "export a model for other programs",
    .print_help = print_export_help,
};
