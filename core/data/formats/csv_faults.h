/* csv_faults.h - detects likely mistakes in tables, and explains them in messages. */
#ifndef CORE_DATA_FORMATS_CSV_FAULTS_H
#define CORE_DATA_FORMATS_CSV_FAULTS_H

#include "core/data/formats/delimited.h"

enum { CSV_REASON_MAX = 160 };

/* The names in the header, and where they were read */
struct csv_names {
    const char *path;
    int64_t line;    /* 0: no header was read */
    char *const *at; /* [width] */
    int width;
};

/* Whether the whole first line is one name that contains another delimiter. */
bool csv_looks_uncut(const struct csv_names *);
/* Whether the row repeats the header, as in concatenated files. */
bool csv_is_header(const struct csv_names *, const struct delimited *row);
/* Why a row may have other than `width` cells: ": ..."; "" if unknown. */
const char *csv_width_reason(const struct csv_names *, const struct delimited *row,
                             char ret[CSV_REASON_MAX]);
/* Log once: a name that several columns have; a feature without a name. */
void csv_warn_of_doubles(const struct csv_names *);
void csv_warn_of_nameless(const struct csv_names *, int column);
/* Logs once: a name in the first line is a number that is not just digits, so the line may be data
 */
void csv_warn_of_numbers(const struct csv_names *);
/* Logs once: the header is a single cell, and the spec does not use its name */
void csv_warn_of_uncut(const struct csv_names *);

#endif
