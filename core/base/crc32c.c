/* crc32c.c - the choice of implementation, and the one in software (slicing by 8). */
#include "core/base/crc32c.h"

#include <pthread.h>

enum { SLICES = 8 };
static const uint32_t polynomial = 0x82f63b78u; /* Castagnoli, bits reversed */

/* table[0][b]: the state after byte b; table[s][b]: after b and s zero bytes. Constant once made.
 */
static uint32_t table[SLICES][256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void make_table(void)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t x = b;
        for (int bit = 0; bit < 8; bit++) x = x >> 1 ^ (x & 1 ? polynomial : 0);
        table[0][b] = x;
    }
    for (int s = 1; s < SLICES; s++) {
        for (int b = 0; b < 256; b++) {
            uint32_t x = table[s - 1][b];
            table[s][b] = x >> 8 ^ table[0][x & 0xff];
        }
    }
}

static uint32_t step_8(uint32_t x, const uint8_t *at)
{
    uint32_t low = x ^ ((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
                        (uint32_t)at[3] << 24);
    return table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^ table[5][low >> 16 & 0xff] ^
           table[4][low >> 24] ^ table[3][at[4]] ^ table[2][at[5]] ^ table[1][at[6]] ^
           table[0][at[7]];
}

void crc32c_software(uint32_t *state, const void *data, size_t bytes)
{
    pthread_once(&table_once, make_table);
    const uint8_t *at = data;
    uint32_t x = *state;
    for (; bytes >= 8; bytes -= 8, at += 8) x = step_8(x, at);
    for (; bytes > 0; bytes--, at++) x = x >> 8 ^ table[0][(x ^ *at) & 0xff];
    *state = x;
}

uint32_t crc32c_extend(uint32_t crc, const void *data, size_t bytes)
{
    uint32_t state = ~crc;
    if (!crc32c_hardware(&state, data, bytes)) crc32c_software(&state, data, bytes);
    return ~state;
}
