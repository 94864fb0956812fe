/* label.h - a cell as a label: a class, a number, or one word against all others. */
#ifndef CORE_DATA_FORMATS_LABEL_H
#define CORE_DATA_FORMATS_LABEL_H

#include "core/base/fields/fields.h"
#include "core/data/cells.h"

struct label_form {
    int type;             /* index into label_types */
    const char *positive; /* NULL: the label is a number */
};

/* What a file's labels were so far, as long as none was the positive one; zeroed at first */
enum { LABELS_NAMED = 3 };
struct label_seen {
    bool has_positive;
    int count;
    char others[LABELS_NAMED][CELL_TEXT_MAX];
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
/* Of text, or of a list of one. False: it is none, and what was expected is said. */
bool label_read(const struct label_form *, const struct cell *, struct label_seen *, double *ret);
const char *label_expected(const struct label_form *);
/* After the last row. ERR_INPUT: none had the positive word, which is a slip of the pen: all
 * examples would be the same. */
err label_check_seen(const struct label_form *, const struct label_seen *, const char *file);

#endif
