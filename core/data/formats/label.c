/* label.c - see label.h. */
#include "core/data/formats/label.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/data/columns/items.h"

const char *const label_types[] = {
    [LABEL_CLASS] = "class", [LABEL_NUMBER] = "number", [LABEL_WORD] = "word", NULL};

bool label_has_classes(const struct label_form *form)
{
    return !form->positive && (form->type == LABEL_WORD || form->classes.count > 0);
}

enum dtype label_dtype(const struct label_form *form)
{
    return form->type == LABEL_NUMBER && !form->positive && !label_has_classes(form) ? FLOAT32
                                                                                     : INT32;
}

const char *label_positive(const struct label_form *form)
{
    return form->labels.count > 0 ? NULL : form->positive;
}

void label_store(enum dtype dtype, double label, void *to)
{
    if (dtype == INT32)
        *(int32_t *)to = (int32_t)label;
    else
        *(float *)to = (float)label;
}

/* ---- classes ---- */

static int compare(const void *a, const void *b, void *classes)
{
    const struct strings *words = classes;
    return strcmp(words->at[*(const int *)a], words->at[*(const int *)b]);
}

err label_sort_classes(struct label_form *form, struct arena *arena)
{
    struct strings *words = &form->classes;
    int *sorted = arena_array(arena, (size_t)words->count, sizeof *sorted);
    for (int i = 0; i < words->count; i++) sorted[i] = i;
    qsort_r(sorted, (size_t)words->count, sizeof *sorted, compare, words);
    for (int i = 1; i < words->count; i++)
        if (strcmp(words->at[sorted[i - 1]], words->at[sorted[i]]) == 0)
            return fail(ERR_INPUT, "\"classes\" has \"%s\" twice", words->at[sorted[i]]);
    form->sorted = sorted;
    return OK;
}

static int order_of(const struct cell *cell, const char *word)
{
    const size_t length = strlen(word);
    const int order = memcmp(cell->text, word, cell->length < length ? cell->length : length);
    return order ? order : (cell->length > length) - (cell->length < length);
}

static bool find_class(const struct label_form *form, const struct cell *cell, double *ret)
{
    int from = 0, to = form->sorted ? form->classes.count : 0;
    *ret = 0;
    while (from < to) {
        const int middle = (from + to) / 2, class = form->sorted[middle];
        const int order = order_of(cell, form->classes.at[class]);
        *ret = class;
        if (order == 0) return true;
        if (order < 0)
            to = middle;
        else
            from = middle + 1;
    }
    return !form->sorted && cell->length > 0;
}

/* ---- one word against others ---- */

static void remember(struct label_seen *seen, const struct cell *cell)
{
    char text[CELL_TEXT_MAX];
    cell_text(cell, text);
    for (int i = 0; i < seen->count; i++)
        if (strcmp(seen->others[i], text) == 0) return;
    if (seen->count < LABELS_NAMED) strcpy(seen->others[seen->count++], text);
}

/* The only value of a list, as text; false: none or several. */
static bool only_value(const struct cell *list, char text[LABEL_TEXT_MAX], struct cell *ret)
{
    struct items items = {.cell = list};
    struct item item, more;
    char buffer[ITEM_TEXT_MAX];
    size_t length;
    if (!items_next(&items, &item) || items_next(&items, &more)) return false;
    const char *from = item_text(&item, buffer, &length);
    if (length >= LABEL_TEXT_MAX) return false;
    memcpy(text, from, length);
    text[length] = '\0';
    *ret = (struct cell){.text = text, .length = length};
    return true;
}

bool label_text(const struct cell *cell, char buffer[LABEL_TEXT_MAX], struct cell *ret)
{
    *ret = *cell;
    return cell->text || only_value(cell, buffer, ret);
}

/* The common case of a class below 10. */
static bool is_digit(const struct label_form *form, const struct cell *cell)
{
    return form->type != LABEL_WORD && !form->positive && form->classes.count == 0 && cell->text &&
           cell->length == 1 && cell->text[0] >= '0' && cell->text[0] <= '9';
}

/* There is no default for labels: one cannot train on a row without. */
bool label_read(const struct label_form *form, const struct cell *given, struct label_seen *seen,
                double *ret)
{
    char buffer[LABEL_TEXT_MAX];
    struct cell text;
    const struct cell *cell = &text;
    if (is_digit(form, given)) {
        *ret = given->text[0] - '0';
        return true;
    }
    if (!label_text(given, buffer, &text)) return false;
    if (label_has_classes(form)) return find_class(form, cell, ret);
    if (form->positive) {
        *ret = cell->length == strlen(form->positive) &&
               !memcmp(cell->text, form->positive, cell->length);
        seen->has_positive |= *ret == 1;
        if (!seen->has_positive) remember(seen, cell);
        return cell->length > 0;
    }
    if (!cell_number(cell, ret) || !isfinite((float)*ret)) return false;
    return form->type == LABEL_NUMBER || (*ret == floor(*ret) && fabs(*ret) <= INT32_MAX);
}

const char *label_expected(const struct label_form *form, const struct cell *got)
{
    double number;
    if (label_has_classes(form)) return "a word that is a class";
    if (form->positive) return "a label";
    if (form->type == LABEL_NUMBER) return "a number";
    return !got->text || cell_is_missing(got) || cell_number(got, &number)
               ? "a class (a whole number)"
               : "a class (a whole number; or a word, with \"label_type\": \"word\" or "
                 "\"positive\": \"...\")";
}

const char *label_none(const struct cell *got)
{
    return got->length ? "" : ": a row without a label is broken (\"bad_rows\" leaves some out)";
}

struct label_seen label_seen_begin(bool has_others, struct label_seen *all)
{
    return (struct label_seen){.all = all, .has_positive = has_others && !all};
}

static void add_seen(struct label_seen *all, const struct label_seen *seen)
{
    all->has_positive |= seen->has_positive;
    for (int i = 0; i < seen->count; i++)
        remember(all, &(struct cell){.text = seen->others[i], .length = strlen(seen->others[i])});
}

err label_check_seen(const struct label_form *form, const struct label_seen *seen, const char *file)
{
    char others[LABELS_NAMED * (CELL_TEXT_MAX + 4)] = "";
    if (seen->all) {
        add_seen(seen->all, seen);
        return OK;
    }
    if (!form->positive || seen->has_positive || seen->count == 0) return OK;
    for (int i = 0; i < seen->count; i++)
        snprintf(others + strlen(others), sizeof others - strlen(others), "%s\"%s\"", i ? ", " : "",
                 seen->others[i]);
    return fail(ERR_INPUT, "%s: no label is \"%s\" (\"positive\"); some that are: %s", file,
                form->positive, others);
}
