/* labels.c - see labels.h. */
#include "core/data/labels.h"

#include <math.h>
#include <string.h>

#include "core/data/columns/column.h"
#include "core/data/formats/label.h"

enum { LABEL_NUMBERS_MAX = 4096 };

static const struct field fields[] = {
    FIELD_OF("name", STRING, struct label_spec, name, .help = "name by which heads refer to it"),
    FIELD_OF("cell", STRING, struct label_spec, cell, .fallback = "null",
             .help = "the cell it is read from; null: the cell of the same name"),
    FIELD_OF("positive", STRING, struct label_spec, positive, .fallback = "null",
             .help =
                 "the word that counts as 1, all others as 0; null: labels are numbers or classes"),
    FIELD_OF("classes", STRINGS, struct label_spec, classes, .fallback = "[]",
             .count_max = LABEL_CLASSES_MAX,
             .help = "the words of the label; the first is class 0"),
    FIELD_OF("threshold", JSON, struct label_spec, threshold, .fallback = "null",
             .help = "the label is 1 for numbers of at least this, 0 below: 4 turns ratings of 4 "
                     "and 5 into 1; null: numbers as they are"),
    FIELD_OF("scale", FLOAT, struct label_spec, scale, .fallback = "1", .min = -1e30, .max = 1e30,
             .help = "label = scale * number + offset"),
    FIELD_OF("offset", FLOAT, struct label_spec, offset, .fallback = "0", .min = -1e30, .max = 1e30,
             .help = "label = scale * number + offset"),
    FIELD_OF("one_hot", BOOL, struct label_spec, one_hot, .fallback = "false",
             .help = "the cell is a list of zeros and a single 1, whose index is the class"),
    FIELD_OF("count", INT, struct label_spec, count, .fallback = "1", .min = 1,
             .max = LABEL_NUMBERS_MAX,
             .help = "number of values in the cell; each is a label, unless one_hot"),
    FIELD_OF(
        "separator", STRING, struct label_spec, separator, .fallback = "null",
        .help =
            "separator between several numbers in one cell; null: one value per cell, or a list"),
    {0},
};

const struct object label_spec_object = {"label", "a label that a head learns", fields,
                                         sizeof(struct label_spec)};

const struct objects *labels_listed(const struct source_spec *source)
{
    static const struct objects none;
    if (!source->format.kind) return &none;
    const size_t offset = ((const struct format *)source->format.kind->descriptor)->label_form;
    if (!offset) return &none;
    return &((const struct label_form *)((const char *)source->format.attributes + offset))->labels;
}

/* ---- checks ---- */

static bool has_threshold(const struct label_spec *label)
{
    return json_is_number(label->threshold);
}

static err check_label(const struct label_spec *label)
{
    const bool is_scaled = label->scale != 1 || label->offset != 0;
    const int forms = (label->positive != NULL) + (label->classes.count > 0) +
                      (has_threshold(label) || is_scaled) + label->one_hot;
    if (label->threshold && !json_is_null(label->threshold) && !has_threshold(label))
        return fields_fail_expected("threshold", "a number or null", label->threshold);
    if (forms > 1)
        return fail(ERR_INPUT, "expected at most one of positive, classes, one_hot, and threshold "
                               "or scale");
    if (label->one_hot && label->count < 2)
        return fail(ERR_INPUT, "count: how many numbers a one_hot list has, 2 at least");
    return label->separator ? separator_check(label->separator) : OK;
}

err labels_check(const struct source_spec *source, const struct objects *columns)
{
    const struct objects *labels = labels_listed(source);
    if (labels->count > 0 && columns->count == 0)
        return fail(ERR_INPUT, "labels: they are made of cells as data.columns are, of which there "
                               "are none");
    for (int i = 0; i < labels->count; i++) {
        const struct label_spec *label = (const struct label_spec *)labels->at + i;
        const err e = check_label(label);
        if (e) return fail_prefix(e, "labels[%d] (\"%s\")", i, label->name);
    }
    return OK;
}

/* ---- as a column ---- */

