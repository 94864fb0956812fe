/* label.c - see label.h. */
#include "core/data/formats/label.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/data/columns/items.h"

enum { LABEL_TEXT_MAX = 1024 }; /* of one in a list */

const char *const label_types[] = {[LABEL_CLASS] = "class", [LABEL_NUMBER] = "number", NULL};

enum dtype label_dtype(const struct label_form *form)
{
    return form->positive || form->type == LABEL_CLASS ? INT32 : FLOAT32;
}

static void remember(struct label_seen *seen, const struct cell *cell)
{
    char text[CELL_TEXT_MAX];
    cell_text(cell, text);
    for (int i = 0; i < seen->count; i++)
        if (strcmp(seen->others[i], text) == 0) return;
    if (seen->count < LABELS_NAMED) strcpy(seen->others[seen->count++], text);
}

/* The one value of a list as text; false: there is not one. */
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

/* Nothing stands for a missing label: a row without one cannot be learned from. */
bool label_read(const struct label_form *form, const struct cell *cell, struct label_seen *seen,
                double *ret)
{
    char text[LABEL_TEXT_MAX];
    struct cell only;
    if (!cell->text) return only_value(cell, text, &only) && label_read(form, &only, seen, ret);
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

const char *label_expected(const struct label_form *form)
{
    if (form->positive) return "a label";
    return form->type == LABEL_CLASS ? "a class (a whole number)" : "a number";
}

err label_check_seen(const struct label_form *form, const struct label_seen *seen, const char *file)
{
    char others[LABELS_NAMED * (CELL_TEXT_MAX + 4)] = "";
    if (!form->positive || seen->has_positive || seen->count == 0) return OK;
    for (int i = 0; i < seen->count; i++)
        snprintf(others + strlen(others), sizeof others - strlen(others), "%s\"%s\"", i ? ", " : "",
                 seen->others[i]);
    return fail(ERR_INPUT, "%s: no label is \"%s\" (\"positive\"); some that are: %s", file,
                form->positive, others);
}
