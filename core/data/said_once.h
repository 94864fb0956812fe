/* said_once.h - logs a warning about a file only once, however often and in however many threads it
 * is opened. */
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

/* what: a fingerprint of the subject. False: this process has already logged it, or too many others
 * of the kind. */
bool said_first(enum said_kind, uint64_t what);

#endif
