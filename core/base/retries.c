/* retries.c - see retries.h. */
#include "core/base/retries.h"

#include <stdatomic.h>

static atomic_uint_fast64_t count;

void retries_note(void)
{
    atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
}

uint64_t retries_count(void)
{
    return atomic_load_explicit(&count, memory_order_relaxed);
}
