/* label.h - a cell as a label: a class, a number, or one word against all others. */
#ifndef CORE_DATA_FORMATS_LABEL_H
#define CORE_DATA_FORMATS_LABEL_H

#include "core/base/fields/fields.h"
#include "core/data/cells.h"

struct label_form {
    int type;             /* index into label_types */
    const char *positive; /* NULL: the label is a number */
};

extern const char *const label_types[]; /* ends with NULL */
enum { LABEL_CLASS, LABEL_NUMBER };

/* Rows of a format's table of fields, for its member `label_form` */
#define LABEL_FIELDS(attributes)                                                                   \
    {.name = "label_type",                                                                         \
     .type = FIELD_ENUM,                                                                           \
     .offset = offsetof(struct attributes, label_form.type),                                       \
     .fallback = "\"class\"",                                                                      \
     .choices = label_types,                                                                       \
     .help = "class: whole numbers; number: any"},                                                 \
    {                                                                                              \
        .name = "positive", .type = FIELD_STRING,                                                  \
        .offset = offsetof(struct attributes, label_form.positive), .fallback = "null",            \
        .help = "the label that counts as 1, all others as 0: \">50K\"; null: labels are numbers"  \
    }

enum dtype label_dtype(const struct label_form *);
/* False: it is none, and what was expected is said. */
bool label_read(const struct label_form *, const struct cell *, double *ret);
const char *label_expected(const struct label_form *);

#endif
