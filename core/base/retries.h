/* retries.h - how often storage or a coordinator was asked again, since it had failed: of this
 * process, by whoever asks in whichever thread. */
#ifndef CORE_BASE_RETRIES_H
#define CORE_BASE_RETRIES_H

#include <stdint.h>

void retries_note(void);
uint64_t retries_count(void);

#endif
