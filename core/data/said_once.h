/* said_once.h - what a file is warned of once, however often and by however many threads it is
 * opened. */
#ifndef CORE_DATA_SAID_ONCE_H
#define CORE_DATA_SAID_ONCE_H

#include <stdbool.h>
#include <stdint.h>

enum said_kind {
    SAID_LISTED_TWICE,
    SAID_PACKED_BESIDE,
    SAID_DOUBLE_NAMES,
    SAID_NAMELESS,
    SAID_UNCUT,
    SAID_LACKING,
    SAID_NOT_UTF8,
    SAID_NUMBER_NAME,
    SAID_LOST_WEIGHT,
    SAID_FAR_DEFAULT,
    SAID_WITHOUT_ROWS,
    SAID_LEFT_OUT,
    SAID_KINDS
};

/* what: a fingerprint of what it is about. False: it was said by this process, or too many others
 * of the kind were. */
bool said_first(enum said_kind, uint64_t what);

#endif
