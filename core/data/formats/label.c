/* label.c - see label.h. */
#include "core/data/formats/label.h"

#include <math.h>
#include <string.h>

const char *const label_types[] = {[LABEL_CLASS] = "class", [LABEL_NUMBER] = "number", NULL};

enum dtype label_dtype(const struct label_form *form)
{
    return form->positive || form->type == LABEL_CLASS ? INT32 : FLOAT32;
}

/* Nothing stands for a missing label: a row without one cannot be learned from. */
bool label_read(const struct label_form *form, const struct cell *cell, double *ret)
{
    if (form->positive) {
        *ret = cell->length == strlen(form->positive) &&
               !memcmp(cell->text, form->positive, cell->length);
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
