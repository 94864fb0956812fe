/* placement.h - several buffers in one block: where their lifetimes do not meet, they share memory.
 */
#ifndef CORE_GRAPH_PLACEMENT_H
#define CORE_GRAPH_PLACEMENT_H

#include <stddef.h>

enum { PLACEMENT_ALIGN = 64 }; /* bytes: a cache line, and the widest vector */

/* Up to the next multiple */
static inline size_t placement_aligned(size_t bytes)
{
    return (bytes + PLACEMENT_ALIGN - 1) / PLACEMENT_ALIGN * PLACEMENT_ALIGN;
}

struct buffer {
    size_t bytes;
    int first, last; /* times at which it is in use, both included */
    size_t offset;   /* in the block, a multiple of PLACEMENT_ALIGN: the result */
};

/* Sets every offset. The largest buffers are placed first, each at the lowest offset that is free
 * during its whole life. Returns the bytes of the block. order: memory for `count` pointers. */
size_t placement_pack(struct buffer *, int count, struct buffer **order);

#endif
