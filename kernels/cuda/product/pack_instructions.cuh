/* pack_instructions.cuh - 16 bytes by one instruction, where the compiler would take four. */
#ifndef KERNELS_CUDA_PRODUCT_PACK_INSTRUCTIONS_CUH
#define KERNELS_CUDA_PRODUCT_PACK_INSTRUCTIONS_CUH

#include "kernels/cuda/launch.cuh"

/* to: global memory, a multiple of 16 bytes. nvcc 13.0 splits the assignment of a float4 whose
 * address it derives from that of another. */
ON_GPU void pack_store(float *to, const float *from)
{
    asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};"
                 :
                 : "l"(__cvta_generic_to_global(to)), "f"(from[0]), "f"(from[1]), "f"(from[2]),
                   "f"(from[3])
                 : "memory");
}

#endif
