/* bytes_values.h - {"b64": "..."}: how TensorFlow Serving's clients send bytes and text, since JSON
 * has no bytes. */
#ifndef CMD_SERVE_BYTES_VALUES_H
#define CMD_SERVE_BYTES_VALUES_H

#include <jansson.h>

#include "core/base/error.h"

/* Replaces each such value by a string of its bytes; one with invalid base64 stays an object. */
void bytes_values_decode(json_t *);
/* The error for an unexpected value: e, or, if the value is or contains such an object, ERR_INPUT,
 * which says what is wrong with it. name: of its cell; NULL: none */
err bytes_values_fault(const char *name, const json_t *, err e);

#endif
