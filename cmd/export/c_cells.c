/* c_cells.c - writes the C code that turns the cells of a row into a program's inputs: tables with
 * the spec's parameters, for the functions of runtime.c.in.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/export/c_writer.h"
#include "core/data/columns/date.h"
#include "core/data/columns/numeric.h"

static void write_text(FILE *f, const char *text)
{
    fputc('"', f);
    for (; *text; text++)
        if (strchr("\"\\?", *text) || (unsigned char)*text < ' ' || (unsigned char)*text > '~')
            fprintf(f, "\\%03o", (unsigned char)*text);
        else
            fputc(*text, f);
    fputc('"', f);
}

/* ---- what is listed ---- */

struct listed {
    const char *text;
    int64_t id;
};

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct listed *)a)->text, ((const struct listed *)b)->text);
}

static void write_words(FILE *f, const struct cells *c, int column, const struct strings *words)
{
    struct listed *sorted = arena_array(c->arena, (size_t)words->count, sizeof *sorted);
    for (int i = 0; i < words->count; i++) sorted[i] = (struct listed){words->at[i], i};
    qsort(sorted, (size_t)words->count, sizeof *sorted, by_text);
    fprintf(f, "static const struct listed words%d[%d] = {", column, words->count);
    for (int i = 0; i < words->count; i++) {
        fputs(i % 4 ? ", {" : i ? ",\n    {" : "\n    {", f);
        write_text(f, sorted[i].text);
        fprintf(f, ", %" PRId64 "}", sorted[i].id);
    }
    fputs("};\n", f);
}

static void write_doubles(FILE *f, const char *name, int column, const struct floats *numbers)
{
    fprintf(f, "static const double %s%d[%d] = {", name, column, numbers->count);
    for (int i = 0; i < numbers->count; i++) fprintf(f, "%s%.17g", i ? ", " : "", numbers->at[i]);
    fputs("};\n", f);
}

/* ---- columns ---- */

/* What is a list in the rows (as in JSON lines) is one text here: words, which may contain blanks,
 * are separated by tabs, all else by blanks. */
static const char *separator_of(const struct cells *c, const struct column_spec *spec)
{
    const struct column_source *source = spec->column.attributes;
    if (source->separator) return source->separator;
    if (c->has_texts || source->max <= 1) return "";
    return cells_is(spec, "hash") || cells_is(spec, "vocabulary") ? "\t" : " ";
}

static void write_separator(FILE *f, const struct cells *c, const struct column_spec *spec)
{
    fputs(".separator = ", f);
    write_text(f, spec ? separator_of(c, spec) : "");
}

void c_write_missing(FILE *f, const struct cells *c)
{
    fputs("/* Words that stand for no value, of a cell or of each word in it */\n"
          "static const char *const missing_words[] = {",
          f);
    for (int i = 0; i < c->missing.count; i++) {
        write_text(f, c->missing.at[i]);
        fputs(", ", f);
    }
    fprintf(f, "0};\nenum { CELLS_ARE_MISSING = %d };\n", c->has_texts);
}

static void write_common(FILE *f, const struct cells *c, const struct column_spec *spec, int column)
{
    const struct column_source *source = spec->column.attributes;
    const char *kind = cells_is(spec, "ids") ? "list" : cells_kind(spec);
    fprintf(f,
            "static const struct column column%d = {.id = %s_id, .max = %" PRId64
            ", .truncate = %d, ",
            column, kind, source->max, source->truncate);
    write_separator(f, c, spec);
}

/* Columns that make ids from one cell */
static err write_ids(FILE *f, const struct cells *c, const struct column_spec *spec, int column)
{
    int64_t buckets = 0;
    struct strings words = {0};
    struct floats boundaries = {0};
    if (cells_is(spec, "vocabulary")) TRY(cells_words(c, spec, &words));
    if (words.count) write_words(f, c, column, &words);
    if (cells_is(spec, "bucketized")) TRY(cells_boundaries(c, spec, &boundaries));
    if (boundaries.count) write_doubles(f, "boundaries", column, &boundaries);
    if (cells_is(spec, "hash") || cells_is(spec, "identity"))
        buckets = cells_limit(spec, "buckets");
    if (cells_is(spec, "ids")) buckets = cells_limit(spec, "rows");
    if (words.count) buckets = *(const int64_t *)cells_attribute(spec, "oov_buckets");
    write_common(f, c, spec, column);
    fprintf(f, ",\n    .stand_in = %" PRId64 ", .buckets = %" PRId64 ", .count = %d",
            cells_stand_in(spec), buckets, words.count + boundaries.count);
    if (words.count) fprintf(f, ", .words = words%d", column);
    if (boundaries.count) fprintf(f, ", .boundaries = boundaries%d", column);
    fputs("};\n", f);
    return OK;
}

