/* intake.h - what clients send of a row, and how it becomes the columns that a model reads: cells,
 * which are read as those of a file are, or where rows are stored as numbers, these numbers.
 *
 *     {"instances": [{"age": 31, "city": "Oslo"}, ...]}    rows
 *     {"inputs": {"age": [31, ...], "city": ["Oslo", ...]}}    columns
 *     {"examples": [...], "context": {...}}    rows, and what all of them have in common
 *     {"signature_name": "parse_example", "instances": [{"b64": "..."}, ...]}    cells of a
 *                                                  serialized tf.Example each
 *
 * Cells are those that columns name, so no file of data is needed; numbers are as many as the data
 * of the spec have, which are looked at once. Any thread may read.
 */
#ifndef CMD_SERVE_INTAKE_H
#define CMD_SERVE_INTAKE_H

#include "core/train/session/session.h"

enum {
    BRACKETS_MAX = 1 << 20,      /* of a body: each is an object or a list, which takes memory */
    CONTEXT_READ_MAX = 64 << 20, /* bytes of a context, which is read once for each row */
};

/* Names in the order of what they are made of. Types are those that an export of the model has;
 * cells may come as words, too. */
enum intake_type { INTAKE_FLOAT, INTAKE_DOUBLE, INTAKE_INT64, INTAKE_STRING };
struct intake_input {
    const char *name;
    enum intake_type type;
    struct shape shape; /* of one row; -1: any number */
};

struct intake;
/* Of a spec that is measured; borrowed. ERR_INPUT: its rows cannot be sent. */
err intake_open(struct spec *, struct intake **ret);
void intake_close(struct intake *); /* NULL is fine */
/* The columns of rows that are read */
struct asked_rows intake_asked(const struct intake *, int64_t most);
/* Which of them nodes read; once, before anything is read. */
err intake_choose(struct intake *, const struct session *);
/* [*ret_count] */
const struct intake_input *intake_inputs(const struct intake *, int *ret_count);
/* Whether rows may come as tf.Examples, too: those of cells */
bool intake_takes_examples(const struct intake *);

enum intake_form { FORM_PREDICT, FORM_EXAMPLES };
struct taken_rows {
    int64_t rows;
    bool is_columnar;       /* "inputs" */
    struct column *columns; /* as intake_asked says; at NULL: nobody reads it */
    int column_count;
    void *memory; /* of what is in them */
};
/* body: a NUL is behind it. An HTTP status, and error_text() says what is wrong with which cell of
 * which row; 0: it went well, and the rows are to be freed. */
int intake_read(struct intake *, enum intake_form, const char *body, size_t bytes, int64_t rows_max,
                struct taken_rows *ret);
void taken_rows_free(struct taken_rows *);

#endif
