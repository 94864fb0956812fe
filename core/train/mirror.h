/* mirror.h - the blocks of a worker in the memory of a device that does not see the host's.
 *
 * Windows of links are the host's memory. A mirror is the same blocks once more, where the device
 * computes: values go up before a step, gradients come down after it, each ps' block in one piece.
 */
#ifndef CORE_TRAIN_MIRROR_H
#define CORE_TRAIN_MIRROR_H

#include "core/base/arena.h"
#include "kernels/kernels.h"

struct mirror {
    struct device *device; /* borrowed; NULL: there is no mirror */
    int ps_count;
    const int64_t *block_floats; /* [ps_count], borrowed */
    float **values, **gradients; /* [ps_count] of the device, zero at first; NULL: an empty block */
};

/* The lists of blocks live in the arena, the blocks until mirror_close. */
err mirror_open(struct device *, int ps_count, const int64_t *block_floats, struct arena *,
                struct mirror *ret);
void mirror_close(struct mirror *); /* a zeroed one is fine */

/* host: [ps_count] blocks; NULL is passed over. download waits for what is queued. */
void mirror_upload(const struct mirror *, float *const host[]);
void mirror_download(const struct mirror *, float *const host[]);

#endif
