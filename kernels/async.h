/* async.h - what a device can do beside the work in its queue, and work that it does again.
 *
 * A device whose kernels->async is NULL has none of it: a CPU, which would gain nothing. Failures
 * of what is queued here come out of synchronize() as all others do.
 */
#ifndef KERNELS_ASYNC_H
#define KERNELS_ASYNC_H

#include "kernels/kernels.h"

struct inlet;     /* where a batch comes to the device while it works on another */
struct recording; /* queued work that can be done again */
struct mark;      /* a place among copies, which somebody waits for */
enum mark_of { MARK_UPLOADS, MARK_DOWNLOADS };

/* A part of what lies in an inlet, and where in the device's memory it is wanted. Bytes. */
struct inlet_part {
    size_t offset, bytes;
    void *to;
};

struct async {
    /* Host memory that crosses without a stop on the way, until unpin(), before which it may not
     * be unmapped. false: this memory does not, and crosses as any other. Its pages are nobody
     * else's who pins. is_written: downloads go there too; otherwise the host may have it mapped
     * for reading alone. */
    bool (*pin)(struct device *, void *host, size_t bytes, bool is_written);
    void (*unpin)(struct device *, void *host);

    /* From and to pinned memory, which nobody touches until synchronize(). The upload is queued.
     * The download begins when all that is queued now is done, and goes on beside what is queued
     * after it, which must not write what it reads. */
    void (*upload_pinned)(struct device *, void *device_memory, const void *host, size_t bytes);
    void (*download_pinned)(struct device *, void *host, const void *device_memory, size_t bytes);

    /* The same beside the queue: it begins when all that is queued now is done, and what is queued
     * later sees it once it follows a mark that was set behind it. */
    void (*upload_beside)(struct device *, void *device_memory, const void *host, size_t bytes);

    /* A mark is set behind the uploads beside the queue, or the downloads, that are queued now,
     * again as often as one likes. What is queued after it follows a mark waits for it there.
     * Awaited, it says that all before it are there, while what was queued later continues; false:
     * the device failed. In a recording, replays set a mark of downloads, and follow one of uploads
     * as it was set last before each. */
    err (*mark_open)(struct device *, struct mark **ret);
    void (*mark_close)(struct device *, struct mark *); /* NULL is fine */
    void (*mark_set)(struct device *, struct mark *, enum mark_of);
    void (*mark_follow)(struct device *, struct mark *);
    bool (*mark_await)(struct device *, struct mark *);

    /* An inlet takes `bytes` of the device and as many of the host. */
    err (*inlet_open)(struct device *, size_t bytes, struct inlet **ret);
    void (*inlet_close)(struct device *, struct inlet *); /* NULL is fine */
    /* The host's side, to be filled: waits until what was sent from it last has left. NULL: the
     * device failed. */
    void *(*inlet_room)(struct device *, struct inlet *);
    /* Its first `bytes`, beside the queued work. What was sent before and not taken is gone. */
    void (*inlet_send)(struct device *, struct inlet *, size_t bytes);
    /* Queued: what was sent last to where it is wanted. */
    void (*inlet_take)(struct device *, struct inlet *, const struct inlet_part *, int count);

    /* What is queued from here to record_end() is noted and not done: kernels, copies within the
     * device, download_pinned and marks. Nothing may wait or take memory meanwhile. NULL: this
     * device records nothing. An error of record_end() says why nothing came of it; the device is
     * as if nothing had been queued. */
    err (*record)(struct device *);
    err (*record_end)(struct device *, struct recording **ret);
    /* Queued: all of it, on the memory that it was recorded with. */
    void (*replay)(struct device *, const struct recording *);
    void (*recording_close)(struct device *, struct recording *); /* NULL is fine */
};

#endif
