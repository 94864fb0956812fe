/* mirror.h - the blocks of a worker in the memory of a device that does not see the host's.
 *
 * Windows of links are the host's memory. A mirror is the same blocks once more, where the device
 * computes: values go up before a step, each ps' block in one piece, and gradients come down after
 * it; where the host's memory can be pinned, both piece by piece while the step continues
 * (ascent.h), and whoever takes gradients on is told of each piece as it comes.
 */
#ifndef CORE_TRAIN_SESSION_MIRROR_H
#define CORE_TRAIN_SESSION_MIRROR_H

#include "core/train/session/buckets.h"
#include "kernels/async.h"

enum { MIRROR_BUCKET_FLOATS = 64 << 10 }; /* worth a transfer of its own */

/* A bucket on its way down */
struct descending {
    int ps;
    struct range range;
    struct mark *there;
};

struct mirror {
    struct device *device; /* borrowed; NULL: there is no mirror */
    int ps_count;
    const int64_t *block_floats, *moved_floats; /* [ps_count] of the layout, borrowed */
    float **values, **gradients; /* [ps_count] of the device, zero at first; NULL: an empty block */
    void **arriving, **leaving;  /* [ps_count] where values arrive and gradients leave from: the
                                    blocks above, or for 16-bit numbers blocks of half the bytes */
    enum number arrives_as, leaves_as;
    void **host_values;                 /* [ps_count], bound; NULL: none */
    float **host_gradients;             /* the host's blocks for gradients, likewise */
    bool *pins_values, *pins_gradients; /* [ps_count] */
    struct descending *left;            /* [left_max] buckets of the last pass, in their order */
    int left_count, left_max;
};

/* The lists of blocks live in the arena, the blocks until mirror_close. */
err mirror_open(struct device *, const struct layout *, struct arena *, struct mirror *ret);
void mirror_close(struct mirror *); /* a zeroed one is fine */

/* From now on gradients leave from these blocks, or values arrive in them, as numbers of this kind;
 * the blocks outlive the mirror. */
void mirror_leave_from(struct mirror *, void **blocks, enum number);
void mirror_arrive_at(struct mirror *, void **blocks, enum number);

/* The host's blocks of a ps, which must stay until mirror_unbind. */
void mirror_bind(struct mirror *, int ps, void *values, float *gradients);
void mirror_unbind(struct mirror *, int ps); /* nothing bound is fine */

/* Copies values of all bound blocks up, or gradients down. The host must not change values until
 * the device is synchronized; download waits for what is queued. */
void mirror_upload(const struct mirror *);
void mirror_download(const struct mirror *);

/* Whether the values of all ps can be copied up while a step continues, and one such copy: the host
 * must not change those values until the device is synchronized. */
bool mirror_lets_rise(const struct mirror *);
void mirror_rise(const struct mirror *, int ps, struct range);

/* Whether the gradients of all ps can be copied down while a step continues, and one such copy,
 * which is done when the work queued so far is: a bucket of at least MIRROR_BUCKET_FLOATS, or the
 * last one of its ps. */
bool mirror_lets_leave(const struct mirror *);
void mirror_begin_leaving(struct mirror *); /* a pass begins: before its first mirror_leave */
void mirror_leave(struct mirror *, int ps, struct range);
/* Waits until bucket i of the last pass is in the host's memory. false: there are no more, or the
 * device failed, which synchronize() reports. */
bool mirror_has_left(const struct mirror *, int i, int *ret_ps, struct range *ret);

#endif
