/* fetch.cuh - the operands of the steps of a product, one step after the other: start(), and then
 * arrive() for each, which says in which of the stages of shared memory they are, and is told how
 * many steps are left over behind it. */
#ifndef KERNELS_CUDA_PRODUCT_FETCH_CUH
#define KERNELS_CUDA_PRODUCT_FETCH_CUH

#include "kernels/cuda/product/tile.cuh"

/* What a block makes: a tile, of one slice of the terms */
struct product_task {
    int first_row, first_column, first_term, steps;
    int slice;
};

/* Both sides of a product, and how they lie in shared memory. */
template <typename Operands, typename Sums> struct sides {
    typedef typename Operands::Left Left;
    typedef typename Operands::Right Right;
    typedef typename Sums::template left_layout<Left::ALONG_TERMS> left_layout;
    typedef typename Sums::template right_layout<Right::ALONG_TERMS> right_layout;
};

template <typename Sums, int ROWS, int STAGES> struct stages {
    alignas(128) uint32_t left[STAGES][ROWS * Sums::WORDS];
    alignas(128) uint32_t right[STAGES][Sums::COLUMNS * Sums::WORDS];
};

/* Without registers: while a step is added, the next two are on their way. */
template <typename Operands, typename Sums, int ROWS, bool WIDE> struct streaming {
    enum { STAGES = 3 };
    typedef sides<Operands, Sums> Sides;
    typedef stages<Sums, ROWS, STAGES> Shared;
    streamed<typename Sides::Left, typename Sides::left_layout, Sums, ROWS, WIDE> left;
    streamed<typename Sides::Right, typename Sides::right_layout, Sums, Sums::COLUMNS, WIDE> right;
    int term;   /* the first of the step that is sent next */
    int filled; /* the stage that is filled next */

    /* A group for each step, so that a count of groups is one of steps; behind the last are empty
     * ones. */
    __device__ void send(const Operands &o, Shared &to, bool is_step)
    {
        if (is_step) {
            left.copy(o.left, term, to.left[filled]);
            right.copy(o.right, term, to.right[filled]);
        }
        copy_group();
        term += Sums::TERMS;
        filled = filled + 1 < STAGES ? filled + 1 : 0;
    }

    __device__ void start(const Operands &o, Shared &to, const struct product_task &t)
    {
        term = t.first_term;
        filled = 0;
        left.own.start(o.left, t.first_row);
        right.own.start(o.right, t.first_column);
#pragma unroll
        for (int step = 0; step < STAGES - 1; step++) send(o, to, step < t.steps);
    }

    /* The barrier says that all threads' copies are there, and that nobody reads the step before
     * any more, whose stage is filled with the last of those under way. The one after it, which
     * would be filled next, is that of the step. */
    __device__ int arrive(const Operands &o, Shared &to, int left_over)
    {
        copy_wait<STAGES - 2>();
        __syncthreads();
        send(o, to, left_over >= STAGES - 1);
        return filled;
    }
};

/* Through registers: while a step is added, the next one is on its way. */
template <typename Operands, typename Sums, int ROWS> struct carrying {
    enum { STAGES = 2 };
    typedef sides<Operands, Sums> Sides;
    typedef stages<Sums, ROWS, STAGES> Shared;
    carried<typename Sides::Left, typename Sides::left_layout, Sums, ROWS> left;
    carried<typename Sides::Right, typename Sides::right_layout, Sums, Sums::COLUMNS> right;
    int term; /* the first of the step that is fetched next */
    int stage;

    __device__ void fetch(const Operands &o)
    {
        left.fetch(o.left, term);
        right.fetch(o.right, term);
        term += Sums::TERMS;
    }

    __device__ void start(const Operands &o, Shared &, const struct product_task &t)
    {
        term = t.first_term;
        stage = STAGES - 1;
        left.own.start(o.left, t.first_row);
        right.own.start(o.right, t.first_column);
        fetch(o);
    }

    /* One barrier: whoever is late still reads the other stage. */
    __device__ int arrive(const Operands &o, Shared &to, int left_over)
    {
        stage ^= 1;
        left.put(to.left[stage]);
        right.put(to.right[stage]);
        __syncthreads();
        if (left_over > 0) fetch(o);
        return stage;
    }
};

#endif
