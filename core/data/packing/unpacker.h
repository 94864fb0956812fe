/* unpacker.h - what a packed file holds, byte by byte; after the first block a thread unpacks ahead
 * of whoever reads.
 */
#ifndef CORE_DATA_PACKING_UNPACKER_H
#define CORE_DATA_PACKING_UNPACKER_H

#include "core/base/error.h"
#include "core/data/packing/packing.h"

/* Where packed bytes come from: as input_some. One thread at a time calls it. */
struct packed_bytes {
    err (*some)(void *from, void *to, size_t max, size_t *ret_bytes);
    void *from;
    const char *name;  /* for messages; stays */
    bool may_be_ahead; /* another thread than the one that reads may call it */
};

/* Memory of each. Measured: of a quarter of it to wake whoever reads takes a fifth of the time. */
enum { UNPACKED_AHEAD_BYTES = 2 << 20 };

struct unpacker;
/* ERR_INPUT: built without this packing. */
err unpacker_open(const struct packing *, const struct packed_bytes *, struct unpacker **ret);
void unpacker_close(struct unpacker *); /* NULL is fine */

/* At most max bytes; 0 only at the end. ERR_INPUT: corrupt or cut off. */
err unpacker_some(struct unpacker *, void *to, size_t max, size_t *ret_bytes);
/* Nobody asks for packed bytes any more, until unpacker_some. */
void unpacker_pause(struct unpacker *);
/* After a pause: the next packed byte is the file's first. ERR_INPUT */
err unpacker_again(struct unpacker *);

uint64_t unpacker_ratio_max(const struct unpacker *); /* of packing.h */

#endif
