/* label.h - a cell as a label: a class, a number, a word that is a class, or one word against all
 * others. */
#ifndef CORE_DATA_FORMATS_LABEL_H
#define CORE_DATA_FORMATS_LABEL_H

#include "core/base/fields/fields.h"
#include "core/data/cells.h"
#include "core/graph/graph.h"

struct label_form {
    int type;               /* index into label_types */
    const char *positive;   /* NULL: there is no such word */
    struct strings classes; /* the words, by class; none: labels are numbers, or not known yet */
    const int *sorted;      /* classes by their words (label_sort_classes) */
    struct objects labels;  /* of struct label_spec (core/data/labels.h): several instead of
                               this one; where rows have cells */
};
extern const struct object label_spec_object;

/* What a file's labels were so far, as long as none was the positive one */
enum { LABELS_NAMED = 3 };
struct label_seen {
    struct label_seen *all; /* of the files that are read one behind the other; NULL: of none */
    bool has_positive;
    int count;
    char others[LABELS_NAMED][CELL_TEXT_MAX];
};

extern const char *const label_types[]; /* ends with NULL */
enum { LABEL_CLASS, LABEL_NUMBER, LABEL_WORD };
enum { LABEL_CLASSES_MAX = 65536, LABEL_TEXT_MAX = 1024 /* of one that is in a list */ };

/* The same of a format whose rows have cells, beside those below */
#define LABELS_FIELD(attributes)                                                                   \
    {                                                                                              \
        .name = "labels", .type = FIELD_OBJECTS,                                                   \
        .offset = offsetof(struct attributes, label_form.labels), .fallback = "[]",                \
        .count_max = HEADS_MAX, .object = &label_spec_object,                                      \
        .help = "several labels instead of one, referred to by heads (dtrain help label)"          \
    }

/* Rows of a format's table of fields, for its member `label_form` */
#define LABEL_FIELDS(attributes)                                                                   \
    {.name = "label_type",                                                                         \
     .type = FIELD_ENUM,                                                                           \
     .offset = offsetof(struct attributes, label_form.type),                                       \
     .fallback = "\"class\"",                                                                      \
     .choices = label_types,                                                                       \
     .help =                                                                                       \
         "class: whole numbers; number: any; word: classes are the words of data.train, sorted "   \
         "by their bytes, and kept beside the checkpoints"},                                       \
        {.name = "classes",                                                                        \
         .type = FIELD_STRINGS,                                                                    \
         .offset = offsetof(struct attributes, label_form.classes),                                \
         .fallback = "[]",                                                                         \
         .count_max = LABEL_CLASSES_MAX,                                                           \
         .group = "label",                                                                         \
         .help = "the words of the labels; the first is class 0"},                                 \
    {                                                                                              \
        .name = "positive", .type = FIELD_STRING,                                                  \
        .offset = offsetof(struct attributes, label_form.positive), .fallback = "null",            \
        .group = "label",                                                                          \
        .help = "the label that counts as 1, all others as 0: \">50K\"; null: labels are numbers " \
                "or classes"                                                                       \
    }

/* Labels are words, each of which is a class. */
bool label_has_classes(const struct label_form *);
/* Makes the order by which a class is found. ERR_INPUT: a word is there twice. */
err label_sort_classes(struct label_form *, struct arena *);
/* What stands there, with a NUL behind; of a list of one in buffer. False: nothing, or more. */
bool label_text(const struct cell *, char buffer[LABEL_TEXT_MAX], struct cell *ret);

enum dtype label_dtype(const struct label_form *);
const char *label_positive(const struct label_form *); /* NULL: none, or each of several its own */
void label_store(enum dtype, double label, void *to);  /* INT32 or FLOAT32 */
/* Of text, or of a list of one. False: it is none, and what was expected is said. As long as the
 * classes are not sorted any word is class 0. */
bool label_read(const struct label_form *, const struct cell *, struct label_seen *, double *ret);
const char *label_expected(const struct label_form *, const struct cell *got);
/* For the end of that message where there is no label at all; else "". */
const char *label_none(const struct cell *got);
/* Before the first row. has_others: other files may have what this one has none of. */
struct label_seen label_seen_begin(bool has_others, struct label_seen *all);
/* After the last row. ERR_INPUT: none had the positive word, which is a slip of the pen: all
 * examples would be the same. Where there is `all`, it is told of the file, and asked later. */
err label_check_seen(const struct label_form *, const struct label_seen *, const char *file);

#endif
