/* not_numbers.h - NaN, which clients of TensorFlow Serving may send, but JSON does not have. */
#ifndef CMD_SERVE_NOT_NUMBERS_H
#define CMD_SERVE_NOT_NUMBERS_H

#include <stddef.h>

/* The text with null, a missing value, for each NaN; malloc'ed and NUL-terminated. NULL: it has no
 * NaN, or no memory */
char *not_numbers_as_null(const char *text, size_t bytes, size_t *ret_bytes);

#endif
