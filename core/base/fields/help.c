/* help.c - the tables as text for a terminal, 100 columns wide, and as JSON for tools that generate
 * pages. */
#include "core/base/fields/help.h"

#include "core/base/fields/fields_inside.h"

#include <stdlib.h>
#include <string.h>

enum { HELP_COLUMNS = 100, HELP_TEXT_COLUMN_MAX = 48, HELP_GAP = 2, HELP_NEST = 2 };

/* Writes text from `column` on, where the cursor is, with further lines indented to it. */
static void print_wrapped(FILE *out, const char *text, int column)
{
    int at = column;
    while (*text) {
        const int length = (int)strcspn(text, " ");
        if (at > column && at + 1 + length > HELP_COLUMNS) {
            fprintf(out, "\n%*s", column, "");
            at = column;
        } else if (at > column) {
            fputc(' ', out);
            at++;
        }
        fprintf(out, "%.*s", length, text);
        at += length;
        text += length + strspn(text + length, " ");
    }
    fputc('\n', out);
}

/* One row of a table: the first part, then text from `column` on. */
static void print_row(FILE *out, const char *head, const char *text, int column)
{
    const int length = (int)strlen(head);
    if (length + HELP_GAP <= column)
        fprintf(out, "%s%*s", head, column - length, "");
    else
        fprintf(out, "%s\n%*s", head, column, "");
    print_wrapped(out, text, column);
}

static const char *type_word(const struct field *field)
{
    static const char *const words[] = {
        [FIELD_BOOL] = "boolean",   [FIELD_INT] = "integer",    [FIELD_FLOAT] = "number",
        [FIELD_SECONDS] = "number", [FIELD_STRING] = "string",  [FIELD_ENUM] = "word",
        [FIELD_INTS] = "integers",  [FIELD_FLOATS] = "numbers", [FIELD_STRINGS] = "strings",
        [FIELD_FILES] = "files",    [FIELD_OBJECT] = "object",  [FIELD_OBJECTS] = "objects",
        [FIELD_VARIANT] = NULL,     [FIELD_VARIANTS] = "list",  [FIELD_JSON] = "JSON",
    };
    const char *word = words[field->type];
    return word ? word : field->kinds->noun;
}

static bool is_list(enum field_type type)
{
    return type == FIELD_INTS || type == FIELD_FLOATS || type == FIELD_STRINGS ||
           type == FIELD_OBJECTS || type == FIELD_VARIANTS;
}

/* Between the details of one field. */
static void add_separator(struct text *text, size_t start)
{
    if (text->length > start) text_add(text, "; ");
}

static void add_kinds(struct text *text, const struct kinds *kinds)
{
    const char *names[KINDS_MAX];
    const int count = kinds_names(kinds, names);
    text_add(text, "one of: ");
    text_add_names(text, names, count);
    text_add(text, "; see dtrain help %s", kinds->noun);
    if (count > 0) text_add(text, " %s", names[0]);
}

static void add_count(struct text *text, const struct field *field)
{
    const int max = field_count_max(field);
    if (field->count_min == max)
        text_add(text, "%d values", max);
    else if (max < FIELD_LIST_MAX)
        text_add(text, "%d to %d values", field->count_min, max);
    else
        text_add(text, "at least %d values", field->count_min);
}

static void add_default(struct text *text, const struct field *field)
{
    const char *fallback = field->fallback;
    if (!fallback) {
        text_add(text, "required");
    } else if (field_is_null_by_default(field)) {
        text_add(text, "optional");
    } else if (*fallback == '"' && !strchr(fallback, ' ')) {
        json_t *json = field_fallback(field); /* a word, without its quotes */
        text_add(text, "default %s", json_is_string(json) ? json_string_value(json) : fallback);
        json_decref(json);
    } else {
        text_add(text, "default %s", fallback);
    }
}

/* help (range; choices; default; environment) */
static void describe(struct text *text, const struct field *field)
{
    text_add(text, "%s (", field->help ? field->help : "");
    if (field->stands_for) {
        if (field->letter) text_add(text, "or -%c %s; ", field->letter, type_word(field));
        text_add(text, "the same as --set %s=...)", field->stands_for);
        return;
    }
    const size_t start = text->length;
    text_add_bounds(text, field);
    if (is_list(field->type) && (field->count_min > 0 || field->count_max > 0)) {
        add_separator(text, start);
        add_count(text, field);
    }
    if (field->choices) {
        add_separator(text, start);
        text_add(text, "one of: ");
        text_add_names(text, field->choices, field_choices_count(field));
    }
    if (field->kinds) {
        add_separator(text, start);
        add_kinds(text, field->kinds);
    }
    add_separator(text, start);
    add_default(text, field);
    if (field->environment) text_add(text, "; environment %s", field->environment);
    text_add(text, ")");
}

/* The first part of a row: "name  type" with the types in one column, or "--name=TYPE". */
struct heads {
    int indent;
    int name_width; /* of the longest name; 0: flags */
};

static bool is_hidden(const struct field *field, const struct heads *heads)
{
    return heads->name_width == 0 && !field->help;
}

static void add_head(struct text *text, const struct heads *heads, const struct field *field)
{
    const char *word = type_word(field);
    text_add(text, "%*s", heads->indent, "");
    if (heads->name_width > 0)
        text_add(text, "%-*s  %s", heads->name_width, field->name, word);
    else if (field->type == FIELD_BOOL)
        text_add(text, "--%s", field->name);
    else
        text_add(text, "--%s=%s", field->name, word);
}

