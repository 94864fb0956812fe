/* cells.h - rows as a file has them: mostly named cells, before they become columns of a batch.
 *
 * A format with such rows has a reader of them. A column (columns/) is a function of the cells of
 * one row, so rows can be read by any thread and in any order.
 */
#ifndef CORE_DATA_CELLS_H
#define CORE_DATA_CELLS_H

#include "core/graph/batch.h"

struct input;

struct cell_word {
    const char *text; /* not NUL-terminated; without blanks at its ends */
    size_t length;
};

/* Text from the file, trimmed; or, if text is NULL, a list of ids, of numbers, of words, or of ids
 * each with a number. */
struct cell {
    const char *text; /* NUL-terminated; may also contain NULs */
    size_t length;
    int64_t count;
    const int64_t *ids;
    const double *numbers;
    const struct cell_word *words;
    const struct strings
        *missing; /* words that mean "no value", for `words` and what they are split into */
    const struct cell *written; /* [count] ids as written in the file, if in another form; NULL:
                                   none are */
    bool is_absent;             /* the row lacks the cell; false: it may be empty */
};

struct row {
    const struct cell *cells;      /* in number and order as cell_names of the reader */
    int64_t number;                /* of the line, the record, or the row, from 1 */
    double label;                  /* 0 where the reader was opened without labels */
    const struct cell *label_text; /* the label as written, if it is not one of the cells; else
                                      NULL */
};

/* Where a row begins. */
struct row_place {
    uint64_t byte;  /* offset in the unpacked file */
    int64_t number; /* as in struct row */
};

enum { STORED_COLUMNS = 2 };
struct row_reader {
    const struct row_calls *calls;
    const char *name;              /* for messages: the file */
    const char *numbered;          /* "line" or "row": what the rows' numbers count */
    const char *const *cell_names; /* [cell_count]; borrowed */
    int cell_count;
    const char *nested; /* name of a member that holds an object or the like, so is no cell;
                           NULL: none was seen */
    int label_cell;     /* the cell that the label is made of; -1: none */
    int64_t rows;       /* how many will come, if known in advance; else 0 */
    int64_t passed;     /* how many are skipped before the first one */
    enum dtype label_dtype;
    const char *positive; /* the label that counts as 1, all others as 0; NULL: none */
    bool may_lack_any;    /* rows, or whole files, may lack any of the cells: the source has
                             "missing" words */
    bool is_empty;        /* no row was found on opening, so nothing of the above is known */
    bool is_all_broken;   /* likewise: only broken rows, which next() reports */
    bool is_row_broken;   /* with ERR_INPUT of next(): only this row is broken; the next one may be
                             read */
    uint64_t cut;         /* a digest of the settings that rows depend on: readers with an equal
                             one find the same rows in a file */
    struct input *input;  /* the file; NULL: none */

    /* [STORED_COLUMNS] labels and features, `at` NULL, of a reader that makes columns of its rows
     * itself (make()); NULL: it has cells */
    const struct column *stored;
    const char *use; /* with `stored`, for messages: which parts of the file are labels,
                        features; NULL: all */
    const char *const *feature_names; /* [feature_count] with `stored`: names of the features'
                                         elements */
    int feature_count;                /* 0: the file does not name them */
};

struct row_calls {
    /* The row is valid until the next call. *ret_found is false after the last one. */
    err (*next)(struct row_reader *, struct row *ret, bool *ret_found);
    /* Skips the next row, looking only for its end. NULL, as seek: rows do not come from a file. */
    err (*skip)(struct row_reader *, struct row_place *ret, bool *ret_found);
    /* Makes the row that skip() found at this place the next one. */
    err (*seek)(struct row_reader *, const struct row_place *);
    void (*close)(struct row_reader *);
    /* From now on only these cells are used: others may be left empty, and errors in them ignored.
     * Called once; `cells` is borrowed. ERR_MEMORY. NULL: narrowing would save nothing. */
    err (*narrow)(struct row_reader *, const int *cells, int count);
    /* With `stored`: writes the row's labels and features. ERR_INPUT names the place. */
    err (*make)(const struct row_reader *, const struct row *, void *labels, void *features);
};

/* Index of the cell with the name; -1: none. */
int row_reader_cell(const struct row_reader *, const char *name);
/* Returns ERR_INPUT: no cell of that name; lists those that exist. */
err row_reader_fail_cell(const struct row_reader *, const char *name);

/* Whether the whole cell is one finite decimal number. */
bool cell_number(const struct cell *, double *ret);
/* Common words for "no value", in their usual spelling; ends with NULL. */
extern const char *const cell_missing_words[];
/* Whether it is empty or one of cell_missing_words, in upper or lower case. */
bool cell_is_missing(const struct cell *);
struct strings;
/* Whether the text is one of the words; an empty one is not. */
bool cell_is_one_of(const char *text, size_t length, const struct strings *words);

enum { CELL_TEXT_MAX = 44 };
/* For messages: shortened, with control bytes escaped as \x1b. Returns text. */
const char *cell_text(const struct cell *, char text[CELL_TEXT_MAX]);
/* If the text is nearly a number: advice on how to write it, to append to a message; else "". */
const char *cell_number_hint(const struct cell *);

#endif
