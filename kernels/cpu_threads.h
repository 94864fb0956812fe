/* cpu_threads.h - using a CPU device in a thread other than the one that opened it; only one thread
 * at a time may use it. */
#ifndef KERNELS_CPU_THREADS_H
#define KERNELS_CPU_THREADS_H

#include <stdint.h>

#include "kernels/device.h"

bool device_is_cpu(const struct device *);

/* Between the two calls the calling thread treats denormal numbers as zero, like the thread that
 * opened the device. cpu_leave() takes what cpu_enter() returned. */
uint64_t cpu_enter(void);
void cpu_leave(uint64_t entered);

/* How often the calling thread may have split work among threads so far. Such a thread starts its
 * own pool of worker threads, which live as long as it does. */
uint64_t cpu_shared_out(void);

#endif
