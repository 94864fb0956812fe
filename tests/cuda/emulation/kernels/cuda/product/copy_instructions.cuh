/* copy_instructions.cuh - stands in for kernels/cuda's file of that name. A copy is made as late as
 * it may be, when its thread waits for it, so that whoever forgets to wait finds something else. */
#ifndef TESTS_CUDA_EMULATION_COPY_INSTRUCTIONS_CUH
#define TESTS_CUDA_EMULATION_COPY_INSTRUCTIONS_CUH

#include "kernels/cuda/launch.cuh"

enum { COPIES_MAX = 256, GROUP_THREADS_MAX = 256 };

struct pending_copy {
    void *to;
    const float *from; /* NULL: zeros */
    uint32_t bytes, group;
};

/* Of each thread of the block, the oldest first. One of the whole program: functions of templates that
 * two files share are merged by the linker, and those of one file run in the kernels of the other. */
struct pending_copies {
    struct pending_copy at[COPIES_MAX];
    uint32_t count, group; /* that is filled now */
};
inline struct pending_copies pending_copies[GROUP_THREADS_MAX];

/* Addresses must be so even where nothing is read. */
static inline void demand_aligned(const void *address, uint32_t bytes)
{
    if ((uintptr_t)address % bytes != 0) abort();
}

static inline void add_copy(void *to, const float *from, uint32_t bytes)
{
    struct pending_copies *mine = &pending_copies[threadIdx.x];
    if (mine->count == COPIES_MAX) abort();
    mine->at[mine->count++] = {to, from, bytes, mine->group};
}

ON_GPU void read_quad(float *to, const float *from, bool is_there)
{
    demand_aligned(from, 16);
    if (is_there) memcpy(to, from, 16);
}

ON_GPU void copy_quad(void *to, const float *from, bool is_there)
{
    demand_aligned(to, 16);
    demand_aligned(from, 16);
    add_copy(to, is_there ? from : NULL, 16);
}

ON_GPU void copy_float(void *to, const float *from, bool is_there)
{
    demand_aligned(to, 4);
    demand_aligned(from, 4);
    add_copy(to, is_there ? from : NULL, 4);
}

ON_GPU void copy_group()
{
    pending_copies[threadIdx.x].group++;
}

template <int LATER> ON_GPU void copy_wait()
{
    struct pending_copies *mine = &pending_copies[threadIdx.x];
    uint32_t left = 0;
    for (uint32_t i = 0; i < mine->count; i++) {
        const struct pending_copy c = mine->at[i];
        const bool is_waited_for = c.group + LATER < mine->group;
        if (!is_waited_for)
            mine->at[left++] = c;
        else if (c.from)
            memcpy(c.to, c.from, c.bytes);
        else
            memset(c.to, 0, c.bytes);
    }
    mine->count = left;
}

#endif
