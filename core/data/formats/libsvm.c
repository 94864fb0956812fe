/* libsvm: per line a label and "index:value" for nonzero values; indices from 1. Plain or packed.
 *
 * A row has a single cell, "features": ids, which are indices minus 1, and their values. Without
 * data.columns, features become float32 [features], zeros included. A comment goes from # to the
 * end of the line. Rows to predict may lack the label.
 */
#include "core/data/columns/column.h"
#include "core/data/columns/decimal.h"
#include "core/data/formats/delimited.h"
#include "core/data/formats/label.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct libsvm_attributes {
    struct strings file;
    int64_t features;
    struct label_form label_form;
};

enum { PAIRS_GROW_MIN = 256 };
static const char COMMENT = '#';

struct libsvm {
    struct row_reader reader; /* first: the public part */
    const struct libsvm_attributes *attributes;
    struct input *input;
    struct delimited text;
    bool without_labels;
    struct feature_scaling scaling;
    struct label_seen seen;
    int64_t *ids; /* [capacity] */
    double *values;
    int64_t capacity;
    struct cell cell; /* "features" */
    double *sums;     /* [features] zeros, except while a row is made */
    struct column stored[STORED_COLUMNS];
};

/* ---- rows ---- */

static err bad_word(const struct libsvm *s, const struct cell *word, const char *expected)
{
    char text[CELL_TEXT_MAX];
    const char *colon = memchr(word->text, ':', word->length),
               *from = colon ? colon + 1 : word->text;
    const struct cell number = {.text = from, .length = word->length - (size_t)(from - word->text)};
    return fail(ERR_INPUT, "%s: line %lld: expected %s, got \"%s\"%s", s->reader.name,
                (long long)s->text.line, expected, cell_text(word, text),
                cell_number_hint(&number));
}

static err make_room(struct libsvm *s)
{
    if (s->cell.count < s->capacity) return OK;
    const int64_t capacity = s->capacity ? 2 * s->capacity : PAIRS_GROW_MIN;
    int64_t *ids = realloc(s->ids, (size_t)capacity * sizeof *ids);
    if (ids) s->ids = ids;
    double *values = realloc(s->values, (size_t)capacity * sizeof *values);
    if (values) s->values = values;
    if (!ids || !values) return fail(ERR_MEMORY, "%s: no memory for a row", s->reader.name);
    s->capacity = capacity;
    return OK;
}

/* Reads an index, mostly at most seven digits; returns the colon after it, or NULL: none. The word
 * is NUL-terminated, which ends the digits. */
static const char *read_index(const struct cell *word, uint64_t *ret)
{
    const char *at = word->text;
    const uint64_t head = decimal_load(at, word->length);
    const size_t digits = decimal_find(head, ':');
    uint64_t index;
    if (digits > 0 && digits < DECIMAL_BYTES && decimal_digits(head, digits, &index)) {
        *ret = index;
        return at + digits;
    }
    for (*ret = 0; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(*ret, 10, ret) ||
            __builtin_add_overflow(*ret, (uint64_t)(*at - '0'), ret))
            return NULL;
    return *at == ':' ? at : NULL;
}

/* Reads "7:0.5" */
static bool read_pair(const struct cell *word, int64_t *ret_id, double *ret_value)
{
    uint64_t index;
    double value;
    const char *const colon = read_index(word, &index);
    if (!colon || index < 1) return false;
    const struct cell right = {.text = colon + 1,
                               .length = word->length - (size_t)(colon + 1 - word->text)};
    if (!decimal_plain(right.text, right.length, &value) && !cell_number(&right, &value))
        return false;
    if (!isfinite((float)value)) return false;
    *ret_id = id_of_64_bits(index - 1);
    *ret_value = value;
    return true;
}

/* *ret: the word up to a comment that begins within it: "7:0.5#it". true: there is one */
static bool cut_comment(const struct cell *word, struct cell *ret)
{
    const char *comment = memchr(word->text, COMMENT, word->length);
    *ret = *word;
    if (comment) ret->length = (size_t)(comment - word->text);
    return comment != NULL;
}

