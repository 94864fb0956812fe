/* thread.h - a thread with all signals blocked: they are delivered to the thread that waits for
 * them. */
#ifndef CORE_BASE_THREADS_THREAD_H
#define CORE_BASE_THREADS_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "core/base/error.h"

err thread_start(pthread_t *, void *(*run)(void *), void *context);

/* Once *is_over is true, this thread's reads are not needed any more: requests to servers
 * (net/http.h) fail instead of waiting. */
void thread_reads_until(const _Atomic bool *is_over);
bool thread_is_watched(void); /* thread_reads_until was called */
bool thread_is_over(void);

#endif
