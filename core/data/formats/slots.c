/* slots: lines of slot:value pairs, as in click logs of PaddleRec. Plain or packed.
 *
 * A slot is a cell: the list of its values in the line, in order; empty if the line has none. The
 * value is all after the first colon, and may contain a colon (7:3:0.5 is id 3 with weight 0.5 for
 * a column of ids). A first word without a colon is the label.
 */
#include <stdlib.h>
#include <string.h>

#include "core/data/formats/named_lines.h"

struct attributes {
    struct named_attributes named; /* first: common to such formats */
    bool value_first;
};

struct pair {
    int cell, order; /* order: index in the line */
    struct cell_word value;
};

struct slots {
    struct named_lines lines; /* first: the public part */
    struct named_cells cells;
    bool value_first;
    struct pair *pairs; /* [CELLS_MAX] of the line */
    int pair_count;
};

static const char LABEL[] = "label";

static err add_pair(struct slots *s, struct cell_word slot, struct cell_word value)
{
    struct named_cells *cells = &s->cells;
    struct cell *cell;
    if (slot.length == 0 || value.length == 0)
        return fail(ERR_INPUT, "a %s is missing at the colon", slot.length ? "value" : "slot");
    TRY(named_cells_find(cells, slot.text, slot.length, &cell));
    if (cell)
        s->pairs[s->pair_count] = (struct pair){(int)(cell - cells->cells), s->pair_count, value};
    s->pair_count += cell != NULL;
    return OK;
}

static err read_word(struct slots *s, const struct cell *word, bool is_first)
{
    const char *colon = memchr(word->text, ':', word->length);
    const struct cell_word whole = {word->text, word->length};
    if (!colon && is_first) return add_pair(s, (struct cell_word){LABEL, strlen(LABEL)}, whole);
    if (!colon)
        return fail(ERR_INPUT, "expected %s",
                    s->value_first ? "value:slot" : "slot:value; only the first word is a label");
    const struct cell_word left = {word->text, (size_t)(colon - word->text)};
    const struct cell_word right = {colon + 1, word->length - left.length - 1};
    return s->value_first ? add_pair(s, right, left) : add_pair(s, left, right);
}

static int compare(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    return x->cell != y->cell ? x->cell - y->cell : x->order - y->order;
}

/* Sorts pairs, since values of a slot need not be adjacent. */
static void give_values(struct slots *s)
{
    struct named_cells *cells = &s->cells;
    qsort(s->pairs, (size_t)s->pair_count, sizeof *s->pairs, compare);
    for (int i = 0; i < s->pair_count; i++) {
        const struct pair *pair = &s->pairs[i];
        named_cells_add_word(cells, &cells->cells[pair->cell], pair->value.text,
                             pair->value.length);
    }
}

static err read_pairs(struct named_lines *lines)
{
    struct slots *s = (struct slots *)lines;
    char text[CELL_TEXT_MAX];
    TRY(named_cells_clear(&s->cells, (size_t)lines->text.count));
    s->pair_count = 0;
    for (int i = 0; i < lines->text.count; i++) {
        const struct cell *word = &lines->text.cells[i];
        const err e = read_word(s, word, i == 0);
        if (e) return fail_prefix(e, "word %d, \"%s\"", i + 1, cell_text(word, text));
    }
    give_values(s);
    return OK;
}

static void drop(struct named_lines *lines)
{
    struct slots *s = (struct slots *)lines;
    named_cells_close(&s->cells);
    free(s->pairs);
}

static err read_slots(const void *attributes, const struct format_context *context,
                      struct row_reader **ret)
{
    const struct attributes *a = attributes;
    struct slots *s = calloc(1, sizeof *s);
    if (!s) return fail(ERR_MEMORY, "no memory to read %s", context->files[0]);
    s->pairs = malloc(CELLS_MAX * sizeof *s->pairs);
    if (!s->pairs) {
        free(s);
        return fail(ERR_MEMORY, "no memory to read %s", context->files[0]);
    }
    s->value_first = a->value_first;
    s->lines = (struct named_lines){.attributes = &a->named,
                                    .cells = &s->cells,
                                    .delimiter = WORDS,
                                    .read = read_pairs,
                                    .drop = drop};
    return named_lines_open(&s->lines, context, ret);
}

static const struct field fields[] = {
    NAMED_FIELDS("files of lines of slot:value pairs, plain or packed"),
    FIELD_OF("value_first", BOOL, struct attributes, value_first, .fallback = "false",
             .help = "the pairs are value:slot"),
    {0},
};

const struct format format_slots = {
    .object = {"slots",
               "lines of slot:value pairs, of which data.columns reads the slots; a first word "
               "without a colon is the slot \"label\"",
               fields, sizeof(struct attributes)},
    .read = read_slots,
    .label_form = offsetof(struct attributes, named.label_form),
};
