/* tensor_instructions.cuh - the instructions of tensor.cuh, which no expression of C++ becomes. All
 * lanes of a warp must take part in those that say so.
 */
#ifndef KERNELS_CUDA_PRODUCT_TENSOR_INSTRUCTIONS_CUH
#define KERNELS_CUDA_PRODUCT_TENSOR_INSTRUCTIONS_CUH

#include "kernels/cuda/product/copy_instructions.cuh"

/* To the nearest TF32; ties away from zero */
ON_GPU uint32_t tensor_tf32(float x)
{
    uint32_t word;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(word) : "f"(x));
    return word;
}

/* Two terms to the nearest bf16, ties to even; the first is the lower half. */
ON_GPU uint32_t tensor_bf16(float first, float second)
{
    uint32_t word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
    return word;
}

/* Four matrices of eight rows of four words in shared memory; lane 8 i + j says where row j of the
 * i-th is, aligned to 16 bytes, and gets word lane % 4 of row lane / 4 of each. By the warp. */
ON_GPU void tensor_load(uint32_t *to, const uint32_t *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row))
                 : "memory");
}

/* What tensor.cuh says of c. upper, lower: the two sums of row group, and those of row group + 8.
 * By the warp. */
ON_GPU void tensor_multiply_tf32(float *upper, float *lower, const uint32_t *left,
                                 const uint32_t *right)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(upper[0]), "+f"(upper[1]), "+f"(lower[0]), "+f"(lower[1])
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]),
                   "r"(right[1]));
}

ON_GPU void tensor_multiply_bf16(float *upper, float *lower, const uint32_t *left,
                                 const uint32_t *right)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(upper[0]), "+f"(upper[1]), "+f"(lower[0]), "+f"(lower[1])
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]),
                   "r"(right[1]));
}

#endif
