/* grid.h - runs the blocks of a grid one after another, the threads of each as fibres. C and C++.
 */
#ifndef TESTS_CUDA_EMULATOR_GRID_H
#define TESTS_CUDA_EMULATOR_GRID_H

enum { GRID_THREADS_MAX = 1024, GRID_WARP = 32, GRID_GIVEN_MAX = 32 };

struct grid {
    unsigned blocks_x, blocks_y, threads;
};

struct grid_index {
    unsigned x, y, z;
};

/* Where the fibre that runs stands */
struct grid_place {
    struct grid_index thread, block, threads, blocks;
};

typedef void grid_body(const void *arguments);

#ifdef __cplusplus
extern "C" {
#endif

extern struct grid_place grid_now;

/* Every other grid is walked backwards, blocks and threads, so that a kernel that forgets to wait
 * gives other results. Ends the program where threads wait for some that never come. */
void grid_run(const struct grid *, grid_body *, const void *arguments);

/* The calls of a thread inside a grid */
void grid_wait_for_block(void);
void grid_wait_for_warp(void);
/* Shows the warp some bytes, GRID_GIVEN_MAX at most, and waits until all lanes have; what lane
 * `lane` has shown stays until the next time but one. */
void grid_give(const void *own, unsigned bytes);
const void *grid_given(unsigned lane);

#ifdef __cplusplus
}
#endif

#endif
