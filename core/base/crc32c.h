/* crc32c.h - the checksum of TensorFlow's files: CRC-32 with Castagnoli's polynomial. */
#ifndef CORE_BASE_CRC32C_H
#define CORE_BASE_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The checksum of earlier bytes, whose checksum is crc, followed by data; crc 0: of data alone. */
uint32_t crc32c_extend(uint32_t crc, const void *data, size_t bytes);

static inline uint32_t crc32c(const void *data, size_t bytes)
{
    return crc32c_extend(0, data, bytes);
}

/* TensorFlow stores checksums rotated and shifted, since a checksum over data that contains its own
 * checksum is weak. */
static inline uint32_t crc32c_mask(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* The two implementations, for crc32c_extend and its test. *state is the inverted checksum. The one
 * in hardware returns false, and does nothing, on a machine that has no instruction for it. */
void crc32c_software(uint32_t *state, const void *data, size_t bytes);
bool crc32c_hardware(uint32_t *state, const void *data, size_t bytes);

#endif