static void write_numeric(FILE *f, const struct cells *c, const struct column_spec *spec,
                          int column)
{
    const struct numeric_attributes *a = spec->column.attributes;
    const double offset = c->data->offset;
    double fallback;
    const bool has_default = numeric_default(a, &fallback);
    if (a->standardize) write_doubles(f, "mean", column, &a->mean);
    if (a->standardize) write_doubles(f, "deviation", column, &a->deviation);
    fprintf(f,
            "static const struct numbers column%d = {.max = %" PRId64
            ", .truncate = %d, .log1p = %d,\n    .has_min = %d, .min = %.17g, .has_default = %d, "
            ".fallback = %.17g, .has_padding = %d, .padding = %.17g, .scale = %.17g, .offset = "
            "%.17g,\n    .last_scale = %.17g, "
            ".last_offset = %.17g",
            column, a->source.max, a->source.truncate, a->log1p, json_is_number(a->min),
            json_number_value(a->min), has_default, fallback, json_is_number(a->padding),
            json_number_value(a->padding), a->scale, a->offset, c->data->scale, offset);
    if (a->standardize) fprintf(f, ", .mean = mean%d, .deviation = deviation%d", column, column);
    fputs(", ", f);
    write_separator(f, c, spec);
    fputs("};\n", f);
}

/* A date: as a number, in seconds, or as an id, one part of it */
static void write_date(FILE *f, const struct cells *c, const struct column_spec *spec, int column)
{
    const struct date_attributes *a = spec->column.attributes;
    const bool has_default = json_is_number(a->fallback);
    const double fallback = json_number_value(a->fallback);
    const int time = date_is_in_milliseconds(a) ? 2 : 1;
    if (a->part == DATE_SECONDS) {
        fprintf(f,
                "static const struct numbers column%d = {.separator = \"\", .max = 1, .truncate = "
                "%d, .time = %d, "
                ".has_default = %d,\n    .fallback = %.17g, .scale = %.17g, .offset = %.17g, "
                ".last_scale = %.17g, .last_offset = %.17g};\n",
                column, a->source.truncate, time, has_default, fallback, a->scale, a->offset,
                c->data->scale, c->data->offset);
        return;
    }
    write_common(f, c, spec, column);
    fprintf(f, ", .time = %d, .part = %d, .stand_in = %" PRId64 "};\n", time, a->part,
            cells_stand_in(spec));
}

/* A key is the ids of a column, or the words of a column or cell. */
static void write_cross(FILE *f, const struct cells *c, const struct column_spec *spec, int column)
{
    const struct strings *keys = cells_attribute(spec, "keys");
    for (int i = 0; i < keys->count; i++) {
        const int of = cells_column_named(c, keys->at[i]);
        if (!cells_crosses_words(c, keys->at[i])) continue;
        const struct column_spec *key = of < 0 ? NULL : cells_column(c, of);
        const struct column_source *source = key ? key->column.attributes : NULL;
        fprintf(f,
                "static const struct column key%d_%d = {.id = word_id, .max = %" PRId64
                ", .stand_in = -1, ",
                column, i, key ? source->max : 1);
        write_separator(f, c, key);
        fputs("};\n", f);
    }
    fprintf(f, "static const struct key keys%d[] = {", column);
    for (int i = 0; i < keys->count; i++) {
        const int of = cells_column_named(c, keys->at[i]);
        if (cells_crosses_words(c, keys->at[i]))
            fprintf(f, "%s{&key%d_%d, %d}", i ? ", " : "", column, i, of >= 0);
        else
            fprintf(f, "%s{&column%d, 1}", i ? ", " : "", of);
    }
    fputs("};\n", f);
}

static err write_column(FILE *f, const struct cells *c, int column)
{
    const struct column_spec *spec = cells_column(c, column);
    if (cells_is(spec, "image")) return OK; /* the client gives its pixels */
    if (cells_is(spec, "numeric"))
        write_numeric(f, c, spec, column);
    else if (cells_is(spec, "date"))
        write_date(f, c, spec, column);
    else if (cells_is(spec, "crossed"))
        write_cross(f, c, spec, column);
    else
        return write_ids(f, c, spec, column);
    return OK;
}

/* ---- a row ---- */

static int cell_of_key(const struct cells *c, const char *key)
{
    const int column = cells_column_named(c, key);
    return column < 0 ? cells_named(c, key) : cells_of_column(c, cells_column(c, column));
}

