/* named_cells.h - the cells of a row that says by itself what they are called, in any order, and
 * not all of them (tf.Example, JSON).
 *
 * What they are called must be known before the first row is given out: by the spec, by the files
 * before, or by a look at the first rows of the file, which are then read again.
 */
#ifndef CORE_DATA_FORMATS_NAMED_CELLS_H
#define CORE_DATA_FORMATS_NAMED_CELLS_H

#include "core/data/data.h"
#include "core/data/formats/label.h"

enum { ROWS_LOOKED_AT = 1000, NAMED_CELLS_MAX = 65536 };

/* What the spec says of such a format. */
struct named_attributes {
    struct strings file, names, missing;
    const char *label;
    struct label_form label_form;
};

/* Rows of a format's table of fields; its attributes are the above. `what` has the help of file. */
#define NAMED_FIELDS(what)                                                                         \
    {.name = "file",                                                                               \
     .type = FIELD_FILES,                                                                          \
     .offset = offsetof(struct named_attributes, file),                                            \
     .may_differ = true,                                                                           \
     .help = what ": a file, a list, a pattern, @ and a file of names"},                           \
        {.name = "label",                                                                          \
         .type = FIELD_STRING,                                                                     \
         .offset = offsetof(struct named_attributes, label),                                       \
         .fallback = "null",                                                                       \
         .help = "name of the label; null: where \"labels\" are listed, of which one alone may "   \
                 "have a threshold, a scale or one_hot"},                                          \
        LABELS_FIELD(named_attributes), LABEL_FIELDS(named_attributes),                            \
        {.name = "missing",                                                                        \
         .type = FIELD_STRINGS,                                                                    \
         .offset = offsetof(struct named_attributes, missing),                                     \
         .fallback = "[]",                                                                         \
         .count_max = MISSING_WORDS_MAX,                                                           \
         .help = "words that count as no value, such as NA and NULL; with any, rows need not "     \
                 "have the cell of any column"},                                                   \
    {                                                                                              \
        .name = "names", .type = FIELD_STRINGS,                                                    \
        .offset = offsetof(struct named_attributes, names), .fallback = "[]",                      \
        .count_max = NAMED_CELLS_MAX,                                                              \
        .help = "cells to read, by name; none: all that occur in the first 1000 rows"              \
    }

struct named_cells {
    char **names;
    size_t *lengths;    /* [count] of the names */
    struct cell *cells; /* as many; of one row */
    bool *is_nested;    /* as many; when looking: holds others in some row, and is no cell */
    char *nested;       /* one such name that was seen; NULL: none */
    int count, capacity;
    int given;   /* names that the spec says or that were in the files before */
    int *sorted; /* [count] indices, by name */
    struct label_seen seen;
    const struct strings *missing; /* words that count as none */
    int label;                     /* -1: the rows have none, and none is needed */
    int expected;                  /* the cell that comes next, if this row is as the last one */
    bool is_looking;               /* unknown names become known */
    int *wanted;                   /* [wanted_count] of the cells; NULL: all are */
    int wanted_count;

    /* values of the row */
    int64_t *ids;
    double *numbers;
    struct cell_word *words;
    size_t id_count, number_count, word_count, capacity_of_values;
};

/* Known from the spec or the files before, or else is_looking is set. */
err named_cells_open(struct named_cells *, const struct named_attributes *,
                     const struct format_context *);
void named_cells_close(struct named_cells *);

/* From now on only these are found. ERR_MEMORY. */
err named_cells_narrow(struct named_cells *, const int *cells, int count);
/* -1: it is not among those; what row_calls.narrow has said. */
int named_cells_wanted(const struct named_cells *, const char *name, size_t length);

/* A new row, with room for this many values of each kind. ERR_MEMORY. */
err named_cells_clear(struct named_cells *, size_t values);
/* NULL: nobody wants it. ERR_INPUT: more than NAMED_CELLS_MAX. */
err named_cells_find(struct named_cells *, const char *name, size_t length, struct cell **ret);
/* Of a value that holds others; *ret: whoever looks passes over it, as nobody has said that it is a
 * cell. ERR_INPUT as above. */
err named_cells_pass(struct named_cells *, const char *name, bool *ret);
/* What is to be known of names is known. ERR_MEMORY. */
err named_cells_looked(struct named_cells *);
void named_cells_add_id(struct named_cells *, struct cell *, int64_t);
void named_cells_add_number(struct named_cells *, struct cell *, double);
void named_cells_add_word(struct named_cells *, struct cell *, const char *, size_t length);

/* Of the row; 0 without. ERR_INPUT: what was expected. */
err named_cells_label(struct named_cells *, const struct named_attributes *, bool without_labels,
                      double *ret);
/* What a look at the first rows has found, which ends with the file or with enough sound ones */
struct looked {
    int sound, broken;
};
static inline void looked_note(struct looked *l, err e, bool found)
{
    l->sound += !e && found;
    l->broken += e && l->broken < ROWS_LOOKED_AT;
}
static inline bool looked_is_empty(const struct looked *l)
{
    return l->sound == 0 && l->broken == 0;
}
static inline bool looked_is_broken(const struct looked *l)
{
    return l->sound == 0 && l->broken > 0;
}

/* Cells and label of a reader */
void named_cells_describe(struct named_cells *, const struct named_attributes *,
                          struct row_reader *);

#endif
