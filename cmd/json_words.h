/* json_words.h - words of JSON, as they are written by the thousand. */
#ifndef CMD_JSON_WORDS_H
#define CMD_JSON_WORDS_H

#include <stdio.h>

void json_write_text(FILE *, const char *);
/* Nine digits bring a float back exactly; one that is none JSON does not know: null. */
void json_write_number(FILE *, float);

#endif
