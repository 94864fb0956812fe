/* copy_instructions.cuh - reads from the GPU's memory that may be left out, and copies from there
 * to shared memory that no register holds and no thread waits for, until it says so. */
#ifndef KERNELS_CUDA_PRODUCT_COPY_INSTRUCTIONS_CUH
#define KERNELS_CUDA_PRODUCT_COPY_INSTRUCTIONS_CUH

#include "kernels/cuda/launch.cuh"

/* Four floats that are aligned to 16 bytes, or nothing; what is not read stays as it is. No branch,
 * so that reads do not wait for each other. */
ON_GPU void read_quad(float *to, const float *from, bool is_there)
{
    asm volatile("{\n"
                 ".reg .pred wanted;\n"
                 "setp.ne.u32 wanted, %5, 0;\n"
                 "@wanted ld.global.v4.f32 {%0, %1, %2, %3}, [%4];\n"
                 "}"
                 : "+f"(to[0]), "+f"(to[1]), "+f"(to[2]), "+f"(to[3])
                 : "l"(__cvta_generic_to_global(from)), "r"((uint32_t)is_there)
                 : "memory");
}

ON_GPU uint32_t shared_address(const void *shared)
{
    return (uint32_t)__cvta_generic_to_shared(shared);
}

/* Four floats, both ends aligned to 16 bytes; not is_there: nothing is read, and they become 0.
 * They pass the first cache by: a block reads each number once. */
ON_GPU void copy_quad(void *to, const float *from, bool is_there)
{
    asm volatile("{\n"
                 ".reg .pred ignored;\n"
                 "setp.eq.u32 ignored, %2, 0;\n"
                 "cp.async.cg.shared.global [%0], [%1], 16, ignored;\n"
                 "}"
                 :
                 : "r"(shared_address(to)), "l"(__cvta_generic_to_global(from)),
                   "r"((uint32_t)is_there)
                 : "memory");
}

/* One float, through the first cache: its neighbours are read by other instructions. */
ON_GPU void copy_float(void *to, const float *from, bool is_there)
{
    asm volatile("{\n"
                 ".reg .pred ignored;\n"
                 "setp.eq.u32 ignored, %2, 0;\n"
                 "cp.async.ca.shared.global [%0], [%1], 4, ignored;\n"
                 "}"
                 :
                 : "r"(shared_address(to)), "l"(__cvta_generic_to_global(from)),
                   "r"((uint32_t)is_there)
                 : "memory");
}

/* Ends a group of this thread's copies, which may be empty. */
ON_GPU void copy_group()
{
    asm volatile("cp.async.commit_group;" : : : "memory");
}

/* Waits for this thread's groups but the last LATER. */
template <int LATER> ON_GPU void copy_wait()
{
    asm volatile("cp.async.wait_group %0;" : : "n"(LATER) : "memory");
}

#endif
