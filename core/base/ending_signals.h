/* ending_signals.h - the signals by which a program is asked to end. */
#ifndef CORE_BASE_ENDING_SIGNALS_H
#define CORE_BASE_ENDING_SIGNALS_H

#include <signal.h>

static inline sigset_t ending_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    return set;
}

#endif
