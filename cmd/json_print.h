/* json_print.h - what commands print with --json. */
#ifndef CMD_JSON_PRINT_H
#define CMD_JSON_PRINT_H

#include <jansson.h>

#include "core/base/error.h"

/* Prints it, with its members in the order in which they were put in and URLs without their
 * secrets, and takes the reference.
 * ERR_MEMORY: it is NULL, since jansson had no memory for it. */
err json_print(json_t *);

#endif
