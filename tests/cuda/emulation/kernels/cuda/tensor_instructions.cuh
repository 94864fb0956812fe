/* tensor_instructions.cuh - stands in for kernels/cuda's file of that name, whose instructions the
 * processor has not. */
#ifndef TESTS_CUDA_EMULATION_TENSOR_INSTRUCTIONS_CUH
#define TESTS_CUDA_EMULATION_TENSOR_INSTRUCTIONS_CUH

#include "kernels/cuda/launch.cuh"

enum { TF32_CUT_BITS = 13 }; /* of the mantissa of float32 */

ON_GPU float tensor_rounded(float x)
{
    const uint32_t bits = mathf_bits(x), half = 1u << (TF32_CUT_BITS - 1);
    const bool is_finite = (bits & 0x7f800000) != 0x7f800000;
    return mathf_from_bits((is_finite ? bits + half : bits) >> TF32_CUT_BITS << TF32_CUT_BITS);
}

/* What the lanes hold of both operands */
struct tensor_part {
    float left[4], right[2];
};

/* left (row, term) and right (term, column), from the lanes that hold them */
static inline float tensor_left_at(int row, int term)
{
    const struct tensor_part *part = (const struct tensor_part *)grid_given(row % 8 * 4 + term % 4);
    return part->left[row / 8 + term / 4 * 2];
}

static inline float tensor_right_at(int term, int column)
{
    const struct tensor_part *part = (const struct tensor_part *)grid_given(column * 4 + term % 4);
    return part->right[term / 4];
}

static inline void tensor_multiply(float *upper, float *lower, const float *left,
                                   const float *right)
{
    struct tensor_part part;
    memcpy(part.left, left, sizeof part.left);
    memcpy(part.right, right, sizeof part.right);
    grid_give(&part, sizeof part);
    const int group = lane_index() / 4, place = lane_index() % 4;
    for (int term = 0; term < 8; term++)
        for (int i = 0; i < 2; i++) {
            const float factor = tensor_right_at(term, place * 2 + i);
            upper[i] += tensor_left_at(group, term) * factor;
            lower[i] += tensor_left_at(group + 8, term) * factor;
        }
}

#endif
