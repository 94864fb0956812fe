/* apart.h - a device whose memory is not the host's, without a GPU: the CPU's kernels behind a
 * wall.
 *
 * Its memory can be touched only while one of its kernels runs: whoever reads or writes it from the
 * host is killed by the system. Every kernel looks at its pointers first: they must lie in blocks
 * that this device allocated, all that it reads or writes of them; of an upload or download the
 * other side must not. What breaks that fails the test, with the name of the kernel.
 */
#ifndef TESTS_DEVICE_APART_H
#define TESTS_DEVICE_APART_H

#include "kernels/kernels.h"

/* limit: bytes that it has, SIZE_MAX: it does not say. */
err device_open_apart(size_t limit, struct device *ret);

/* Of its allocations: bytes that were not released. */
size_t device_apart_in_use(const struct device *);

/* How often a kernel of this device has run, and bytes that went up or came down. */
struct traffic {
    int64_t kernels, uploaded, downloaded;
};
struct traffic device_apart_traffic(const struct device *);

#endif
