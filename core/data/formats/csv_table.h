/* csv_table.h - a file of delimited text as a table: the names of its cells, its label, its rows.
 */
#ifndef CORE_DATA_FORMATS_CSV_TABLE_H
#define CORE_DATA_FORMATS_CSV_TABLE_H

#include "core/data/data.h"
#include "core/data/formats/csv_faults.h"
#include "core/data/formats/csv_layout.h"
#include "core/data/formats/delimited.h"
#include "core/data/formats/label.h"

struct csv_attributes {
    struct strings file;
    const char *delimiter;
    json_t *label, *columns, *except, *missing; /* borrowed from the spec */
    bool header;
    struct strings names;
    struct label_form label_form;
};

/* Which column of a table: its name, or its index, from the end where it is negative. */
struct csv_key {
    const char *name; /* NULL: by index */
    bool is_index;
    int64_t index;
};

struct csv_table {
    struct row_reader reader; /* first: what others see */
    const struct csv_attributes *attributes;
    struct input *input;
    struct delimited text; /* of the row that was read last */
    const char *path;
    char **names;  /* [width]; where nobody names the cells, their indices */
    char **header; /* [header_width] as it was read, where other names are given; NULL else */
    int header_width;
    int64_t header_line; /* 0: there is none */
    bool is_named;
    int width;
    int label; /* cell; -1: the file has none, and none is needed */
    bool without_labels;
    struct label_seen seen;
    bool has_row;              /* the first row is read and not yet given out */
    struct bad_rows *bad_rows; /* NULL: none may be */
    struct strings missing;    /* words that count as empty; the texts are the spec's */
    struct csv_layout layout;  /* of the cells as a reader of rows gives them */
};

/* label: which column it is; missing: words that count as empty, whose list is freed with the
 * table, also after a failure. Up to the first row of data, whose cells are in `text`; the reader
 * is described. To be closed also after a failure. */
err csv_table_open(const struct csv_attributes *, const struct csv_key *label,
                   struct strings missing, const struct format_context *, struct csv_table *);
void csv_table_close(struct csv_table *); /* a zeroed one is fine */

/* The same as a reader of rows, whose cells are those of the files before. */
err csv_table_read(const struct csv_attributes *, const struct csv_key *label,
                   struct strings missing, const struct format_context *, struct row_reader **ret);

struct csv_names csv_table_names(const struct csv_table *);
err csv_table_find(const struct csv_table *, const struct csv_key *, int *ret);

/* ERR_INPUT that names the place. Cells are counted from 0, as the spec counts them; lines from 1,
 * as editors do. */
err csv_table_bad_cell(const struct csv_table *, int cell, const char *expected);

#endif
