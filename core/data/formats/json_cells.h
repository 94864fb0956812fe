/* json_cells.h - the cells of a row that is written as JSON: of a line of a file, or of what a
 * client sends.
 *
 * A member is a cell: a number, a word, true or false (1 or 0), or a list of these; null, like a
 * member that is not there, is a missing one. The reader of JSON makes doubles of numbers and keeps
 * no text; so its text is walked through beside the values, which has been read as it is (with
 * JSON_DECODE_INT_AS_REAL, so that no number is too large, and JSON_REJECT_DUPLICATES, so that
 * there is a value for each that is written).
 */
#ifndef CORE_DATA_FORMATS_JSON_CELLS_H
#define CORE_DATA_FORMATS_JSON_CELLS_H

#include <jansson.h>

#include "core/base/proto.h"
#include "core/data/formats/named_cells.h"

struct json_value {
    const json_t *json;
    const char *text; /* where it begins, in a text that is known to be right */
};

/* Reads a text so that it can be walked through beside its values; NULL: it is not right. */
json_t *json_cells_load(const char *text, size_t bytes, json_error_t *ret_error);
/* Of the object that a line says, the members that row_calls.narrow wants, as they stand there: an
 * object again, whose text ends with a zero byte. false: the line has no members, is no object, or
 * is malformed, of which not all is noticed: the whole of it is to be read. */
bool json_cells_narrow(const struct named_cells *, const char *text, struct buffer *ret);
/* Where the text continues: the first value, or member, behind a bracket or a comma; what is behind
 * a value; from a member to its value */
const char *json_enter(const char *);
const char *json_skip(const char *);
const char *json_skip_key(const char *);
const char *json_skip_blanks(const char *);

/* "an object": what a message calls it */
const char *json_type_text(const json_t *);

struct json_cells {
    struct named_cells named;
    char *digits, *digits_at; /* of whole numbers that are written in another way */
    size_t digits_room;
};

/* A new row, whose values are written in at most this many bytes. ERR_MEMORY. */
err json_cells_clear(struct json_cells *, size_t bytes);
/* false: nobody wants a cell of this name. Words stay in the value. ERR_INPUT names the member. */
err json_cells_put(struct json_cells *, const char *name, const struct json_value *,
                   bool *ret_is_wanted);
void json_cells_close(struct json_cells *);

#endif
