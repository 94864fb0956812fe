/* parcels.h - which stretch of each ps' gradients is complete while backward goes on.
 *
 * The slices of a block lie in the order in which backward finishes them (layout.h), so that as a
 * rule its front grows. What has grown by PARCEL_FLOATS, or is the end of the block, is a parcel:
 * large enough to travel alone. A variable that is finished early waits for those before it.
 */
#ifndef CORE_TRAIN_PARCELS_H
#define CORE_TRAIN_PARCELS_H

#include "core/base/arena.h"
#include "core/train/layout.h"

enum { PARCEL_FLOATS = 64 << 10 };

struct parcel {
    int ps;
    int64_t offset, floats; /* in the ps' block */
};

struct parcels {
    const struct layout *layout;  /* borrowed */
    const struct slice ***slices; /* [ps_count][slices of the ps], as they lie in the block */
    int *slice_count;             /* [ps_count] */
    bool *is_finished;            /* [variables], in this pass */
    int *finished;                /* [ps_count] slices at the front that are finished */
    int64_t *sent;                /* [ps_count] floats */
};

/* Everything lives in the arena. */
void parcels_open(const struct layout *, struct arena *, struct parcels *ret);

/* A pass begins: nothing is finished. */
void parcels_begin(struct parcels *);
void parcels_finish(struct parcels *, int variable);
/* The next that is complete since; false: none. Within a pass every float of every block is in one
 * parcel, gaps between slices included. */
bool parcels_next(struct parcels *, struct parcel *ret);

#endif
