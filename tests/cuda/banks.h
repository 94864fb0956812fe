/* banks.h - what the tiles of a product cost in shared memory, counted from the addresses that a
 * warp touches: its 32 banks give one line of 128 bytes at once, if no two lanes want different
 * words of one bank. C and C++. */
#ifndef TESTS_CUDA_BANKS_H
#define TESTS_CUDA_BANKS_H

#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Lines where one would do: the most of any instruction that writes a tile, and that reads one */
struct lines {
    int written, read;
};

/* Of products of that precision that are wide, whose tiles have so many columns (32, 64, 128) */
struct lines bank_lines(enum precision, int columns, bool is_along_terms);

#ifdef __cplusplus
}
#endif

#endif
