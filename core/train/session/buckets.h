/* buckets.h - which range of each ps' gradients is complete while backward continues.
 *
 * The slices of a block lie in the order in which backward finishes them (layout.h), so that as a
 * rule its front grows. What has grown by `least` floats, or is the end of what there are gradients
 * of, is a bucket: large enough to travel alone. A variable that is finished early waits for those
 * before it.
 */
#ifndef CORE_TRAIN_SESSION_BUCKETS_H
#define CORE_TRAIN_SESSION_BUCKETS_H

#include "core/base/arena.h"
#include "core/train/variables/layout.h"

struct buckets {
    const struct layout *layout;  /* borrowed */
    int64_t least;                /* floats of a bucket that is not the end of a block */
    const struct slice ***slices; /* [ps_count][slices of the ps], as they lie in the block */
    int *slice_count;             /* [ps_count] without those of frozen variables */
    int64_t *complete;            /* [variables] floats at the front, in this pass */
    int *finished;                /* [ps_count] slices at the front that are finished */
    int64_t *sent;                /* [ps_count] floats */
};

/* Everything lives in the arena. */
void buckets_open(const struct layout *, int64_t least, struct arena *, struct buckets *ret);

/* A pass begins: nothing is finished. */
void buckets_begin(struct buckets *);
/* That many floats at the front of the variable are complete now, at most all of them. */
void buckets_finish(struct buckets *, int variable, int64_t floats);
/* The next bucket that has become complete, a range of the block of *ret_ps; false: none. Within a
 * pass every float of the layout's moved_floats is in exactly one bucket, gaps between slices
 * included. */
bool buckets_next(struct buckets *, int *ret_ps, struct range *ret);

#endif
