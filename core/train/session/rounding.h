/* rounding.h - 16-bit gradients leaving a replica, and 16-bit values arriving at it, with error
 * feedback for gradients.
 *
 * The graph computes floats; gradients are rounded before they are sent. The rounding residual of
 * an element is added to its next gradient before that is rounded, so that at the end only the last
 * residual is missing: at most half a unit of the last rounding per element. Residuals exist only
 * in this process. If a gradient that was sent is not applied, the residual included in it is lost,
 * and a gradient that is computed again is rounded with the current residual: either changes an
 * element by one rounding error at most. Values have no residual: their sender keeps the floats.
 */
#ifndef CORE_TRAIN_SESSION_ROUNDING_H
#define CORE_TRAIN_SESSION_ROUNDING_H

#include "core/base/arena.h"
#include "core/train/variables/layout.h"

struct rounding {
    struct device *device; /* borrowed; NULL: nothing is rounded */
    enum number as;
    int ps_count;
    const int64_t *block_floats; /* [ps_count], borrowed */
    float **gradients;           /* [ps_count] of the device: the gradients that are rounded */
    float **residual;            /* [ps_count] of the device */
    uint16_t **to;    /* [ps_count] where rounded ones leave, as the device sees it; NULL: none */
    bool is_mirrored; /* then `gradients` are borrowed, and not `to` */
};

/* gradients: blocks of a mirror, which takes rounded gradients away from `to`; NULL: blocks of the
 * host, whose `to` is bound. Lists live in the arena, blocks until rounding_close. */
err rounding_open(struct device *, enum number, const struct layout *, float **gradients,
                  struct arena *, struct rounding *ret);
void rounding_close(struct rounding *); /* a zeroed one is fine */

void rounding_bind(struct rounding *, int ps, void *to); /* NULL: it is gone */
/* Rounds a range of the block; does nothing where `to` is not bound. */
void rounding_round(const struct rounding *, int ps, int64_t offset, int64_t floats);
void rounding_forget(const struct rounding *); /* drops all residuals */

struct widening {
    struct device *device; /* borrowed; NULL: values come as floats */
    enum number as;
    int ps_count;
    const int64_t *block_floats; /* [ps_count], borrowed */
    uint16_t **from;  /* [ps_count] the bound memory where values arrive, as the device sees it;
                         NULL: none */
    float **values;   /* [ps_count] of the device: the values that are computed with */
    bool is_mirrored; /* then `values` are borrowed, and not `from` */
};

/* values: blocks of a mirror, which brings 16-bit values to `from`; NULL: blocks of the host, whose
 * `from` is bound. Lists live in the arena, blocks until widening_close. */
err widening_open(struct device *, enum number, const struct layout *, float **values,
                  struct arena *, struct widening *ret);
void widening_close(struct widening *); /* a zeroed one is fine */

void widening_bind(struct widening *, int ps, void *from); /* NULL: it is gone */
/* Widens a range of the block; does nothing where `from` is not bound. */
void widening_widen(const struct widening *, int ps, int64_t offset, int64_t floats);

#endif
