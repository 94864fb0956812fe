/* json_cells.h - the cells of a row written as JSON: a line of a file, or a client's request.
 *
 * A member is a cell: a number, a word, true or false (1 or 0), or a list of these; null or an
 * absent member is a missing cell. The JSON library converts numbers to doubles and does not keep
 * their text; so the text is traversed in parallel with the values. It is parsed with
 * JSON_DECODE_INT_AS_REAL, so that no number is too large, and JSON_REJECT_DUPLICATES, so that
 * every written value is there.
 */
#ifndef CORE_DATA_FORMATS_JSON_CELLS_H
#define CORE_DATA_FORMATS_JSON_CELLS_H

#include <jansson.h>

#include "core/base/proto.h"
#include "core/data/formats/named_cells.h"

struct json_value {
    const json_t *json;
    const char *text; /* where it begins in the text, which is known to be valid */
};

/* Parses a text so that it can be traversed with its values; NULL: it is malformed, see *ret_error.
 */
json_t *json_cells_load(const char *text, size_t bytes, json_error_t *ret_error);
/* Copies from the object in `text` only the members that row_calls.narrow asked for, as an object
 * with a NUL at the end. false: no members, not an object, or malformed (not all errors are
 * noticed): the caller must read the whole line. */
bool json_cells_narrow(const struct named_cells *, const char *text, struct buffer *ret);
/* Traversal of the text. json_enter: from a bracket or comma to the next value or member;
 * json_skip: past a value; json_skip_key: from a member to its value */
const char *json_enter(const char *);
const char *json_skip(const char *);
const char *json_skip_key(const char *);
const char *json_skip_blanks(const char *);

/* For messages, such as "an object" */
const char *json_type_text(const json_t *);

struct json_cells {
    struct named_cells named;
    char *digits, *digits_at; /* memory for the digits of whole numbers that are written in
                                 another way */
    size_t digits_room;
};

/* Starts a new row, with a text of at most this many bytes. ERR_MEMORY. */
err json_cells_clear(struct json_cells *, size_t bytes);
/* Adds a member as a cell. *ret_is_wanted false: no cell of this name is wanted. Words point into
 * the value. ERR_INPUT names the member. */
err json_cells_put(struct json_cells *, const char *name, const struct json_value *,
                   bool *ret_is_wanted);
void json_cells_close(struct json_cells *);

#endif
