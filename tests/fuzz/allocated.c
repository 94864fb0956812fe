/* allocated.c - see allocated.h. */
#include "tests/fuzz/allocated.h"

#include <stdatomic.h>
#include <stdint.h>

static atomic_size_t most;

void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
void *__real_realloc(void *, size_t);
void *__wrap_malloc(size_t);
void *__wrap_calloc(size_t, size_t);
void *__wrap_realloc(void *, size_t);

static void note(size_t bytes)
{
    size_t was = atomic_load(&most);
    while (bytes > was && !atomic_compare_exchange_weak(&most, &was, bytes)) {
    }
}

size_t allocated_most(void)
{
    return atomic_exchange(&most, 0);
}

void *__wrap_malloc(size_t bytes)
{
    note(bytes);
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    note(bytes && count > SIZE_MAX / bytes ? SIZE_MAX : count * bytes);
    return __real_calloc(count, bytes);
}

void *__wrap_realloc(void *at, size_t bytes)
{
    note(bytes);
    return __real_realloc(at, bytes);
}
