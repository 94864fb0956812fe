/* said_once.c - see said_once.h. */
#include "core/data/said_once.h"

#include <pthread.h>

enum { SAID_MAX = 64 };

bool said_first(enum said_kind kind, uint64_t what)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t all[SAID_KINDS][SAID_MAX];
    static int counts[SAID_KINDS];
    uint64_t *const said = all[kind];
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < counts[kind] && said[i] != what) i++;
    const bool is_first = i == counts[kind] && i < SAID_MAX;
    if (is_first) said[counts[kind]++] = what;
    pthread_mutex_unlock(&lock);
    return is_first;
}
