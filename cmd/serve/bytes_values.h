/* bytes_values.h - {"b64": "..."}: how TensorFlow Serving's clients send bytes, and texts, where
 * JSON has no bytes. */
#ifndef CMD_SERVE_BYTES_VALUES_H
#define CMD_SERVE_BYTES_VALUES_H

#include <jansson.h>

#include "core/base/error.h"

/* Each such value becomes a string of the bytes; one that is no base64 stays an object. */
void bytes_values_decode(json_t *);
/* Of a value that is not what was expected: e, or ERR_INPUT that says what is wrong with such an
 * object, which it is or has in its list. name: of its cell; NULL: none */
err bytes_values_fault(const char *name, const json_t *, err e);

#endif
