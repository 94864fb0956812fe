/* json_words.h - fast output of JSON numbers and strings. */
#ifndef CMD_JSON_WORDS_H
#define CMD_JSON_WORDS_H

#include <stdio.h>

#include "core/base/fields/fields.h"

void json_write_text(FILE *, const char *);
/* Nine digits, which restore a float exactly; null if it is not finite. */
void json_write_number(FILE *, float);
/* Writes the word of a class, or its number if it has none: as a string if as_text is set or other
 * classes have words. */
void json_write_class(FILE *, const struct strings *words, int64_t class, bool as_text);

#endif
