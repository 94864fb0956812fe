/* crc32c_other.c - for other processors: no hardware implementation. */
#include "core/base/crc32c.h"

bool crc32c_hardware(uint32_t *state, const void *data, size_t bytes)
{
    return false;
}
