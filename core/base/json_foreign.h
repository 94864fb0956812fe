/* json_foreign.h - parses JSON of a server or a peer, within limits on memory.
 *
 * A text of a few megabytes can become a gigabyte of values ("{}," is 3 bytes, and more than 200 in
 * memory), so values are counted before they are made.
 */
#ifndef CORE_BASE_JSON_FOREIGN_H
#define CORE_BASE_JSON_FOREIGN_H

#include <jansson.h>

#include "core/base/error.h"

enum {
    FOREIGN_LISTS_MAX = 1 << 18,  /* lists and objects */
    FOREIGN_VALUES_MAX = 1 << 20, /* values, counted by commas */
};

/* flags: jansson's. ERR_INPUT: not JSON, as the text says, or more than the limits; *ret is then
 * NULL. */
err json_read_foreign(const void *text, size_t bytes, size_t flags, json_t **ret);

#endif
