/* cells.c - see cells.h. */
#include "cmd/export/cells.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "core/data/columns/date.h"
#include "core/data/parts.h"
#include "core/data/word_file.h"

const struct column_spec *cells_column(const struct cells *c, int column)
{
    return (const struct column_spec *)c->columns->at + column;
}

int cells_column_named(const struct cells *c, const char *name)
{
    for (int i = 0; i < c->columns->count; i++)
        if (strcmp(cells_column(c, i)->name, name) == 0) return i;
    return -1;
}

const char *cells_kind(const struct column_spec *spec)
{
    return spec->column.kind->object->name;
}

bool cells_is(const struct column_spec *spec, const char *kind)
{
    return strcmp(cells_kind(spec), kind) == 0;
}

bool cells_is_seconds(const struct column_spec *spec)
{
    const struct date_attributes *a = spec->column.attributes;
    return cells_is(spec, "date") && a->part == DATE_SECONDS;
}

const void *cells_attribute(const struct column_spec *spec, const char *name)
{
    return fields_at(spec->column.kind->object, spec->column.attributes, name);
}

int64_t cells_limit(const struct column_spec *spec, const char *name)
{
    const int64_t limit = *(const int64_t *)cells_attribute(spec, name);
    return limit ? limit : ANY_ID;
}

int64_t cells_stand_in(const struct column_spec *spec)
{
    if (cells_is(spec, "date")) return date_default(spec->column.attributes);
    if (!cells_is(spec, "identity")) return -1;
    return *(const int64_t *)cells_attribute(spec, "default");
}

int cells_named(const struct cells *c, const char *name)
{
    return text_find(c->names, c->count, name);
}

static const char *cell_of(const struct cells *c, const struct column_spec *spec)
{
    const struct column_source *source = spec->column.attributes;
    const bool is_cell = source->cell && !(c->takes_pixels && cells_is(spec, "image"));
    return is_cell ? source->cell : spec->name;
}

int cells_of_column(const struct cells *c, const struct column_spec *spec)
{
    return cells_named(c, cell_of(c, spec));
}

bool cells_crosses_words(const struct cells *c, const char *key)
{
    const int column = cells_column_named(c, key);
    if (column < 0) return true;
    const struct column_kind *kind = cells_column(c, column)->column.kind->descriptor;
    return kind->crosses == CROSSES_WORDS ||
           (kind->crosses == CROSSES_NAME && strings_have(&c->reader, key));
}

/* ---- lists ---- */

/* The words of the format's "missing", if any; CSV with columns keeps it as unchecked JSON. */
struct strings cells_missing(const struct source_spec *source, struct arena *arena)
{
    const struct format *format = source->format.kind->descriptor;
    const void *of = source->format.attributes;
    const struct strings *words = fields_find(&format->object, of, "missing", FIELD_STRINGS);
    json_t *const *list = fields_find(&format->object, of, "missing", FIELD_JSON);
    struct strings ret = {0};
    if (words) return *words;
    if (!list || !json_is_array(*list)) return ret;
    ret.at = arena_array(arena, json_array_size(*list), sizeof *ret.at);
    for (size_t i = 0; i < json_array_size(*list); i++)
        if (json_is_string(json_array_get(*list, i))) /* opening the files refuses others */
            ret.at[ret.count++] = json_string_value(json_array_get(*list, i));
    return ret;
}

err cells_words(const struct cells *c, const struct column_spec *spec, struct strings *ret)
{
    const char *const *file = cells_attribute(spec, "file");
    struct word_file words;
    struct item word;
    *ret = *(const struct strings *)cells_attribute(spec, "words");
    if (!*file) return OK;
    TRY(word_file_read(&c->context, *file, c->arena, &words));
    *ret = (struct strings){arena_array(c->arena, words.lines, sizeof *ret->at), 0};
    while (word_file_next(&words, &word))
        ret->at[ret->count++] = arena_format(c->arena, "%.*s", (int)word.length, word.text);
    return OK;
}

err cells_boundaries(const struct cells *c, const struct column_spec *spec, struct floats *ret)
{
    const char *const *file = cells_attribute(spec, "file");
    struct word_file lines;
    struct item line;
    *ret = *(const struct floats *)cells_attribute(spec, "boundaries");
    if (!*file) return OK;
    TRY(word_file_read(&c->context, *file, c->arena, &lines));
    *ret = (struct floats){arena_array(c->arena, lines.lines, sizeof *ret->at), 0};
    while (word_file_next(&lines, &line))
        if (!item_number(&line, &ret->at[ret->count++]))
            return fail(ERR_INPUT, "%s: expected numbers", *file);
    return OK;
}

/* ---- which cells ---- */

/* Keywords of C, and of C++, since C++ programs may include the header */
static bool is_reserved(const char *name)
{
    static const char words[] =
        " alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl "
        "const const_cast constexpr continue decltype default delete do double dynamic_cast else "
        "enum explicit export extern false float for friend goto if inline int long mutable "
        "namespace new noexcept not not_eq nullptr operator or or_eq private protected public "
        "register reinterpret_cast restrict return short signed sizeof static static_assert "
        "static_cast struct switch template this thread_local throw true try typedef typeid "
        "typename typeof union unsigned using virtual void volatile wchar_t while xor xor_eq ";
    const size_t length = strlen(name);
    for (const char *at = strstr(words, name); at; at = strstr(at + 1, name))
        if (at > words && at[-1] == ' ' && at[length] == ' ') return true;
    return false;
}

