/* pinned.h - pinned host memory, which a device reads and writes directly. Where memory cannot be
 * pinned, or the device has no use for that, data are copied all the same. */
#ifndef CORE_TRAIN_SESSION_PINNED_H
#define CORE_TRAIN_SESSION_PINNED_H

#include "kernels/async.h"

enum { PINNED_WHAT_MAX = 64 };

/* Pins the memory; returns whether it is pinned, until pinned_close(), before which it must not be
 * freed. is_written: as pin() of async.h. Memory that cannot be pinned would be slow without
 * anybody noticing, so a log line names it by `what`: "values of ps/3". */
bool pinned_open(struct device *, void *host, size_t bytes, bool is_written, const char *what);
void pinned_close(struct device *, void *host, bool is_pinned);

/* Copies to the device. Pinned memory must not be changed until the device is synchronized; any
 * other is free at once. */
void pinned_upload(struct device *, bool is_pinned, void *to, const void *host, size_t bytes);

/* Copies to the host. Pinned memory is filled once the device is synchronized, any other at once.
 */
void pinned_download(struct device *, bool is_pinned, void *host, const void *from, size_t bytes);

#endif
