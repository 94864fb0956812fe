/* cells.h - rows as a file has them: most often named cells, before they are columns of a batch.
 *
 * A format that has such rows gives a reader of them. A column (columns/) is a function of the
 * cells of one row, so it does not matter who reads the rows, and in which order.
 */
#ifndef CORE_DATA_CELLS_H
#define CORE_DATA_CELLS_H

#include "core/graph/batch.h"

struct input;

struct cell_word {
    const char *text; /* with no NUL behind; blanks at its ends are no part of a word */
    size_t length;
};

/* Text as it stands in the file, trimmed; or, where text is NULL, a list: of ids, each with its
 * number where there are both, of numbers alone, or of words. */
struct cell {
    const char *text; /* ends with a NUL, which may also occur inside */
    size_t length;
    int64_t count;
    const int64_t *ids;
    const double *numbers;
    const struct cell_word *words;
    const struct strings
        *missing; /* words that stand for no value, of the words or of parts of them */
    const struct cell *written; /* [count] ids that stand otherwise in the file; NULL: none do */
    bool is_absent;             /* the row has no such cell, not even an empty one */
};

struct row {
    const struct cell *cells;      /* as many, and in the order, as the reader names them */
    int64_t number;                /* of the line, the record, or the row, from 1 */
    double label;                  /* 0 where the reader was opened without labels */
    const struct cell *label_text; /* as it stands, where that is none of the cells; else NULL */
};

/* Where a row begins. */
struct row_place {
    uint64_t byte;  /* of the file, unpacked, from 0 */
    int64_t number; /* as of a row */
};

enum { STORED_COLUMNS = 2 };
struct row_reader {
    const struct row_calls *calls;
    const char *name;              /* for messages: the file */
    const char *numbered;          /* "line", "row": what a row's number counts */
    const char *const *cell_names; /* [cell_count]; borrowed */
    int cell_count;
    const char *nested; /* an object or the like of a row, which is no cell; NULL: none was seen */
    int label_cell;     /* the cell that the label is made of; -1: none */
    int64_t rows;       /* how many will come, where that is known before; else 0 */
    int64_t passed;     /* how many are passed over in front of the first that comes */
    enum dtype label_dtype;
    const char *positive; /* the word of the labels that counts as 1; NULL: none does */
    bool may_lack_any;  /* rows, or whole files, any of the cells: the source has "missing" words */
    bool is_empty;      /* when it was opened it found no row, and nothing of the above is known */
    bool is_all_broken; /* likewise: only broken ones, which next() tells */
    bool is_row_broken; /* beside an ERR_INPUT of next(): only this row; the next may be read */
    uint64_t cut;       /* readers that are alike in it find the same rows in a file */
    struct input *input; /* the file; NULL: there is none */

    /* [STORED_COLUMNS], at NULL, of a reader that makes columns of its rows by itself: labels and
     * features; NULL: it gives cells */
    const struct column *stored;
    const char *use; /* of such a one, for a person: which parts of the file are what; NULL: all */
    const char *const *feature_names; /* [feature_count] of such a one: names of its numbers */
    int feature_count;                /* 0: no file names them */
};

struct row_calls {
    /* The row stays until the next call. *ret_found is false past the last one. */
    err (*next)(struct row_reader *, struct row *ret, bool *ret_found);
    /* Passes over the next row, of which nothing is looked at but where it begins and ends. NULL,
     * as seek: rows come from no file. */
    err (*skip)(struct row_reader *, struct row_place *ret, bool *ret_found);
    /* The next row is the one that skip() found there. */
    err (*seek)(struct row_reader *, const struct row_place *);
    void (*close)(struct row_reader *);
    /* Of the rows to come nobody looks at other cells than these, so that others may be empty, and
     * what is wrong with them need not be said. Once; the cells are borrowed. ERR_MEMORY. NULL: all
     * are made, as cheaply. */
    err (*narrow)(struct row_reader *, const int *cells, int count);
    /* Of a reader that has `stored`: one row of either column. ERR_INPUT names the place. */
    err (*make)(const struct row_reader *, const struct row *, void *labels, void *features);
};

/* Which cell has the name; -1: none. */
int row_reader_cell(const struct row_reader *, const char *name);
/* ERR_INPUT: there is none, and what there is. */
err row_reader_fail_cell(const struct row_reader *, const char *name);

/* All of the cell is one finite number in decimal. */
bool cell_number(const struct cell *, double *ret);
/* What people write where they have no value, as it is most often spelled; NULL at the end. */
extern const char *const cell_missing_words[];
/* Empty, or one of them, in any case. */
bool cell_is_missing(const struct cell *);
struct strings;
/* One of these words; empty is none of them. */
bool cell_is_one_of(const char *text, size_t length, const struct strings *words);

enum { CELL_TEXT_MAX = 44 };
/* For messages: shortened, control bytes as \x1b. Returns text. */
const char *cell_text(const struct cell *, char text[CELL_TEXT_MAX]);
/* Of a text that is no number, and nearly one: what to write, to go behind a message; else "". */
const char *cell_number_hint(const struct cell *);

#endif
