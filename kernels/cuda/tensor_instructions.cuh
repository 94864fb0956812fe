/* tensor_instructions.cuh - the two instructions of tensor.cuh, which no expression of C++ becomes.
 */
#ifndef KERNELS_CUDA_TENSOR_INSTRUCTIONS_CUH
#define KERNELS_CUDA_TENSOR_INSTRUCTIONS_CUH

#include "kernels/cuda/launch.cuh"

/* To the nearest TF32; ties away from zero */
ON_GPU float tensor_rounded(float x)
{
    uint32_t bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return mathf_from_bits(bits);
}

/* upper, lower: the two sums of row group, and those of row group + 8. All lanes must take part. */
ON_GPU void tensor_multiply(float *upper, float *lower, const float *left, const float *right)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(upper[0]), "+f"(upper[1]), "+f"(lower[0]), "+f"(lower[1])
                 : "r"(mathf_bits(left[0])), "r"(mathf_bits(left[1])), "r"(mathf_bits(left[2])),
                   "r"(mathf_bits(left[3])), "r"(mathf_bits(right[0])), "r"(mathf_bits(right[1])));
}

#endif
