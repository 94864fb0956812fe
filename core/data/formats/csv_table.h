/* csv_table.h - reads a file of delimited text as a table: names of cells, label, rows. */
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

/* Identifies a column of a table by name or by index; negative ones count from the end. */
struct csv_key {
    const char *name; /* NULL: by index */
    bool is_index;
    int64_t index;
};

struct csv_table {
    struct row_reader reader; /* first: the public part */
    const struct csv_attributes *attributes;
    struct input *input;
    struct delimited text; /* holds the row read last */
    const char *path;
    char **names;  /* [width]; indices as text if cells have no names */
    char **header; /* [header_width] the header as read, if the spec gives other names; else NULL */
    int header_width;
    int64_t header_line; /* 0: no header */
    bool is_named;
    int width;
    int label; /* cell; -1: none, and none is needed */
    bool without_labels;
    struct label_seen seen;
    bool has_row;              /* the first row is read and not yet returned */
    struct bad_rows *bad_rows; /* NULL: none are allowed */
    struct strings missing;    /* words that count as empty; texts are borrowed from the spec */
    struct csv_layout layout;  /* of the cells that the reader returns */
};

/* Reads up to the first row of data, whose cells are then in `text`, and describes the reader.
 * label: which column it is; missing: words that count as empty; takes the list, also after a
 * failure. To be closed also after a failure. */
err csv_table_open(const struct csv_attributes *, const struct csv_key *label,
                   struct strings missing, const struct format_context *, struct csv_table *);
void csv_table_close(struct csv_table *); /* may be zeroed */

/* The same as a reader of rows, with the cells of the files before. */
err csv_table_read(const struct csv_attributes *, const struct csv_key *label,
                   struct strings missing, const struct format_context *, struct row_reader **ret);

struct csv_names csv_table_names(const struct csv_table *);
err csv_table_find(const struct csv_table *, const struct csv_key *, int *ret);

/* Returns ERR_INPUT naming the place. Cells count from 0, as in the spec; lines from 1, as in
 * editors. */
err csv_table_bad_cell(const struct csv_table *, int cell, const char *expected);

#endif
