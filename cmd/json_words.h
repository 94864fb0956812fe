/* json_words.h - words of JSON, as they are written by the thousand. */
#ifndef CMD_JSON_WORDS_H
#define CMD_JSON_WORDS_H

#include <stdio.h>

#include "core/base/fields/fields.h"

void json_write_text(FILE *, const char *);
/* Nine digits bring a float back exactly; one that is none JSON does not know: null. */
void json_write_number(FILE *, float);
/* The word of a class; one that has none is its number, as text where as_text or others have words.
 */
void json_write_class(FILE *, const struct strings *words, int64_t class, bool as_text);

#endif
