/* not_numbers.h - NaN, which clients of TensorFlow Serving may write, and JSON does not know. */
#ifndef CMD_SERVE_NOT_NUMBERS_H
#define CMD_SERVE_NOT_NUMBERS_H

#include <stddef.h>

/* The text with null, no value, instead of each NaN, malloc'ed, with a NUL behind it; NULL:
 * there is none in it, or no memory. */
char *not_numbers_as_null(const char *text, size_t bytes, size_t *ret_bytes);

#endif
