/* number_text.h - numbers as text, in a fraction of the time that printf takes. */
#ifndef CORE_BASE_NUMBER_TEXT_H
#define CORE_BASE_NUMBER_TEXT_H

#include <stddef.h>
#include <stdint.h>

enum { NUMBER_TEXT_BYTES = 24 }; /* with the NUL behind it */

/* The same characters as "%.9g" of printf, which bring a float back exactly. How many there are */
size_t number_text(float, char ret[NUMBER_TEXT_BYTES]);
/* The same as "%lld" */
size_t whole_text(int64_t, char ret[NUMBER_TEXT_BYTES]);

#endif
