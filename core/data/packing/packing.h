/* packing.h - bytes that are packed: which way their first ones tell, and how they are unpacked as
 * they come.
 */
#ifndef CORE_DATA_PACKING_PACKING_H
#define CORE_DATA_PACKING_PACKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* On their way; a packing's own state begins with it. */
struct unpacking {
    const uint8_t *in; /* packed, to be taken */
    size_t in_bytes;
    uint8_t *out; /* to be written */
    size_t out_bytes;
    const char *why; /* beside UNPACKED_CORRUPT */
};

enum unpacked {
    UNPACKED_PART,
    UNPACKED_MEMBER, /* to its end: another may follow, as packed files can be concatenated */
    UNPACKED_CORRUPT,
    UNPACKED_NO_MEMORY,
};

struct packing {
    const char *name;   /* "gzip", "zlib", "zstd" */
    uint64_t ratio_max; /* bytes that can come of a packed one, at most */
    /* NULL: no memory. open itself is NULL where the program was built without it. */
    struct unpacking *(*open)(void);
    /* Takes what it can of in, writes what it can to out: nothing of both only where in is used up.
     */
    enum unpacked (*turn)(struct unpacking *);
    bool (*again)(struct unpacking *); /* the next byte begins a member */
    void (*close)(struct unpacking *); /* NULL is fine */
};
extern const struct packing packing_gzip, packing_zlib, packing_zstd;
const char *packing_zstd_version(void); /* of the library; NULL: built without */

enum { PACKING_HEAD_BYTES = 4 };
/* NULL: plain, or zlib, whose first bytes may be those of anything. */
const struct packing *packing_of(const uint8_t *head, size_t bytes);

#endif
