/* number_text.h - numbers as text, in a fraction of the time that printf takes. */
#ifndef CORE_BASE_NUMBER_TEXT_H
#define CORE_BASE_NUMBER_TEXT_H

#include <stddef.h>
#include <stdint.h>

enum { NUMBER_TEXT_BYTES = 24 }; /* with the NUL behind it */

/* Writes the same characters as printf's "%.9g", from which a float is read back exactly. Returns
 * their number. */
size_t number_text(float, char ret[NUMBER_TEXT_BYTES]);
/* As "%lld" */
size_t whole_text(int64_t, char ret[NUMBER_TEXT_BYTES]);

#endif
