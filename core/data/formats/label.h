/* label.h - reads a cell as a label: a class, a number, a word that is a class, or one word against
 * all others. */
#ifndef CORE_DATA_FORMATS_LABEL_H
#define CORE_DATA_FORMATS_LABEL_H

#include "core/base/fields/fields.h"
#include "core/data/cells.h"
#include "core/graph/graph.h"

struct label_form {
    int type;               /* index into label_types */
    const char *positive;   /* the word that counts as 1, all others as 0; NULL: none */
    struct strings classes; /* the words, by class; none: labels are numbers, or the words are
                               not known yet */
    const int *sorted;      /* classes in order of their words (label_sort_classes) */
    struct objects labels;  /* of struct label_spec (core/data/labels.h): several labels instead
                               of this one, if rows have cells */
};
extern const struct object label_spec_object;

/* Samples of a file's labels, collected until the positive word occurs */
enum { LABELS_NAMED = 3 };
struct label_seen {
    struct label_seen *all; /* of all files that are read one after the other; NULL: none */
    bool has_positive;
    int count;
    char others[LABELS_NAMED][CELL_TEXT_MAX];
};

extern const char *const label_types[]; /* ends with NULL */
enum { LABEL_CLASS, LABEL_NUMBER, LABEL_WORD };
enum { LABEL_CLASSES_MAX = 65536, LABEL_TEXT_MAX = 1024 /* of a label in a list */ };

/* An additional field for formats whose rows have cells */
#define LABELS_FIELD(attributes)                                                                   \
    {                                                                                              \
        .name = "labels", .type = FIELD_OBJECTS,                                                   \
        .offset = offsetof(struct attributes, label_form.labels), .fallback = "[]",                \
        .count_max = HEADS_MAX, .object = &label_spec_object,                                      \
        .help = "several labels instead of one, referred to by heads (dtrain help label)"          \
    }

/* Fields of a format's table, for its member `label_form` */
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

/* Whether labels are words, each of them a class. */
bool label_has_classes(const struct label_form *);
/* Sets `sorted`, for searching. ERR_INPUT: a word is listed twice. */
err label_sort_classes(struct label_form *, struct arena *);
/* The label's text, NUL-terminated; copied to buffer if the cell is a list of one. False: a list
 * without values, or with several. */
bool label_text(const struct cell *, char buffer[LABEL_TEXT_MAX], struct cell *ret);

enum dtype label_dtype(const struct label_form *);
const char *label_positive(const struct label_form *); /* NULL: none, or there are several labels */
void label_store(enum dtype, double label, void *to);  /* INT32 or FLOAT32 */
/* Reads a label from text or a list of one. False: it is not a label; label_expected says what was
 * expected. Until classes are sorted, any word is class 0. */
bool label_read(const struct label_form *, const struct cell *, struct label_seen *, double *ret);
const char *label_expected(const struct label_form *, const struct cell *got);
/* To append to that message if there is no label at all; else "". */
const char *label_none(const struct cell *got);
/* Before the first row. has_others: the positive word may be in other files. */
struct label_seen label_seen_begin(bool has_others, struct label_seen *all);
/* After the last row. ERR_INPUT: no label was the positive word, most likely a typo: all examples
 * would have the same label. With `all`, adds the file to it instead, to be checked after the last
 * file. */
err label_check_seen(const struct label_form *, const struct label_seen *, const char *file);

#endif
