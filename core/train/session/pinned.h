/* pinned.h - memory of the host that a device reads and writes without a stop on the way, where it
 * can be pinned; where not, or where the device has no use for that, it crosses all the same.
 */
#ifndef CORE_TRAIN_SESSION_PINNED_H
#define CORE_TRAIN_SESSION_PINNED_H

#include "kernels/async.h"

enum { PINNED_WHAT_MAX = 64 };

/* Whether it is pinned, until pinned_close(), before which it may not be freed. is_written: as
 * pin() of async.h. What cannot be would be slow and nobody would see it, so the log says of
 * what: "values of ps/3". */
bool pinned_open(struct device *, void *host, size_t bytes, bool is_written, const char *what);
void pinned_close(struct device *, void *host, bool is_pinned);

/* From pinned memory, which nobody touches until the device is synchronized, or any other. */
void pinned_upload(struct device *, bool is_pinned, void *to, const void *host, size_t bytes);

/* Pinned memory has it after the device was synchronized, any other at once. */
void pinned_download(struct device *, bool is_pinned, void *host, const void *from, size_t bytes);

#endif
