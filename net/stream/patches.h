/* patches.h - where the bytes of a stretch lie: in a window, but for patches, which are memory
 * elsewhere that stands in for a part of it (transport.h: link_patch). */
#ifndef NET_STREAM_PATCHES_H
#define NET_STREAM_PATCHES_H

#include "core/base/error.h"
#include "net/transport.h"

struct iovec;

struct patches {
    struct patch *at; /* ascending, none over another */
    int count, capacity;
};

/* Behind those that are there. ERR_MEMORY. */
err patches_add(struct patches *, const struct patch *);
void patches_free(struct patches *); /* leaves none */

/* Bytes offset .. offset + left - 1 of a window, or of anything. */
struct payload {
    char *base;
    uint64_t offset;
    size_t left;
    const struct patches *patches; /* NULL: none */
};

/* Where they lie, from the front on, in at most `max` pieces. Returns how many. */
int payload_pieces(const struct payload *, struct iovec *ret, int max);
void payload_advance(struct payload *, size_t bytes);
/* Puts this many bytes, at most `left`, in their place, and continues behind them. */
void payload_take(struct payload *, const void *from, size_t bytes);

#endif