static void write_read_cross(FILE *f, const struct cells *c, int column, int at,
                             const struct program_value *v)
{
    const struct column_spec *spec = cells_column(c, column);
    const struct strings *keys = cells_attribute(spec, "keys");
    fprintf(f, "    static const char *const named%d[] = {NULL", column);
    for (int i = 0; i < keys->count; i++) {
        fputs(", ", f);
        write_text(f, c->names[cell_of_key(c, keys->at[i])]);
    }
    fprintf(f, "};\n    const int bad%d = read_cross(keys%d, (const char *const[]){", column,
            column);
    for (int i = 0; i < keys->count; i++)
        fprintf(f, "%srow->%s", i ? ", " : "", c->members[cell_of_key(c, keys->at[i])]);
    fprintf(f,
            "}, %d, %" PRId64 ", %" PRId64 ", in->v%d);\n    if (bad%d) return named%d[bad%d];\n",
            keys->count, cells_limit(spec, "buckets"), shape_count(&v->shape), at, column, column,
            column);
}

static void write_read_pixels(FILE *f, const struct cells *c, int at, int cell)
{
    fprintf(f, "    if (!row->%s) return ", c->members[cell]);
    write_text(f, c->names[cell]);
    fprintf(f,
            ";\n    for (long i = 0; i < %" PRId64 "; i++)\n"
            "        in->v%d[i] = (float)(%.17g * (double)row->%s[i] + %.17g);\n",
            shape_count(&c->pixels[cell]), at, c->data->scale, c->members[cell], c->data->offset);
}

static void write_read(FILE *f, const struct cells *c, int at, const struct program_value *v)
{
    const int column = cells_column_named(c, v->name);
    const struct column_spec *spec = cells_column(c, column);
    if (cells_is(spec, "crossed")) return write_read_cross(f, c, column, at, v);
    const int cell = cells_of_column(c, spec);
    if (c->pixels[cell].rank) return write_read_pixels(f, c, at, cell);
    const bool has_ids = v->is_ids || v->is_weights;
    fprintf(f, "    if (%s(&column%d, row->%s, %sin->v%d%s)) return ",
            has_ids ? "read_ids" : "read_numbers", column, c->members[cell],
            v->is_weights ? "NULL, " : "", at, v->is_ids ? ", NULL" : "");
    write_text(f, c->names[cell]);
    fputs(";\n", f);
}

/* Rows of the smallest table that the ids are looked up in */
static int64_t limit_of(const struct program *p, int ids)
{
    int64_t limit = INT64_C(1) << 53; /* integers that a double holds exactly */
    for (int i = 0; i < p->count; i++) {
        const struct program_value *v = &p->values[i];
        if (v->primitive != PRIMITIVE_GATHER || v->inputs[1] != ids || !v->uses) continue;
        const struct program_value *table = &p->values[v->inputs[0]];
        if (!table->grows && table->shape.dim[0] < limit) limit = table->shape.dim[0];
    }
    return limit;
}

/* Features that are ids, as in text: whole numbers below the limit */
static void write_ids_of_features(FILE *f, const struct program *p, int at)
{
    fprintf(f,
            "    for (long i = 0; i < %" PRId64 "; i++) {\n"
            "        if (!(row->features[i] >= -1 && row->features[i] < %" PRId64 ")) return "
            "\"features\";\n"
            "        in->v%d[i] = (int64_t)row->features[i];\n"
            "        if ((double)in->v%d[i] != row->features[i]) return \"features\";\n    }\n",
            shape_count(&p->values[at].shape), limit_of(p, at), at, at);
}

static void write_features(FILE *f, const struct cells *c, int at, const struct program_value *v)
{
    fprintf(f,
            "    for (long i = 0; i < %" PRId64 "; i++) {\n        in->v%d[i] = (float)(%.17g * "
            "row->features[i] + %.17g);\n        if (!isfinite(in->v%d[i])) return \"features\";\n "
            "   }\n",
            shape_count(&v->shape), at, c->data->scale, c->data->offset, at);
}

err c_write_cells(FILE *f, const char *name, const struct program *p, const struct cells *c)
{
    fputc('\n', f);
    for (int i = 0; i < c->columns->count; i++)
        if (c->is_read[i]) TRY(write_column(f, c, i));
    fprintf(f,
            "\n/* The name of the cell that is wrong; NULL: none */\nstatic const char *"
            "read_row(const %s_row *row, struct inputs *in)\n{\n",
            name);
    for (int i = 0; i < p->count; i++) {
        const struct program_value *v = &p->values[i];
        if (v->primitive != PRIMITIVE_INPUT || !v->uses) continue;
        if (c->columns->count)
            write_read(f, c, i, v);
        else if (v->is_ids)
            write_ids_of_features(f, p, i);
        else
            write_features(f, c, i, v);
    }
    fprintf(f,
            "    return NULL;\n}\n\nconst char *%s_bad_cell(const %s_row *row)\n{\n"
            "    struct inputs *in = malloc(sizeof *in);\n"
            "    const char *cell = in ? read_row(row, in) : NULL;\n"
            "    free(in);\n    return cell;\n}\n",
            name, name);
    return OK;
}
