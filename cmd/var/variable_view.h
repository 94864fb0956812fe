/* variable_view.h - a variable as the answers of all ps show it together: what is in
 * core/cluster/visit/visit.h, read, checked, joined, and made into text. */
#ifndef CMD_VAR_VARIABLE_VIEW_H
#define CMD_VAR_VARIABLE_VIEW_H

#include <jansson.h>

#include "core/cluster/visit/target.h"

struct variable_summary { /* of a variable that is too large to be shown; over the finite elements
                           */
    int64_t finite;
    double minimum, maximum, sum, sum_squares;
    double first[VISIT_FIRST_MAX];
    int first_count;
};

struct variable_view {
    enum target_kind kind;         /* TARGET_NONE: no answer has it */
    struct shape shape;            /* of a table: of the rows that were asked for */
    int64_t first_row, table_rows; /* of a table: where those begin, and how many it has in all */
    bool is_element;               /* one was asked for: values has it alone */
    bool is_row;                   /* so it was of a table */
    bool is_large;                 /* then there is a summary, and no values */
    double *values;                /* [count], row-major; owned */
    bool *is_known;                /* [count]: a part that holds it has come; owned */
    int64_t count, known;
    struct variable_summary summary;
};

/* Begins with the first answer that is about a variable of this kind. */
err variable_view_open(json_t *answer, const struct selection *, struct variable_view *ret);
void variable_view_close(struct variable_view *); /* a zeroed one is fine */
/* ERR_PROTOCOL: an answer that no ps gives; ERR_PEER: it does not fit those before. */
err variable_view_add(struct variable_view *, json_t *answer);
/* ERR_PEER: parts are missing. */
err variable_view_check(const struct variable_view *);

/* A number, lists of numbers, or the summary as a line; malloc'ed, NULL: no memory. */
char *variable_view_text(const struct variable_view *);

enum target_kind variable_view_kind(json_t *answer); /* TARGET_NONE too where it is no answer */
err variable_view_shape(json_t *, struct shape *ret);

#endif
