/* named_cells.c - see named_cells.h. */
#include "core/data/formats/named_cells.h"

#include <stdlib.h>
#include <string.h>

#include "core/data/columns/column.h"

enum { NAMES_GROW_MIN = 64, VALUES_GROW_MIN = 4096 };

static err no_memory(void)
{
    return fail(ERR_MEMORY, "no memory for the cells of a row");
}

/* ---- names ---- */

static int compare(const char *a, size_t a_length, const char *b, size_t b_length)
{
    const int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order ? order : (a_length > b_length) - (a_length < b_length);
}

/* Index in `sorted` of the name, or where it would be inserted. */
static int place_of(const struct named_cells *c, const char *name, size_t length)
{
    int from = 0, to = c->count;
    while (from < to) {
        const int middle = (from + to) / 2;
        const int cell = c->sorted[middle];
        if (compare(c->names[cell], c->lengths[cell], name, length) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static bool is_called(const struct named_cells *c, int cell, const char *name, size_t length)
{
    return c->lengths[cell] == length && memcmp(c->names[cell], name, length) == 0;
}

static int index_of(const struct named_cells *c, const char *name, size_t length)
{
    const int place = place_of(c, name, length);
    const bool is_known = place < c->count && is_called(c, c->sorted[place], name, length);
    return is_known ? c->sorted[place] : -1;
}

static err make_room(struct named_cells *c)
{
    if (c->count < c->capacity) return OK;
    const int capacity = c->capacity ? 2 * c->capacity : NAMES_GROW_MIN;
    char **names = realloc(c->names, (size_t)capacity * sizeof *names);
    if (names) c->names = names;
    size_t *lengths = realloc(c->lengths, (size_t)capacity * sizeof *lengths);
    if (lengths) c->lengths = lengths;
    struct cell *cells = realloc(c->cells, (size_t)capacity * sizeof *cells);
    if (cells) c->cells = cells;
    bool *is_nested = realloc(c->is_nested, (size_t)capacity * sizeof *is_nested);
    if (is_nested) c->is_nested = is_nested;
    int *sorted = realloc(c->sorted, (size_t)capacity * sizeof *sorted);
    if (sorted) c->sorted = sorted;
    if (!names || !lengths || !cells || !is_nested || !sorted) return no_memory();
    c->capacity = capacity;
    return OK;
}

static err add_name(struct named_cells *c, const char *name, size_t length)
{
    const int place = place_of(c, name, length);
    if (c->count == NAMED_CELLS_MAX)
        return fail(ERR_INPUT, "more than %d names", (int)NAMED_CELLS_MAX);
    if (memchr(name, '\0', length)) return fail(ERR_INPUT, "a name with a NUL byte in it");
    TRY(make_room(c));
    char *copy = strndup(name, length);
    if (!copy) return no_memory();
    memmove(c->sorted + place + 1, c->sorted + place, (size_t)(c->count - place) * sizeof(int));
    c->names[c->count] = copy;
    c->lengths[c->count] = length;
    c->cells[c->count] = (struct cell){0};
    c->is_nested[c->count] = false;
    c->sorted[place] = c->count++;
    return OK;
}

static err add_names(struct named_cells *c, const struct strings *names)
{
    for (int i = 0; i < names->count; i++) {
        const char *name = names->at[i];
        const size_t length = strlen(name);
        if (index_of(c, name, length) >= 0)
            return fail(ERR_INPUT, "\"names\" has \"%s\" twice", name);
        TRY(add_name(c, name, length));
    }
    return OK;
}

/* Adds the cells of columns with a default, which rows may lack. */
static err add_optional(struct named_cells *c, const struct named_attributes *a,
                        const struct format_context *context)
{
    const struct objects *columns =
        context->later_columns ? context->later_columns : context->columns;
    for (int i = 0; columns && i < columns->count; i++) {
        const char *name =
            column_optional_cell((const struct column_spec *)columns->at + i, a->missing.count > 0);
        if (name && index_of(c, name, strlen(name)) < 0) TRY(add_name(c, name, strlen(name)));
    }
    return OK;
}

/* The label is read even if "names" does not list it. */
err named_cells_open(struct named_cells *c, const struct named_attributes *a,
                     const struct format_context *context)
{
    const struct strings *given = context->cell_names.count ? &context->cell_names : &a->names;
    *c = (struct named_cells){.is_looking = given->count == 0};
    c->seen = label_seen_begin(context->has_other_parts, context->labels);
    c->missing = &a->missing;
    TRY(add_names(c, given));
    TRY(add_optional(c, a, context));
    c->given = c->count;
    if (context->without_labels || a->label_form.labels.count > 0) return OK;
    if (!a->label) return fail(ERR_INPUT, "expected \"label\" or \"labels\", got none");
    const size_t length = strlen(a->label);
    if (index_of(c, a->label, length) < 0) TRY(add_name(c, a->label, length));
    c->given = c->count;
    return OK;
}

void named_cells_close(struct named_cells *c)
{
    for (int i = 0; i < c->count; i++) free(c->names[i]);
    free(c->names);
    free(c->lengths);
    free(c->cells);
    free(c->is_nested);
    free(c->sorted);
    free(c->wanted);
    free(c->nested);
    free(c->ids);
    free(c->numbers);
    free(c->words);
    *c = (struct named_cells){0};
}

err named_cells_narrow(struct named_cells *c, const int *cells, int count)
{
    c->wanted = malloc((size_t)count * sizeof *c->wanted);
    if (!c->wanted) return no_memory();
    memcpy(c->wanted, cells, (size_t)count * sizeof *c->wanted);
    c->wanted_count = count;
    return OK;
}

int named_cells_wanted(const struct named_cells *c, const char *name, size_t length)
{
    for (int i = 0; i < c->wanted_count; i++)
        if (is_called(c, c->wanted[i], name, length)) return c->wanted[i];
    return -1;
}

/* Rows mostly have their cells in the same order, so c->expected is tried first. */
err named_cells_find(struct named_cells *c, const char *name, size_t length, struct cell **ret)
{
    int cell = c->wanted ? named_cells_wanted(c, name, length) : c->expected;
    *ret = NULL;
    if (c->wanted && cell < 0) return OK;
    if (cell >= c->count || !is_called(c, cell, name, length)) {
        cell = index_of(c, name, length);
        if (cell < 0 && !c->is_looking) return OK;
        if (cell < 0) {
            TRY(add_name(c, name, length));
            cell = c->count - 1;
        }
    }
    c->expected = cell + 1;
    *ret = &c->cells[cell];
    **ret = (struct cell){0};
    return OK;
}

err named_cells_pass(struct named_cells *c, const char *name, bool *ret)
{
    int cell = index_of(c, name, strlen(name));
    *ret = c->is_looking && (cell < 0 || cell >= c->given);
    if (!*ret) return OK;
    if (cell < 0) {
        TRY(add_name(c, name, strlen(name)));
        cell = c->count - 1;
    }
    c->is_nested[cell] = true;
    return OK;
}

/* ret_places: new indices of names that are kept; -1 for others. Returns how many are kept. */
static int settle_names(struct named_cells *c, int *ret_places)
{
    int kept = 0;
    for (int i = 0; i < c->count; i++) {
        char *name = c->names[i];
        ret_places[i] = c->is_nested[i] ? -1 : kept;
        if (!c->is_nested[i]) {
            c->names[kept] = name;
            c->lengths[kept++] = c->lengths[i];
        } else if (c->nested) {
            free(name);
        } else {
            c->nested = name;
        }
    }
    return kept;
}

err named_cells_looked(struct named_cells *c)
{
    int *places = malloc(((size_t)c->count + 1) * sizeof *places), *to = c->sorted;
    if (!places) return no_memory();
    const int kept = settle_names(c, places);
    for (int i = 0; i < c->count; i++)
        if (places[c->sorted[i]] >= 0) *to++ = places[c->sorted[i]];
    free(places);
    c->count = kept;
    c->is_looking = false;
    return OK;
}

/* ---- values ---- */

static err make_room_for_values(struct named_cells *c, size_t values)
{
    if (values <= c->capacity_of_values) return OK;
    const size_t capacity = values + VALUES_GROW_MIN;
    free(c->ids);
    free(c->numbers);
    free(c->words);
    c->capacity_of_values = 0;
    c->ids = malloc(capacity * sizeof *c->ids);
    c->numbers = malloc(capacity * sizeof *c->numbers);
    c->words = malloc(capacity * sizeof *c->words);
    if (!c->ids || !c->numbers || !c->words) return no_memory();
    c->capacity_of_values = capacity;
    return OK;
}

err named_cells_clear(struct named_cells *c, size_t values)
{
    for (int i = 0; i < c->count; i++) c->cells[i] = (struct cell){.is_absent = true};
    c->id_count = c->number_count = c->word_count = 0;
    c->expected = 0;
    return make_room_for_values(c, values);
}

void named_cells_add_id(struct named_cells *c, struct cell *cell, int64_t id)
{
    if (!cell->ids) cell->ids = c->ids + c->id_count;
    c->ids[c->id_count++] = id;
    cell->count++;
}

void named_cells_add_number(struct named_cells *c, struct cell *cell, double number)
{
    if (!cell->numbers) cell->numbers = c->numbers + c->number_count;
    c->numbers[c->number_count++] = number;
    cell->count++;
}

void named_cells_add_word(struct named_cells *c, struct cell *cell, const char *text, size_t length)
{
    const struct item word = item_trimmed(text, text + length);
    if (cell_is_one_of(word.text, word.length, c->missing)) return;
    if (!cell->words) cell->words = c->words + c->word_count;
    cell->missing = c->missing;
    c->words[c->word_count++] = (struct cell_word){text, length};
    cell->count++;
}

/* ---- the label ---- */

/* Another cell with a similar name, for messages */
static struct suggestion near_label(const struct named_cells *c)
{
    const char *const *names = (const char *const *)c->names;
    const struct suggestion before = suggest(names[c->label], names, c->label);
    const int behind = c->label + 1;
    return before.text[0] ? before : suggest(names[c->label], names + behind, c->count - behind);
}

err named_cells_label(struct named_cells *c, const struct named_attributes *a, bool without_labels,
                      double *ret)
{
    char text[CELL_TEXT_MAX], buffer[ITEM_TEXT_MAX];
    struct items items = {.cell = &c->cells[c->label]};
    struct item item = {.text = ""};
    struct cell cell = {0};
    *ret = 0;
    if (without_labels || a->label_form.labels.count > 0 ||
        label_read(&a->label_form, items.cell, &c->seen, ret))
        return OK;
    items_next(&items, &item);
    cell.text = item_text(&item, buffer, &cell.length);
    return fail(ERR_INPUT, "\"%s\"%s: expected %s, got %s\"%s\"%s", a->label,
                cell.length ? "" : near_label(c).text, label_expected(&a->label_form, &cell),
                items.cell->count > 1 ? "a list that begins with " : "", cell_text(&cell, text),
                label_none(&cell));
}

void named_cells_describe(struct named_cells *c, const struct named_attributes *a,
                          struct row_reader *reader)
{
    c->label = a->label ? index_of(c, a->label, strlen(a->label)) : -1;
    reader->cell_names = (const char *const *)c->names;
    reader->cell_count = c->count;
    reader->nested = c->nested;
    reader->label_cell = c->label;
    reader->may_lack_any = a->missing.count > 0;
    reader->label_dtype = label_dtype(&a->label_form);
    reader->positive = label_positive(&a->label_form);
}
