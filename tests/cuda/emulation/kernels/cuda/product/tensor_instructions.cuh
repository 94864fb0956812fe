/* tensor_instructions.cuh - stands in for kernels/cuda's file of that name, whose instructions the
 * processor has not. */
#ifndef TESTS_CUDA_EMULATION_TENSOR_INSTRUCTIONS_CUH
#define TESTS_CUDA_EMULATION_TENSOR_INSTRUCTIONS_CUH

#include "kernels/cuda/product/copy_instructions.cuh"

enum { TF32_CUT_BITS = 13, BF16_CUT_BITS = 16 }; /* of the mantissa of float32 */

ON_GPU uint32_t tensor_tf32(float x)
{
    const uint32_t bits = mathf_bits(x), half = 1u << (TF32_CUT_BITS - 1);
    const bool is_finite = (bits & 0x7f800000) != 0x7f800000;
    return (is_finite ? bits + half : bits) >> TF32_CUT_BITS << TF32_CUT_BITS;
}

/* The GPU makes one NaN of all. */
static inline uint32_t bf16_of(float x)
{
    const uint32_t bits = mathf_bits(x), half = (1u << (BF16_CUT_BITS - 1)) - 1;
    if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
    return (bits + half + (bits >> BF16_CUT_BITS & 1)) >> BF16_CUT_BITS;
}

ON_GPU uint32_t tensor_bf16(float first, float second)
{
    return bf16_of(second) << BF16_CUT_BITS | bf16_of(first);
}

ON_GPU void tensor_load(uint32_t *to, const uint32_t *row)
{
    if ((uintptr_t)row % 16 != 0) abort();
    grid_give(&row, sizeof row);
    for (int i = 0; i < 4; i++) {
        const uint32_t *from;
        memcpy(&from, grid_given(i * 8 + lane_index() / 4), sizeof from);
        to[i] = from[lane_index() % 4];
    }
}

/* What the lanes hold of both operands */
struct tensor_part {
    uint32_t left[4], right[2];
};

/* left (row, word) and right (word, column), from the lanes that hold them */
static inline uint32_t tensor_left_at(int row, int word)
{
    const struct tensor_part *part = (const struct tensor_part *)grid_given(row % 8 * 4 + word % 4);
    return part->left[row / 8 + word / 4 * 2];
}

static inline uint32_t tensor_right_at(int word, int column)
{
    const struct tensor_part *part = (const struct tensor_part *)grid_given(column * 4 + word % 4);
    return part->right[word / 4];
}

/* The product of two words */
typedef float word_product(uint32_t left, uint32_t right);

static inline float product_of_tf32(uint32_t left, uint32_t right)
{
    return mathf_from_bits(left) * mathf_from_bits(right);
}

static inline float product_of_bf16(uint32_t left, uint32_t right)
{
    const uint32_t upper = 0xffff0000;
    return mathf_from_bits(left << BF16_CUT_BITS) * mathf_from_bits(right << BF16_CUT_BITS) +
           mathf_from_bits(left & upper) * mathf_from_bits(right & upper);
}

template <word_product *PRODUCT>
static inline void tensor_multiply(float *upper, float *lower, const uint32_t *left,
                                   const uint32_t *right)
{
    struct tensor_part part;
    memcpy(part.left, left, sizeof part.left);
    memcpy(part.right, right, sizeof part.right);
    grid_give(&part, sizeof part);
    const int group = lane_index() / 4, place = lane_index() % 4;
    for (int word = 0; word < 8; word++)
        for (int i = 0; i < 2; i++) {
            const uint32_t factor = tensor_right_at(word, place * 2 + i);
            upper[i] += PRODUCT(tensor_left_at(group, word), factor);
            lower[i] += PRODUCT(tensor_left_at(group + 8, word), factor);
        }
}

ON_GPU void tensor_multiply_tf32(float *upper, float *lower, const uint32_t *left,
                                 const uint32_t *right)
{
    tensor_multiply<product_of_tf32>(upper, lower, left, right);
}

ON_GPU void tensor_multiply_bf16(float *upper, float *lower, const uint32_t *left,
                                 const uint32_t *right)
{
    tensor_multiply<product_of_bf16>(upper, lower, left, right);
}

#endif
