/* tensor.cuh - what the tensor cores of one warp do at once: c [16, 8] += left [16, 8] right [8,
 * 8], in TF32: the exponent of float32, 10 bits of mantissa, sums in float32.
 *
 * With group = lane / 4 and place = lane % 4, a lane holds
 *     left    (group, place), (group + 8, place), (group, place + 4), (group + 8, place + 4)
 *     right   (place, group), (place + 4, group)
 *     c       (group, 2 place), (group, 2 place + 1), and the same two of row group + 8
 * as the PTX manual has it of mma.m16n8k8.
 */
#ifndef KERNELS_CUDA_TENSOR_CUH
#define KERNELS_CUDA_TENSOR_CUH

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/tensor_instructions.cuh"

enum {
    TENSOR_ROWS = 16,
    TENSOR_COLUMNS = 8,
    TENSOR_TERMS = 8,
    TENSOR_LEFT = 4, /* numbers that a lane holds */
    TENSOR_RIGHT = 2
};

/* To the nearest bf16, ties to even: 7 bits of mantissa. TF32 has more, so that its instruction
 * multiplies such numbers exactly. Infinities stay, and so does NaN. */
ON_GPU float tensor_rounded_bf16(float x)
{
    const uint32_t bits = mathf_bits(x), half = 0x7fff + (bits >> 16 & 1), quiet = 1u << 22;
    const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
    return mathf_from_bits((is_nan ? bits | quiet : bits + half) & 0xffff0000);
}

/* Rows of c that a lane holds sums of, and columns: the first and the second */
ON_GPU int tensor_row(int which)
{
    return lane_index() / 4 + which * 8;
}

ON_GPU int tensor_column(int which)
{
    return lane_index() % 4 * 2 + which;
}

/* from: [term, row], `step` numbers from term to term */
ON_GPU void tensor_left(float *left, const float *from, int step)
{
    const int group = lane_index() / 4, place = lane_index() % 4;
    left[0] = from[place * step + group];
    left[1] = from[place * step + group + 8];
    left[2] = from[(place + 4) * step + group];
    left[3] = from[(place + 4) * step + group + 8];
}

/* from: [term, column] */
ON_GPU void tensor_right(float *right, const float *from, int step)
{
    const int group = lane_index() / 4, place = lane_index() % 4;
    right[0] = from[place * step + group];
    right[1] = from[(place + 4) * step + group];
}

#endif