/* Without labels the cell may be missing. */
static err open(struct column_maker *m, const struct column_context *context)
{
    const struct label_spec *label = m->attributes;
    const struct row_reader *reader = context->reader;
    const char *cell = label->cell ? label->cell : m->name;
    m->made.dtype = FLOAT32;
    m->made.shape = (struct shape){1, {label->one_hot ? 1 : label->count}};
    m->made.is_label = true;
    m->awaits_word = label->positive != NULL;
    m->cell = context->format->without_labels ? -1 : row_reader_cell(reader, cell);
    if (m->cell < 0 && !context->format->without_labels)
        return fail_prefix(row_reader_fail_cell(reader, cell), "cell");
    return m->cell < 0 ? OK : column_check_cell(reader, cell, m->cell);
}

static bool is_word(const struct item *item, const char *word)
{
    char buffer[ITEM_TEXT_MAX];
    size_t length;
    const char *text = item_text(item, buffer, &length);
    return length == strlen(word) && memcmp(text, word, length) == 0;
}

static err read_class(const struct label_spec *label, const struct item *item, double *ret)
{
    for (int i = 0; i < label->classes.count; i++) {
        *ret = i;
        if (is_word(item, label->classes.at[i])) return OK;
    }
    return item_refuse(item, "a word of \"classes\"");
}

static err read_item(const struct label_spec *label, const struct item *item, double *ret)
{
    if (label->positive) {
        *ret = is_word(item, label->positive);
        return OK;
    }
    if (label->classes.count > 0) return read_class(label, item, ret);
    if (!item_number(item, ret)) return item_refuse(item, "a number");
    if (has_threshold(label))
        *ret = *ret >= json_number_value(label->threshold);
    else
        *ret = label->scale * *ret + label->offset;
    return isfinite((float)*ret) ? OK : fail(ERR_INPUT, "%.9g is too large", *ret);
}

/* Index of the number that is 1 while all others are 0 */
static err read_one_hot(const float *numbers, int64_t count, float *ret)
{
    int ones = 0;
    for (int64_t i = 0; i < count; i++) {
        if (numbers[i] == 1) *ret = (float)i;
        ones += numbers[i] == 1 ? 1 : numbers[i] == 0 ? 0 : 2;
    }
    return ones == 1 ? OK : fail(ERR_INPUT, "expected one 1 among zeros (\"one_hot\")");
}

static err make(struct column_maker *m, const struct cell *cells, void *ret)
{
    const struct label_spec *label = m->attributes;
    float numbers[LABEL_NUMBERS_MAX] = {0}, *to = ret;
    struct items items = {.cell = m->cell < 0 ? NULL : &cells[m->cell],
                          .separator = label->separator};
    struct item item;
    int64_t count = 0;
    memset(to, 0, column_row_bytes(&m->made));
    if (m->cell < 0) return OK;
    for (; count <= label->count && items_next(&items, &item); count++) {
        double number = 0;
        if (count == label->count) continue;
        TRY(read_item(label, &item, &number));
        m->weighted += label->positive && number == 1;
        numbers[count] = (float)number;
    }
    if (count != label->count)
        return fail(ERR_INPUT, "expected %lld value%s (\"count\"), got %s", (long long)label->count,
                    label->count == 1 ? "" : "s",
                    count == 0             ? "none"
                    : count < label->count ? "fewer"
                                           : "more");
    if (label->one_hot) return read_one_hot(numbers, count, to);
    memcpy(to, numbers, (size_t)count * sizeof *to);
    return OK;
}

static const struct column_kind label_kind = {
    .object = {"label", "a label", fields, sizeof(struct label_spec)},
    .open = open,
    .make = make,
};

const struct objects *labels_beside(const struct objects *columns, const struct source_spec *source,
                                    struct arena *arena)
{
    static const struct kind kind = {&label_kind.object, &label_kind};
    const struct objects *labels = labels_listed(source);
    if (labels->count == 0) return columns;
    const size_t count = (size_t)(columns->count + labels->count);
    struct column_spec *all = arena_array(arena, count, sizeof *all);
    memcpy(all, columns->at, (size_t)columns->count * sizeof *all);
    for (int i = 0; i < labels->count; i++) {
        struct label_spec *label = (struct label_spec *)labels->at + i;
        all[columns->count + i] =
            (struct column_spec){.column = {&kind, label}, .name = label->name};
    }
    struct objects *ret = arena_new(arena, sizeof *ret);
    *ret = (struct objects){all, (int)count};
    return ret;
}
