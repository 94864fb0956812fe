/* patches.h - where the bytes of a stretch lie: in a window, except for patches, ranges of it that
 * are replaced by memory elsewhere (transport.h: link_patch). */
#ifndef NET_STREAM_PATCHES_H
#define NET_STREAM_PATCHES_H

#include "core/base/error.h"
#include "net/transport.h"

struct iovec;

struct patches {
    struct patch *at; /* ascending, not overlapping */
    int count, capacity;
};

/* Appends a patch. ERR_MEMORY. */
err patches_add(struct patches *, const struct patch *);
void patches_free(struct patches *); /* leaves none */

/* Bytes offset .. offset + left - 1 of a window or another buffer. */
struct payload {
    char *base;
    uint64_t offset;
    size_t left;
    const struct patches *patches; /* NULL: none */
};

/* The memory where they lie, as at most `max` pieces from the front. Returns how many. */
int payload_pieces(const struct payload *, struct iovec *ret, int max);
void payload_advance(struct payload *, size_t bytes);
/* Copies the next bytes, at most `left`, to their place and advances. */
void payload_take(struct payload *, const void *from, size_t bytes);

#endif
