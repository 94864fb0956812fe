/* packing.h - several buffers in one block: where their lifetimes do not meet, they share memory.
 */
#ifndef CORE_GRAPH_PACKING_H
#define CORE_GRAPH_PACKING_H

#include <stddef.h>

enum { PACKING_ALIGN = 64 }; /* bytes: a cache line, and the widest vector */

/* Up to the next multiple */
static inline size_t packing_aligned(size_t bytes)
{
    return (bytes + PACKING_ALIGN - 1) / PACKING_ALIGN * PACKING_ALIGN;
}

struct packed_buffer {
    size_t bytes;
    int first, last; /* times at which it is in use, both included */
    size_t offset;   /* in the block, a multiple of PACKING_ALIGN: the result */
};

/* Sets every offset. The largest buffers are placed first, each at the lowest offset that is free
 * during its whole life. Returns the bytes of the block. order: memory for `count` pointers. */
size_t packing_place(struct packed_buffer *, int count, struct packed_buffer **order);

#endif
