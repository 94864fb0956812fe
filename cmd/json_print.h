/* json_print.h - what commands print with --json. */
#ifndef CMD_JSON_PRINT_H
#define CMD_JSON_PRINT_H

#include <jansson.h>

#include "core/base/error.h"

/* Prints it to standard output, members in insertion order and URLs without secrets, and steals the
 * reference. ERR_MEMORY: it is NULL, because jansson ran out of memory. */
err json_print(json_t *);

#endif
