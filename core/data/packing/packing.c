/* packing.c - see packing.h. */
#include "core/data/packing/packing.h"

/* A zstd file may also begin with a skippable frame, which has one of sixteen magic numbers;
 * multi-threaded packers write those. */
static bool is_zstd(const uint8_t *head)
{
    const bool is_frame = head[0] == 0x28 && head[1] == 0xb5 && head[2] == 0x2f && head[3] == 0xfd;
    const bool is_passed = head[0] >> 4 == 5 && head[1] == 0x2a && head[2] == 0x4d;
    return is_frame || (is_passed && head[3] == 0x18);
}

const struct packing *packing_of(const uint8_t *head, size_t bytes)
{
    if (bytes >= 2 && head[0] == 0x1f && head[1] == 0x8b) return &packing_gzip;
    return bytes >= PACKING_HEAD_BYTES && is_zstd(head) ? &packing_zstd : NULL;
}