/* What was expected, with hints on common variants */
static const char *expected_pair(const struct cell *word)
{
    const char *end = word->text + word->length;
    const char *colon = memchr(word->text, ':', word->length);
    if (word->length > 4 && strncmp(word->text, "qid:", 4) == 0)
        return "index:value, and no query of a ranking, which is not read here "
               "(sed 's/ qid:[^ ]*//' leaves it out)";
    if (colon && memchr(colon + 1, ':', (size_t)(end - colon - 1)))
        return "index:value, and no field:index:value as of libffm (sed -E 's/ [0-9]+:([0-9]+:)/ "
               "\\1/g' leaves the fields out)";
    return "index:value, indices from 1";
}

static err read_pairs(struct libsvm *s, int first)
{
    bool is_over = false;
    s->cell.count = 0;
    for (int i = first; i < s->text.count && !is_over; i++) {
        const struct cell *word = &s->text.cells[i];
        struct cell cut = *word;
        if (word->text[0] == COMMENT) break;
        TRY(make_room(s));
        int64_t *const id = &s->ids[s->cell.count];
        double *const value = &s->values[s->cell.count];
        is_over = !read_pair(word, id, value);
        if (is_over && !(cut_comment(word, &cut) && read_pair(&cut, id, value)))
            return bad_word(s, word, expected_pair(word));
        s->text.cells[i].length = cut.length;
        s->cell.count++;
    }
    s->cell.written = &s->text.cells[first];
    s->cell.ids = s->ids;
    s->cell.numbers = s->values;
    return OK;
}

/* A row to predict may begin with a pair. */
static bool has_label(const struct libsvm *s)
{
    const struct cell *first = &s->text.cells[0];
    return !s->without_labels || !memchr(first->text, ':', first->length);
}

static bool is_comment(const struct libsvm *s)
{
    return s->text.cells[0].text[0] == COMMENT;
}

/* Next line that is not a comment */
static err next_line(struct libsvm *s, bool *ret_found)
{
    err e;
    do e = delimited_next(&s->text, ret_found);
    while (!e && *ret_found && is_comment(s));
    s->reader.is_row_broken = e && s->text.is_passed;
    return e;
}

static err next_row(struct row_reader *reader, struct row *ret, bool *ret_found)
{
    struct libsvm *s = (struct libsvm *)reader;
    TRY(next_line(s, ret_found));
    const struct label_form *form = &s->attributes->label_form;
    if (!*ret_found) return label_check_seen(form, &s->seen, s->reader.name);
    reader->is_row_broken = true;
    *ret = (struct row){.cells = &s->cell, .number = s->text.line, .label_text = &s->text.cells[0]};
    const struct cell *label = &s->text.cells[0];
    if (!s->without_labels && !label_read(form, label, &s->seen, &ret->label))
        return bad_word(s, label, label_expected(form, label));
    return read_pairs(s, has_label(s) ? 1 : 0);
}

static err skip_row(struct row_reader *reader, struct row_place *ret, bool *ret_found)
{
    struct delimited *text = &((struct libsvm *)reader)->text;
    TRY(delimited_skip(text, COMMENT, ret_found));
    *ret = (struct row_place){text->begin, text->line};
    return OK;
}

static err seek_row(struct row_reader *reader, const struct row_place *place)
{
    return delimited_seek(&((struct libsvm *)reader)->text, place->byte, place->number);
}

static void close_reader(struct row_reader *reader)
{
    struct libsvm *s = (struct libsvm *)reader;
    delimited_close(&s->text);
    input_close(s->input);
    free(s->ids);
    free(s->values);
    free(s->sums);
    free(s);
}

/* ---- dense ---- */

static err too_wide(const struct libsvm *s, int64_t id)
{
    return fail(ERR_INPUT, "%s: line %lld: index %lld, \"features\" is %lld", s->reader.name,
                (long long)s->text.line, (long long)id + 1, (long long)s->attributes->features);
}

static err too_large(const struct libsvm *s, int64_t id)
{
    return fail(ERR_INPUT, "%s: line %lld: the values of index %lld add up to no finite number",
                s->reader.name, (long long)s->text.line, (long long)id + 1);
}

