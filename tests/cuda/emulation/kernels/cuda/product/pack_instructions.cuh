/* pack_instructions.cuh - stands in for kernels/cuda's file of that name, whose instruction the
 * processor has not. */
#ifndef TESTS_CUDA_EMULATION_PACK_INSTRUCTIONS_CUH
#define TESTS_CUDA_EMULATION_PACK_INSTRUCTIONS_CUH

#include "kernels/cuda/launch.cuh"

ON_GPU void pack_store(float *to, const float *from)
{
    *(float4 *)to = float4(from[0], from[1], from[2], from[3]);
}

#endif
