/* body.h - what ASK and ANSWER carry: the text of a JSON object, and where there are numbers,
 * a zero byte and then 8 bytes for each, a little-endian double. So a value of many numbers costs a
 * ps a copy.
 *
 * People see both as one: "value" of an ask (ask.h), "values" of each part of an answer.
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

/* ERR_INPUT: not a whole number of numbers. */
err visit_body_split(const void *body, size_t bytes, struct visit_body *ret);
double visit_body_number(const struct visit_body *, size_t index);

/* Where a body is made: malloc'ed, with room for `count` numbers at ret_numbers. NULL: no memory.
 */
unsigned char *visit_body_make(json_t *json, size_t count, size_t *ret_bytes,
                               unsigned char **ret_numbers);
/* Returns where the next one goes. */
unsigned char *visit_body_put(unsigned char *at, double number);

/* An ask with its "value" as numbers. ERR_INPUT: it is none; ERR_MEMORY. */
err visit_body_of_ask(json_t *ask, unsigned char **ret, size_t *ret_bytes);
/* An answer with the "values" of its parts; NULL: that is none. New reference. */
json_t *visit_body_answer(const void *bytes, size_t count);

#endif