/* Values of the same index are added, as with a column of ids. */
static err make_row(const struct row_reader *reader, const struct row *row, void *label,
                    void *features)
{
    const struct libsvm *s = (const struct libsvm *)reader;
    const struct cell *cell = &row->cells[0];
    const struct feature_scaling *scaling = &s->scaling;
    const int64_t width = s->attributes->features;
    const float zero = (float)(scaling->scale * 0.0 + scaling->offset);
    float *to = features;
    for (int64_t i = 0; i < cell->count; i++)
        if (cell->ids[i] >= width) return too_wide(s, cell->ids[i]);
    for (int64_t i = 0; i < width; i++) to[i] = zero;
    for (int64_t i = 0; i < cell->count; i++) s->sums[cell->ids[i]] += cell->numbers[i];
    for (int64_t i = 0; i < cell->count; i++)
        to[cell->ids[i]] = (float)(scaling->scale * s->sums[cell->ids[i]] + scaling->offset);
    for (int64_t i = 0; i < cell->count; i++) s->sums[cell->ids[i]] = 0;
    for (int64_t i = 0; i < cell->count; i++)
        if (!isfinite(to[cell->ids[i]])) return too_large(s, cell->ids[i]);
    label_store(reader->label_dtype, row->label, label);
    return OK;
}

static err read_libsvm(const void *attributes, const struct format_context *context,
                       struct row_reader **ret)
{
    static const struct row_calls calls = {next_row, skip_row, seek_row, close_reader,
                                           .make = make_row};
    static const char *const cell_names[] = {"features"};
    const struct libsvm_attributes *a = attributes;
    struct libsvm *s = calloc(1, sizeof *s);
    if (!s) return fail(ERR_MEMORY, "no memory to read %s", context->files[0]);
    s->reader = (struct row_reader){.calls = &calls,
                                    .name = context->files[0],
                                    .numbered = "line",
                                    .cell_names = cell_names,
                                    .cell_count = 1,
                                    .label_cell = -1,
                                    .cut = (uint64_t)COMMENT,
                                    .label_dtype = label_dtype(&a->label_form),
                                    .positive = label_positive(&a->label_form)};
    s->seen = label_seen_begin(context->has_other_parts, context->labels);
    s->attributes = a;
    s->without_labels = context->without_labels;
    s->scaling = feature_scaling_of(context);
    err e = input_open(context, context->files[0], &s->input);
    if (!e) s->reader.name = input_path(s->input);
    s->reader.input = s->input;
    if (!e) e = delimited_open(s->input, WORDS, &s->text);
    s->text.skips_broken = bad_rows_are_allowed(context->bad_rows);
    if (e)
        close_reader(&s->reader);
    else
        *ret = &s->reader;
    return e;
}

static err read_stored(const void *attributes, const struct format_context *context,
                       struct row_reader **ret)
{
    const struct libsvm_attributes *a = attributes;
    if (a->features == 0)
        return fail(ERR_INPUT, "%s: \"features\": expected how many there are, or data.columns",
                    context->files[0]);
    TRY(read_libsvm(attributes, context, ret));
    struct libsvm *s = (struct libsvm *)*ret;
    s->sums = calloc((size_t)a->features, sizeof *s->sums);
    if (!s->sums) {
        close_reader(&s->reader);
        return fail(ERR_MEMORY, "%s: no memory for a row", context->files[0]);
    }
    s->stored[LABELS] = (struct column){.name = LABELS_NAME, .dtype = s->reader.label_dtype};
    s->stored[FEATURES] =
        (struct column){.name = FEATURES_NAME, .dtype = FLOAT32, .shape = {1, {a->features}}};
    s->reader.stored = s->stored;
    return OK;
}

static const struct field fields[] = {
    {.name = "file",
     .type = FIELD_FILES,
     .offset = offsetof(struct libsvm_attributes, file),
     .may_differ = true,
     .help = "lines of a label and index:value pairs, indices from 1, values of the same index are "
             "summed; plain or compressed: a file, a list, a pattern, or @ and a file of names"},
    {.name = "features",
     .type = FIELD_INT,
     .offset = offsetof(struct libsvm_attributes, features),
     .fallback = "0",
     .max = 1 << 24,
     .help =
         "number of features per row, zeros included; 0: data.columns reads the cell \"features\""},
    LABEL_FIELDS(libsvm_attributes),
    {0},
};

const struct format format_libsvm = {
    .object = {"libsvm", "sparse rows of a label and index:value pairs", fields,
               sizeof(struct libsvm_attributes)},
    .read = read_libsvm,
    .read_stored = read_stored,
    .scales = true,
    .label_form = offsetof(struct libsvm_attributes, label_form),
};
