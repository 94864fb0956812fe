/* cpu_threads.h - computing on a device of the CPU in another thread than that which opened it, one
 * at a time. */
#ifndef KERNELS_CPU_THREADS_H
#define KERNELS_CPU_THREADS_H

#include <stdint.h>

#include "kernels/device.h"

bool device_is_cpu(const struct device *);

/* From enter to leave the calling thread takes denormal numbers for zero, as the one that opened
 * the device does. */
uint64_t cpu_enter(void);
void cpu_leave(uint64_t entered);

/* How often the calling thread may have shared work out by now. A thread that does starts threads
 * of its own for it, which stay as long as it does. */
uint64_t cpu_shared_out(void);

#endif
