/* thread.h - a thread that no signal reaches: signals are for the thread that waits for them. */
#ifndef CORE_BASE_THREADS_THREAD_H
#define CORE_BASE_THREADS_THREAD_H

#include <pthread.h>

#include "core/base/error.h"

err thread_start(pthread_t *, void *(*run)(void *), void *context);

#endif
