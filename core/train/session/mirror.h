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
    void **arriving, **leaving;  /* [ps_count] where values come to, and gradients leave from:
                                    themselves, or of half their bytes */
    enum number arrives_as, leaves_as;
    void **host_values;                 /* [ps_count], bound; NULL: none */
    float **host_gradients;             /* the same */
    bool *pins_values, *pins_gradients; /* [ps_count] */
    struct descending *left;            /* [left_max] in their order; those of the last pass: */
    int left_count, left_max;
};

/* The lists of blocks live in the arena, the blocks until mirror_close. */
err mirror_open(struct device *, const struct layout *, struct arena *, struct mirror *ret);
void mirror_close(struct mirror *); /* a zeroed one is fine */

/* From now on gradients leave from these blocks, or values come to them, as such numbers; they
 * outlive the mirror. */
void mirror_leave_from(struct mirror *, void **blocks, enum number);
void mirror_arrive_at(struct mirror *, void **blocks, enum number);

/* The host's blocks of a ps, until unbind, before which they may not go. */
void mirror_bind(struct mirror *, int ps, void *values, float *gradients);
void mirror_unbind(struct mirror *, int ps); /* nothing bound is fine */

/* Of what is bound. The host leaves its values alone until the device is synchronized; download
 * waits for what is queued. */
void mirror_upload(const struct mirror *);
void mirror_download(const struct mirror *);

/* Whether values of all ps can go up while a step continues, and some that do: the host leaves them
 * alone until the device is synchronized. */
bool mirror_lets_rise(const struct mirror *);
void mirror_rise(const struct mirror *, int ps, struct range);

/* Whether gradients of all ps can leave while a step continues, and one that leaves when what is
 * queued now is done: a bucket of MIRROR_BUCKET_FLOATS at least, or the last of its ps. */
bool mirror_lets_leave(const struct mirror *);
void mirror_begin_leaving(struct mirror *); /* a pass, before the first of it */
void mirror_leave(struct mirror *, int ps, struct range);
/* Waits until the i-th of the last pass is there. false: there are no more, or the device failed,
 * which synchronize() tells. */
bool mirror_has_left(const struct mirror *, int i, int *ret_ps, struct range *ret);

#endif
