/* said_once.h - what a file is warned of once, however often and by however many threads it is
 * opened. */
#ifndef CORE_DATA_SAID_ONCE_H
#define CORE_DATA_SAID_ONCE_H

#include <stdbool.h>
#include <stdint.h>

/* what: a fingerprint of the line. False: it was said by this process, or too many others were. */
bool said_first(uint64_t what);

#endif
