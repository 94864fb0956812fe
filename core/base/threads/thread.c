/* thread.c - see thread.h. */
#include "core/base/threads/thread.h"

#include <signal.h>
#include <string.h>

static _Thread_local const _Atomic bool *over;

void thread_reads_until(const _Atomic bool *is_over)
{
    over = is_over;
}

bool thread_is_watched(void)
{
    return over != NULL;
}

bool thread_is_over(void)
{
    return over && *over;
}

err thread_start(pthread_t *ret, void *(*run)(void *), void *context)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int status = pthread_create(ret, NULL, run, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status ? fail(ERR_IO, "cannot start a thread: %s", strerror(status)) : OK;
}