/* The column where texts of a table begin: after its longest head, up to a limit. */
static int text_column(const struct object *object, const struct heads *heads)
{
    int column = 0;
    for (int i = 0; i < fields_count(object); i++) {
        struct text head = {.length = 0};
        if (is_hidden(&object->fields[i], heads)) continue;
        add_head(&head, heads, &object->fields[i]);
        const int wanted = (int)head.length + HELP_GAP;
        if (wanted > column) column = wanted;
    }
    return column < HELP_TEXT_COLUMN_MAX ? column : HELP_TEXT_COLUMN_MAX;
}

static void print_nested(FILE *out, const struct object *object, int indent);

static void print_fields(FILE *out, const struct object *object, const struct heads *heads)
{
    const int column = text_column(object, heads);
    for (int i = 0; i < fields_count(object); i++) {
        const struct field *field = &object->fields[i];
        struct text head = {.length = 0}, text = {.length = 0};
        if (is_hidden(field, heads)) continue;
        add_head(&head, heads, field);
        describe(&text, field);
        print_row(out, head.at, text.at, column);
        if (field->object) print_nested(out, field->object, heads->indent + HELP_NEST);
    }
}

/* Recursive tables are cut at the depth where the parser refuses them. */
static void print_nested(FILE *out, const struct object *object, int indent)
{
    if (indent <= FIELD_DEPTH_MAX * HELP_NEST) fields_help(out, object, indent);
}

void fields_help(FILE *out, const struct object *object, int indent)
{
    struct heads heads = {.indent = indent, .name_width = 1};
    for (int i = 0; i < fields_count(object); i++) {
        const int length = (int)strlen(object->fields[i].name);
        if (length > heads.name_width) heads.name_width = length;
    }
    print_fields(out, object, &heads);
}

/* ---- as JSON ---- */

static json_t *list_fields(const struct object *object, const struct heads *heads, int depth);

/* "text" is the field's text in the help, with all details. */
static json_t *field_json(const struct field *field, const struct heads *heads, int depth)
{
    struct text text = {.length = 0};
    describe(&text, field);
    json_t *json = json_pack("{s:s, s:s, s:s}", "name", field->name, "type", type_word(field),
                             "text", text.at);
    if (field->choices) {
        json_t *choices = json_array();
        for (int i = 0; field->choices[i]; i++)
            json_array_append_new(choices, json_string(field->choices[i]));
        json_object_set_new(json, "choices", choices);
    }
    if (field->object && depth < FIELD_DEPTH_MAX)
        json_object_set_new(json, "fields", list_fields(field->object, heads, depth + 1));
    return json;
}

static json_t *list_fields(const struct object *object, const struct heads *heads, int depth)
{
    json_t *list = json_array();
    for (int i = 0; i < fields_count(object); i++)
        if (!is_hidden(&object->fields[i], heads))
            json_array_append_new(list, field_json(&object->fields[i], heads, depth));
    return list;
}

json_t *fields_json(const struct object *object)
{
    return list_fields(object, &(struct heads){.name_width = 1}, 0);
}

/* The document of help_document_open(). */
static struct {
    FILE *out; /* NULL: none is open */
    char *text;
    size_t bytes, taken; /* of text; taken: those that are in parts already */
    json_t *parts;
} document;

FILE *help_document_open(void)
{
    document.out = open_memstream(&document.text, &document.bytes);
    document.taken = 0;
    document.parts = json_array();
    return document.out;
}

static void take_text(void)
{
    fflush(document.out);
    const size_t bytes = document.bytes - document.taken;
    if (bytes > 0)
        json_array_append_new(document.parts,
                              json_pack("{s:s%}", "text", document.text + document.taken, bytes));
    document.taken = document.bytes;
}

json_t *help_document_close(void)
{
    take_text();
    fclose(document.out);
    free(document.text);
    document.out = NULL;
    return document.parts;
}

/* false: `out` is not the document's stream. */
static bool take_flags(FILE *out, const struct object *object)
{
    if (!document.out || out != document.out) return false;
    take_text();
    json_t *flags = list_fields(object, &(struct heads){.name_width = 0}, 0);
    json_array_append_new(document.parts, json_pack("{s:o}", "flags", flags));
    return true;
}

/* ---- lists of flags and kinds ---- */

void flags_help(FILE *out, const struct object *object)
{
    if (take_flags(out, object)) return;
    print_fields(out, object, &(struct heads){.indent = HELP_NEST, .name_width = 0});
}

void kinds_help(FILE *out, const struct kinds *kinds)
{
    const char *names[KINDS_MAX];
    const int count = kinds_names(kinds, names);
    int column = 0;
    for (int i = 0; i < count; i++) {
        const int wanted = HELP_NEST + (int)strlen(names[i]) + HELP_GAP;
        if (wanted > column) column = wanted;
    }
    for (int i = 0; i < count; i++) {
        const char *summary = kinds->at(i)->object->summary;
        help_row(out, names[i], summary ? summary : "", column);
    }
}

void help_row(FILE *out, const char *name, const char *text, int column)
{
    struct text head = {.length = 0};
    text_add(&head, "%*s%s", HELP_NEST, "", name);
    print_row(out, head.at, text, column);
}

void help_title(FILE *out, const char *name, const char *text)
{
    fprintf(out, "%s: ", name);
    print_wrapped(out, text, (int)strlen(name) + 2);
}

void help_text(FILE *out, const char *text, int column)
{
    fprintf(out, "%*s", column, "");
    print_wrapped(out, text, column);
}
