/* crc32c_x86.c - the implementation with the instruction of SSE 4.2. */
#include "core/base/crc32c.h"

#include <string.h>

__attribute__((target("sse4.2"))) static uint32_t update(uint32_t state, const uint8_t *at,
                                                         size_t bytes)
{
    uint64_t x = state;
    for (; bytes >= 8; bytes -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        x = __builtin_ia32_crc32di(x, word);
    }
    uint32_t y = (uint32_t)x;
    for (; bytes > 0; bytes--, at++) y = __builtin_ia32_crc32qi(y, *at);
    return y;
}

bool crc32c_hardware(uint32_t *state, const void *data, size_t bytes)
{
    if (!__builtin_cpu_supports("sse4.2")) return false;
    *state = update(*state, data, bytes);
    return true;
}
