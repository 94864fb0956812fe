/* intake.h - reads the rows that clients send into the columns of a model. Rows consist of cells,
 * which are parsed as those of a file are, or, if the data are stored numbers, of such numbers.
 *
 *     {"instances": [{"age": 31, "city": "Oslo"}, ...]}    rows
 *     {"inputs": {"age": [31, ...], "city": ["Oslo", ...]}}    columns
 *     {"examples": [...], "context": {...}}    rows, and what they all share
 *     {"signature_name": "parse_example", "instances": [{"b64": "..."}, ...]}    cells of a
 *                                                  serialized tf.Example each
 *
 * Cells are those that columns name, so no data files are needed; the number of stored numbers is
 * read once from the data of the spec. Any thread may read.
 */
#ifndef CMD_SERVE_INTAKE_H
#define CMD_SERVE_INTAKE_H

#include "core/train/session/session.h"

enum {
    BRACKETS_MAX = 1 << 20,      /* per body: each is an object or a list, which takes memory */
    CONTEXT_READ_MAX = 64 << 20, /* bytes of a context times rows, as it is read once per row */
};

/* An input of the model. Types are those that an export has; cells may also be sent as strings. */
enum intake_type { INTAKE_FLOAT, INTAKE_DOUBLE, INTAKE_INT64, INTAKE_STRING };
struct intake_input {
    const char *name;
    enum intake_type type;
    struct shape shape; /* of one row; -1: any number */
};

struct intake;
/* Borrows the spec, whose data are measured. ERR_INPUT: its rows cannot be sent. */
err intake_open(struct spec *, struct intake **ret);
void intake_close(struct intake *); /* NULL is fine */
/* The columns of the rows that intake_read makes */
struct asked_rows intake_asked(const struct intake *, int64_t most);
/* Chooses the columns that nodes read; to be called once, before anything is read. */
err intake_choose(struct intake *, const struct session *);
/* [*ret_count] */
const struct intake_input *intake_inputs(const struct intake *, int *ret_count);
/* Whether rows may also be sent as tf.Examples: if they consist of cells */
bool intake_takes_examples(const struct intake *);

enum intake_form { FORM_PREDICT, FORM_EXAMPLES };
struct taken_rows {
    int64_t rows;
    bool is_columnar;       /* "inputs" */
    struct column *columns; /* as in intake_asked; `at` NULL: not read */
    int column_count;
    void *memory; /* of their contents; owned */
};
/* body: ends with a NUL, not counted in bytes. Returns 0 (free the rows with taken_rows_free), or
 * an HTTP status; then error_text() names the row and cell, and what is wrong. */
int intake_read(struct intake *, enum intake_form, const char *body, size_t bytes, int64_t rows_max,
                struct taken_rows *ret);
void taken_rows_free(struct taken_rows *);

#endif
