/* said_once.c - see said_once.h. */
#include "core/data/said_once.h"

#include <pthread.h>

enum { SAID_MAX = 64 };

bool said_first(uint64_t what)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t said[SAID_MAX];
    static int count;
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < count && said[i] != what) i++;
    const bool is_first = i == count && count < SAID_MAX;
    if (is_first) said[count++] = what;
    pthread_mutex_unlock(&lock);
    return is_first;
}
