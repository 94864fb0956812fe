/* named_cells.h - cells of rows that name their own cells, in any order and not all of them
 * (tf.Example, JSON).
 *
 * The names must be known before the first row is returned: from the spec, from earlier files, or
 * from the first rows of the file, which are then read again.
 */
#ifndef CORE_DATA_FORMATS_NAMED_CELLS_H
#define CORE_DATA_FORMATS_NAMED_CELLS_H

#include "core/data/data.h"
#include "core/data/formats/label.h"

enum { ROWS_LOOKED_AT = 1000, NAMED_CELLS_MAX = 65536 };

/* The attributes of such a format. */
struct named_attributes {
    struct strings file, names, missing;
    const char *label;
    struct label_form label_form;
};

/* Fields of a format's table; its attributes are the above. `what`: begin of the help of "file". */
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
    size_t *lengths;    /* [count] of names */
    struct cell *cells; /* [count] of one row */
    bool *is_nested;    /* [count] while is_looking: in some row it holds other values, so it is
                           not a cell */
    char *nested;       /* one such name; NULL: none was seen */
    int count, capacity;
    int given;   /* number of names from the spec or earlier files */
    int *sorted; /* [count] indices, by name */
    struct label_seen seen;
    const struct strings *missing; /* words that mean "no value" */
    int label;                     /* cell; -1: none, and none is needed */
    int expected;                  /* the cell that comes next if this row is like the last one */
    bool is_looking;               /* unknown names are added */
    int *wanted;                   /* [wanted_count] indices of cells; NULL: all */
    int wanted_count;

    /* values of the row */
    int64_t *ids;
    double *numbers;
    struct cell_word *words;
    size_t id_count, number_count, word_count, capacity_of_values;
};

/* Takes names from the spec or earlier files; if there are none, sets is_looking. */
err named_cells_open(struct named_cells *, const struct named_attributes *,
                     const struct format_context *);
void named_cells_close(struct named_cells *);

/* From now on only these cells are found. ERR_MEMORY. */
err named_cells_narrow(struct named_cells *, const int *cells, int count);
/* The cell with this name, if row_calls.narrow asked for it; -1: it did not. */
int named_cells_wanted(const struct named_cells *, const char *name, size_t length);

/* Starts a new row, with room for this many values of each kind. ERR_MEMORY. */
err named_cells_clear(struct named_cells *, size_t values);
/* *ret NULL: the cell is not wanted. ERR_INPUT: more than NAMED_CELLS_MAX. */
err named_cells_find(struct named_cells *, const char *name, size_t length, struct cell **ret);
/* For a value that holds others, such as an object. *ret true: skip it, since names are being
 * looked for and the spec does not name it as a cell. ERR_INPUT as above. */
err named_cells_pass(struct named_cells *, const char *name, bool *ret);
/* Ends is_looking: names are complete. ERR_MEMORY. */
err named_cells_looked(struct named_cells *);
void named_cells_add_id(struct named_cells *, struct cell *, int64_t);
void named_cells_add_number(struct named_cells *, struct cell *, double);
void named_cells_add_word(struct named_cells *, struct cell *, const char *, size_t length);

/* The label of the row; 0 if without_labels. ERR_INPUT: what was expected. */
err named_cells_label(struct named_cells *, const struct named_attributes *, bool without_labels,
                      double *ret);
/* Counts of rows while looking for names, which ends with the file or after enough good rows */
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

/* Sets the reader's cells and label */
void named_cells_describe(struct named_cells *, const struct named_attributes *,
                          struct row_reader *);

#endif
