/* packing.h - placing buffers in one block, where those whose lifetimes do not overlap may share
 * memory. */
#ifndef CORE_GRAPH_PACKING_H
#define CORE_GRAPH_PACKING_H

#include <stddef.h>

enum { PACKING_ALIGN = 64 }; /* bytes: a cache line, and the widest vector */

/* Rounds up to a multiple of PACKING_ALIGN */
static inline size_t packing_aligned(size_t bytes)
{
    return (bytes + PACKING_ALIGN - 1) / PACKING_ALIGN * PACKING_ALIGN;
}

struct packed_buffer {
    size_t bytes;
    int first, last; /* first and last time at which it is in use */
    size_t offset;   /* result: in the block, a multiple of PACKING_ALIGN */
};

/* Sets every offset. The largest buffers are placed first, each at the lowest offset that is free
 * during its whole life. Returns the size of the block in bytes. order: scratch memory for `count`
 * pointers. */
size_t packing_place(struct packed_buffer *, int count, struct packed_buffer **order);

#endif
