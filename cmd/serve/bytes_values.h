/* bytes_values.h - {"b64": "..."}: how TensorFlow Serving's clients send bytes, and texts, where
 * JSON has no bytes. */
#ifndef CMD_SERVE_BYTES_VALUES_H
#define CMD_SERVE_BYTES_VALUES_H

#include <jansson.h>

/* Each such value becomes a string of the bytes; one that is no base64 stays an object. */
void bytes_values_decode(json_t *);

#endif
