/* json_foreign.h - JSON that a server or a peer has written.
 *
 * A text of a few megabytes makes values of a gigabyte ("{}," is 3 bytes, and more than 200 in
 * memory), so that its values are counted before they are made.
 */
#ifndef CORE_BASE_JSON_FOREIGN_H
#define CORE_BASE_JSON_FOREIGN_H

#include <jansson.h>

#include "core/base/error.h"

enum {
    FOREIGN_LISTS_MAX = 1 << 18,  /* lists and objects, */
    FOREIGN_VALUES_MAX = 1 << 20, /* and values: commas, that is */
};

/* flags: jansson's. ERR_INPUT: it is no JSON, as the text says, or too much of it; *ret is NULL
 * then. */
err json_read_foreign(const void *text, size_t bytes, size_t flags, json_t **ret);

#endif
