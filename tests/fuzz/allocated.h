/* allocated.h - how much is allocated at once, by whatever thread, in a test that is linked with
 * --wrap=malloc, --wrap=calloc and --wrap=realloc.
 */
#ifndef TESTS_FUZZ_ALLOCATED_H
#define TESTS_FUZZ_ALLOCATED_H

#include <stddef.h>

/* The largest since it was asked last; bytes */
size_t allocated_most(void);

#endif
