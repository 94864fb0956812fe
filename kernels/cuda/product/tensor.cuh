/* tensor.cuh - what the tensor cores of one warp do at once: c [16, 8] += left [16, 8 words] right
 * [8 words, 8], sums in float32. A word is a term in TF32 (the exponent of float32, 10 bits of
 * mantissa) or a pair of terms that follow each other in bf16 (7 bits).
 *
 * With group = lane / 4 and place = lane % 4, a lane holds
 *     left    (group, place), (group + 8, place), (group, place + 4), (group + 8, place + 4)
 *     right   (place, group), (place + 4, group)
 *     c       (group, 2 place), (group, 2 place + 1), and the same two of row group + 8
 * as the PTX manual has it of mma.m16n8k8 for TF32, and of mma.m16n8k16 for bf16, whose terms stand
 * in words where those of the other stand alone.
 */
#ifndef KERNELS_CUDA_PRODUCT_TENSOR_CUH
#define KERNELS_CUDA_PRODUCT_TENSOR_CUH

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/product/tensor_instructions.cuh"

enum {
    TENSOR_ROWS = 16,
    TENSOR_COLUMNS = 8,
    TENSOR_WORDS = 8, /* along the terms */
    TENSOR_LEFT = 4,  /* words that a lane holds */
    TENSOR_RIGHT = 2
};

/* Rows of c that a lane holds sums of, and columns: the first and the second */
ON_GPU int tensor_row(int which)
{
    return lane_index() / 4 + which * 8;
}

ON_GPU int tensor_column(int which)
{
    return lane_index() % 4 * 2 + which;
}

/* Words of a tile that lies as Layout says (tile.cuh), from this row or column on: where the row of
 * a matrix begins that tensor_load() asks this lane for, and the words that it holds at last. */
template <typename Layout> ON_GPU unsigned tensor_left_row(int row, int word)
{
    const int lane = lane_index();
    return Layout::at(row + lane % 16, word + lane / 16 * 4);
}

template <typename Layout> ON_GPU unsigned tensor_left_word(int row, int word, int which)
{
    const int group = lane_index() / 4, place = lane_index() % 4;
    return Layout::at(row + group + which % 2 * 8, word + place + which / 2 * 4);
}

/* Of two neighbours, 8 columns each */
template <typename Layout> ON_GPU unsigned tensor_right_row(int column, int word)
{
    const int lane = lane_index();
    return Layout::at(column + lane % 8 + lane / 16 * 8, word + lane / 8 % 2 * 4);
}

template <typename Layout> ON_GPU unsigned tensor_right_word(int column, int word, int which)
{
    const int group = lane_index() / 4, place = lane_index() % 4;
    return Layout::at(column + group + which / 2 * 8, word + place + which % 2 * 4);
}

/* Where terms are neighbours, one instruction brings all words. */
template <typename Layout>
ON_GPU void tensor_left(uint32_t *left, const uint32_t *tile, int row, int word)
{
    if constexpr (Layout::ALONG_TERMS) {
        tensor_load(left, &tile[tensor_left_row<Layout>(row, word)]);
    } else {
#pragma unroll
        for (int i = 0; i < TENSOR_LEFT; i++)
            left[i] = tile[tensor_left_word<Layout>(row, word, i)];
    }
}

template <typename Layout>
ON_GPU void tensor_right_pair(uint32_t *right, const uint32_t *tile, int column, int word)
{
    if constexpr (Layout::ALONG_TERMS) {
        tensor_load(right, &tile[tensor_right_row<Layout>(column, word)]);
    } else {
#pragma unroll
        for (int i = 0; i < 2 * TENSOR_RIGHT; i++)
            right[i] = tile[tensor_right_word<Layout>(column, word, i)];
    }
}

#endif
