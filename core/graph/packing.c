/* packing.c - first fit over intervals. */
#include "core/graph/packing.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Larger before smaller, then in the order given, so that the result does not depend on the qsort
 * used. */
static int compare(const void *a, const void *b)
{
    const struct packed_buffer *x = *(struct packed_buffer *const *)a,
                               *y = *(struct packed_buffer *const *)b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return x < y ? -1 : x > y;
}

static bool lives_meet(const struct packed_buffer *a, const struct packed_buffer *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* The lowest offset that is free during the buffer's life; placed is sorted by offset. */
static size_t find_offset(const struct packed_buffer *buffer, struct packed_buffer *const *placed,
                          int count)
{
    size_t offset = 0;
    for (int i = 0; i < count; i++) {
        if (!lives_meet(buffer, placed[i])) continue;
        if (offset + buffer->bytes <= placed[i]->offset) break;
        const size_t end = placed[i]->offset + packing_aligned(placed[i]->bytes);
        if (end > offset) offset = end;
    }
    return offset;
}

/* placed has room for one more. */
static void insert_sorted(struct packed_buffer *buffer, struct packed_buffer **placed, int count)
{
    int at = count;
    while (at > 0 && placed[at - 1]->offset > buffer->offset) at--;
    memmove(placed + at + 1, placed + at, (size_t)(count - at) * sizeof *placed);
    placed[at] = buffer;
}

size_t packing_place(struct packed_buffer *buffers, int count, struct packed_buffer **order)
{
    for (int i = 0; i < count; i++) order[i] = &buffers[i];
    qsort(order, (size_t)count, sizeof *order, compare);

    size_t block = 0;
    for (int i = 0; i < count; i++) {
        /* order[0 .. i-1] is now the sorted list of placed buffers */
        struct packed_buffer *buffer = order[i];
        buffer->offset = find_offset(buffer, order, i);
        insert_sorted(buffer, order, i);
        const size_t end = buffer->offset + packing_aligned(buffer->bytes);
        if (end > block) block = end;
    }
    return block;
}
