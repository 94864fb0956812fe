/* body.h - what ASK and ANSWER carry: the text of a JSON object, and where there are numbers, a
 * zero byte and then 8 bytes for each, a little-endian double. So a large value costs a ps only a
 * copy.
 *
 * To users both are one JSON object: "value" of an ask (ask.h), "values" of each part of an answer.
 */
#ifndef CORE_CLUSTER_VISIT_BODY_H
#define CORE_CLUSTER_VISIT_BODY_H

#include <jansson.h>
#include <stdint.h>

#include "core/base/error.h"

struct visit_body {
    const char *text; /* borrowed; not terminated */
    size_t text_bytes;
    const unsigned char *numbers; /* borrowed, not aligned */
    size_t count;
};

/* ERR_INPUT: the bytes of numbers are not a multiple of 8. */
err visit_body_split(const void *body, size_t bytes, struct visit_body *ret);
double visit_body_number(const struct visit_body *, size_t index);

/* Makes a body: malloc'ed, with room for `count` numbers at ret_numbers. NULL: no memory. */
unsigned char *visit_body_make(json_t *json, size_t count, size_t *ret_bytes,
                               unsigned char **ret_numbers);
/* Returns the position of the next number. */
unsigned char *visit_body_put(unsigned char *at, double number);

/* The body of an ask, with its "value" as numbers. ERR_INPUT: not a valid value; ERR_MEMORY. */
err visit_body_of_ask(json_t *ask, unsigned char **ret, size_t *ret_bytes);
/* The answer in a body, with the "values" of its parts; NULL: not valid. New reference. */
json_t *visit_body_answer(const void *bytes, size_t count);

#endif
