/* retries.h - how many requests of this process to storage or a coordinator were retried after a
 * failure; any thread may call. */
#ifndef CORE_BASE_RETRIES_H
#define CORE_BASE_RETRIES_H

#include <stdint.h>

void retries_note(void);
uint64_t retries_count(void);

#endif
