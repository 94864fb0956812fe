/* csv_faults.h - what tables have that is seldom meant, in words. */
#ifndef CORE_DATA_FORMATS_CSV_FAULTS_H
#define CORE_DATA_FORMATS_CSV_FAULTS_H

#include "core/data/formats/delimited.h"

enum { CSV_REASON_MAX = 160 };

/* The names of the header, and where they are from */
struct csv_names {
    const char *path;
    int64_t line;    /* 0: no header was read */
    char *const *at; /* [width] */
    int width;
};

/* All of the first line is one name, in which another delimiter stands. */
bool csv_looks_uncut(const struct csv_names *);
/* Is the row the header once more, as in files that were put together? */
bool csv_is_header(const struct csv_names *, const struct delimited *row);
/* Why a row may have other than `width` cells: ": ..."; "" where nothing is known. */
const char *csv_width_reason(const struct csv_names *, const struct delimited *row,
                             char ret[CSV_REASON_MAX]);
/* Say once, in the log: a name that several have; a feature that has no name. */
void csv_warn_of_doubles(const struct csv_names *);
void csv_warn_of_nameless(const struct csv_names *, int column);
/* A name in the first line that is a number, other than of a column */
void csv_warn_of_numbers(const struct csv_names *);
/* A header that is one cell, where nobody asks for its name */
void csv_warn_of_uncut(const struct csv_names *);

#endif
