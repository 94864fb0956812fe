/* cells.h - the inputs of an exported model: the cells that columns are made of, or, without
 * columns, the numbers of a row. */
#ifndef CMD_EXPORT_CELLS_H
#define CMD_EXPORT_CELLS_H

#include <stdio.h>

#include "core/data/columns/column.h"
#include "core/train/spec/spec.h"

enum { CELLS_MAX = 2 * COLUMNS_MAX };

struct cells {
    const struct data_spec *data;
    const struct objects *columns;  /* of struct column_spec; empty: rows are numbers */
    struct strings reader;          /* all names of the rows' cells */
    struct strings missing;         /* words that stand for a missing value */
    bool has_texts;                 /* a cell is text as in a CSV file */
    const char *names[CELLS_MAX];   /* that columns read */
    const char *members[CELLS_MAX]; /* their names in C */
    struct shape pixels[CELLS_MAX]; /* [y, x, channel] of an image, named as its column */
    int count;
    bool takes_pixels;          /* images come as pixels; else as encoded files, as in the data */
    int64_t features;           /* stored numbers of a row */
    bool is_read[COLUMNS_MAX];  /* by index of the column: something reads it */
    bool is_input[COLUMNS_MAX]; /* not only a cross reads it */
    struct arena *arena;
    struct format_context context; /* for files of words and boundaries */
};

/* Borrows the spec. */
err cells_open(struct cells *, const struct spec *, struct arena *);
/* Finds the cells of the columns in is_read. ERR_INPUT names a column that cannot be exported. */
err cells_find(struct cells *);
const struct column_spec *cells_column(const struct cells *, int column);
int cells_column_named(const struct cells *, const char *name); /* -1: none */
/* The cell that a column reads; -1: none */
int cells_of_column(const struct cells *, const struct column_spec *);
int cells_named(const struct cells *, const char *name);
const char *cells_kind(const struct column_spec *); /* "hash" */
bool cells_is(const struct column_spec *, const char *kind);
bool cells_is_seconds(const struct column_spec *);  /* a date, as a number */
int64_t cells_stand_in(const struct column_spec *); /* default id of a row without one; -1: none */
/* An attribute, by the name of its field, which must exist */
const void *cells_attribute(const struct column_spec *, const char *name);
/* The limit below which ids are, from "buckets" or "rows"; ANY_ID: any id is possible. */
int64_t cells_limit(const struct column_spec *, const char *name);
/* Words that stand for a missing value in the source, in the arena */
struct strings cells_missing(const struct source_spec *, struct arena *);
/* Words of a vocabulary, [count] in the arena; boundaries. */
err cells_words(const struct cells *, const struct column_spec *, struct strings *ret);
err cells_boundaries(const struct cells *, const struct column_spec *, struct floats *ret);
/* Whether a key of a cross is the words of a cell, not the ids of a column */
bool cells_crosses_words(const struct cells *, const char *key);

void cells_write_c_members(FILE *, const struct cells *);
/* Writes the user's text so that it cannot end the C comment */
void c_write_in_comment(FILE *, const char *text);

#endif
