/* unpacker.h - reads a packed file as a stream of unpacked bytes; after the first block a thread
 * unpacks ahead of the reader. */
#ifndef CORE_DATA_PACKING_UNPACKER_H
#define CORE_DATA_PACKING_UNPACKER_H

#include "core/base/error.h"
#include "core/data/packing/packing.h"

/* The source of packed bytes; some() is as input_some. Called from one thread at a time. */
struct packed_bytes {
    err (*some)(void *from, void *to, size_t max, size_t *ret_bytes);
    void *from;
    const char *name;  /* for messages; borrowed */
    bool may_be_ahead; /* some() may be called from the unpacking thread, not just the reader's */
};

/* Buffer of each unpacker. Measured: with a quarter of it, a fifth of the time goes into waking the
 * reader. */
enum { UNPACKED_AHEAD_BYTES = 2 << 20 };

struct unpacker;
/* ERR_INPUT: the program was built without this packing. */
err unpacker_open(const struct packing *, const struct packed_bytes *, struct unpacker **ret);
void unpacker_close(struct unpacker *); /* may be NULL */

/* Reads at most max bytes; 0 only at the end. ERR_INPUT: corrupt or truncated. */
err unpacker_some(struct unpacker *, void *to, size_t max, size_t *ret_bytes);
/* Stops calls of some() until the next unpacker_some. */
void unpacker_pause(struct unpacker *);
/* After a pause, once some() has been set back to the file's first byte: unpacks from the
 * beginning. ERR_INPUT */
err unpacker_again(struct unpacker *);

uint64_t unpacker_ratio_max(const struct unpacker *); /* as in packing.h */

#endif
