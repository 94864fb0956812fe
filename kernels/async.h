/* async.h - copies that overlap with a device's queued work, and recording and replaying of work.
 *
 * kernels->async is NULL on devices that have none of this: CPUs, which would not gain by it.
 * Failures of work queued here are reported by synchronize(), like all others.
 */
#ifndef KERNELS_ASYNC_H
#define KERNELS_ASYNC_H

#include "kernels/kernels.h"

struct inlet;     /* a buffer by which a batch is copied to the device while it works on another one
                   */
struct recording; /* recorded work that can be replayed */
struct mark;      /* a position in the order of copies, to wait for */
enum mark_of { MARK_UPLOADS, MARK_DOWNLOADS };

/* A range of an inlet, in bytes, and the device memory to copy it to. */
struct inlet_part {
    size_t offset, bytes;
    void *to;
};

struct async {
    /* Pins host memory for direct copies until unpin(); do not unmap it before. false: it could not
     * be pinned, and is copied like other memory. The pages must not be shared with another pinned
     * range. is_written: it is also the target of downloads; otherwise it may be mapped read-only.
     */
    bool (*pin)(struct device *, void *host, size_t bytes, bool is_written);
    void (*unpin)(struct device *, void *host);

    /* From and to pinned memory, which nobody may touch until synchronize(). The upload is queued.
     * The download begins when all work queued so far is done, and overlaps with work queued later,
     * which must not write the downloaded memory. */
    void (*upload_pinned)(struct device *, void *device_memory, const void *host, size_t bytes);
    void (*download_pinned)(struct device *, void *host, const void *device_memory, size_t bytes);

    /* An upload beside the queue: it begins when all work queued so far is done. Later work sees it
     * only after mark_follow() of a mark that was set after it. */
    void (*upload_beside)(struct device *, void *device_memory, const void *host, size_t bytes);

    /* mark_set() marks the end of the uploads beside the queue, or the downloads, queued so far; a
     * mark may be set any number of times. Work queued after mark_follow() waits for the mark.
     * mark_await() blocks the host until all copies before the mark are done, while later work
     * continues; false: the device failed. In a recording, each replay sets a mark of downloads
     * again, and follows a mark of uploads as it was last set before that replay. */
    err (*mark_open)(struct device *, struct mark **ret);
    void (*mark_close)(struct device *, struct mark *); /* NULL is fine */
    void (*mark_set)(struct device *, struct mark *, enum mark_of);
    void (*mark_follow)(struct device *, struct mark *);
    bool (*mark_await)(struct device *, struct mark *);

    /* An inlet takes `bytes` of device memory and as many of host memory. */
    err (*inlet_open)(struct device *, size_t bytes, struct inlet **ret);
    void (*inlet_close)(struct device *, struct inlet *); /* NULL is fine */
    /* The host buffer, for the caller to fill: waits until the last inlet_send() has been copied.
     * NULL: the device failed. */
    void *(*inlet_room)(struct device *, struct inlet *);
    /* Copies the first `bytes` to the device, beside the queued work. Data of an earlier send that
     * was not taken are lost. */
    void (*inlet_send)(struct device *, struct inlet *, size_t bytes);
    /* Queued: copies the parts of the last send to their places in device memory. */
    void (*inlet_take)(struct device *, struct inlet *, const struct inlet_part *, int count);

    /* Work queued from here to record_end() is recorded and not executed: kernels, copies within
     * the device, download_pinned and marks. No call may wait or allocate memory meanwhile. NULL:
     * this device cannot record. If record_end() fails, nothing was recorded or executed. */
    err (*record)(struct device *);
    err (*record_end)(struct device *, struct recording **ret);
    /* Queued: executes the recorded work, on the memory that it was recorded with. */
    void (*replay)(struct device *, const struct recording *);
    void (*recording_close)(struct device *, struct recording *); /* NULL is fine */
};

#endif
