/* thread.h - a thread that no signal reaches: signals are for the thread that waits for them. */
#ifndef CORE_BASE_THREADS_THREAD_H
#define CORE_BASE_THREADS_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "core/base/error.h"

err thread_start(pthread_t *, void *(*run)(void *), void *context);

/* Once *is_over nobody wants any more what this thread reads: it does not wait for a server then
 * (net/http.h), and what it waits for fails. */
void thread_reads_until(const _Atomic bool *is_over);
bool thread_is_watched(void); /* somebody may say so */
bool thread_is_over(void);

#endif