/* A valid C identifier that no other member has */
static const char *member_of(const struct cells *c, const char *name)
{
    const bool is_begin = isalpha((unsigned char)*name) && !is_reserved(name);
    char *member = arena_format(c->arena, "%s%s", is_begin ? "" : "c_", name);
    for (char *at = member; *at; at++)
        if (!isalnum((unsigned char)*at)) *at = '_';
    const char *free_one = member;
    /* Ends: there are c->count members. */
    for (int i = 1; text_find(c->members, c->count, free_one) >= 0; i++)
        free_one = arena_format(c->arena, "%s_%d", member, i);
    return free_one;
}

static err add_cell(struct cells *c, const char *name)
{
    const int there = cells_named(c, name);
    if (there >= 0 && c->pixels[there].rank)
        return fail(ERR_INPUT, "its cell has the name of a column of images");
    if (there >= 0) return OK;
    if (c->count == CELLS_MAX) return fail(ERR_INPUT, "more than %d cells", CELLS_MAX);
    c->members[c->count] = member_of(c, name);
    c->names[c->count++] = name;
    return OK;
}

static err add_pixels(struct cells *c, const struct column_spec *spec)
{
    const struct ints *size = cells_attribute(spec, "size");
    const int64_t channels = *(const int64_t *)cells_attribute(spec, "channels");
    if (cells_named(c, spec->name) >= 0)
        return fail(ERR_INPUT, "another column reads a cell of its name");
    TRY(add_cell(c, spec->name));
    c->pixels[c->count - 1] = (struct shape){3, {size->at[0], size->at[size->count - 1], channels}};
    return OK;
}

static err add_cells(struct cells *c, const struct column_spec *spec)
{
    if (c->takes_pixels && cells_is(spec, "image")) return add_pixels(c, spec);
    if (!cells_is(spec, "crossed")) return add_cell(c, cell_of(c, spec));
    const struct strings *keys = cells_attribute(spec, "keys");
    for (int i = 0; i < keys->count; i++) {
        const int column = cells_column_named(c, keys->at[i]);
        TRY(column < 0 ? add_cell(c, keys->at[i]) : add_cells(c, cells_column(c, column)));
    }
    return OK;
}

err cells_find(struct cells *c)
{
    for (int i = 0; i < c->columns->count; i++) {
        const struct column_spec *spec = cells_column(c, i);
        const err e = c->is_read[i] ? add_cells(c, spec) : OK;
        if (e)
            return fail_prefix(e, "column \"%s\" (%s) cannot be exported", spec->name,
                               cells_kind(spec));
    }
    return OK;
}

/* All names, including those of cells that no column reads */
static err read_names(struct cells *c, const struct spec *spec)
{
    struct bad_rows bad = {.limit = INT64_MAX, .is_quiet = true};
    struct format_context context = c->context;
    struct row_reader *reader = NULL;
    struct data_parts *parts = NULL;
    context.bad_rows = &bad;
    const err e = parts_open_rows(&spec->data.eval, &context, &parts, &reader);
    if (!e)
        c->reader = (struct strings){
            arena_strings(c->arena, reader->cell_names, reader->cell_count), reader->cell_count};
    if (reader) reader->calls->close(reader);
    parts_free(parts);
    left_out_free(&bad.left_out);
    return e;
}

err cells_open(struct cells *c, const struct spec *spec, struct arena *arena)
{
    c->data = &spec->data;
    c->columns = &spec->data.columns;
    c->arena = arena;
    c->context = (struct format_context){.directory = spec->directory,
                                         .seed = (uint64_t)spec->seed,
                                         .later_columns = c->columns,
                                         .without_labels = true};
    if (!c->columns->count) return OK;
    c->has_texts = strcmp(spec->data.eval.format.kind->object->name, "csv") == 0;
    c->missing = cells_missing(&spec->data.eval, arena);
    return read_names(c, spec);
}

void c_write_in_comment(FILE *f, const char *text)
{
    for (; *text; text++)
        fputc(iscntrl((unsigned char)*text) || *text == '*' || *text == '\\' ? '?' : *text, f);
}

void cells_write_c_members(FILE *f, const struct cells *c)
{
    if (!c->columns->count)
        fprintf(f, "    double features[%" PRId64 "]; /* as they are stored */\n", c->features);
    for (int i = 0; i < c->count; i++) {
        const struct shape *pixels = &c->pixels[i];
        const char *type = pixels->rank ? "unsigned char" : "char";
        fprintf(f, "    const %s *%s; /* the %s \"", type, c->members[i],
                pixels->rank ? "pixels of" : "text of the cell");
        c_write_in_comment(f, c->names[i]);
        if (pixels->rank)
            fprintf(f, "\", [%" PRId64 ", %" PRId64 ", %" PRId64 "] */\n", pixels->dim[0],
                    pixels->dim[1], pixels->dim[2]);
        else
            fputs("\"; empty: none */\n", f);
    }
}
