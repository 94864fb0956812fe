/* packing.h - formats of compressed data: detecting them by the first bytes, and incremental
 * unpacking. */
#ifndef CORE_DATA_PACKING_PACKING_H
#define CORE_DATA_PACKING_PACKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* State of unpacking; the first member of each packing's own state. */
struct unpacking {
    const uint8_t *in; /* packed bytes, not yet consumed */
    size_t in_bytes;
    uint8_t *out; /* where unpacked bytes go */
    size_t out_bytes;
    const char *why; /* set with UNPACKED_CORRUPT */
};

enum unpacked {
    UNPACKED_PART,
    UNPACKED_MEMBER, /* the end of a member; another may follow, as packed files can be
                        concatenated */
    UNPACKED_CORRUPT,
    UNPACKED_NO_MEMORY,
};

struct packing {
    const char *name;   /* "gzip", "zlib", "zstd" */
    uint64_t ratio_max; /* maximum of unpacked bytes per packed one */
    /* Returns NULL: no memory. open itself is NULL if the program was built without it. */
    struct unpacking *(*open)(void);
    /* Consumes from in and writes to out what it can; does neither only if in is used up. */
    enum unpacked (*turn)(struct unpacking *);
    bool (*again)(struct unpacking *); /* the next byte begins a new member; false: failed */
    void (*close)(struct unpacking *); /* may be NULL */
};
extern const struct packing packing_gzip, packing_zlib, packing_zstd;
const char *packing_zstd_version(void); /* of the library; NULL: built without it */

enum { PACKING_HEAD_BYTES = 4 };
/* NULL: not packed; or zlib, which cannot be told by its first bytes. */
const struct packing *packing_of(const uint8_t *head, size_t bytes);

#endif
