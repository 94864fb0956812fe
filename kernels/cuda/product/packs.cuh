/* packs.cuh - kernels that walk over vectors, four neighbours by one access of 16 bytes.
 *
 * A thread reads several packs of every vector before it writes the first: the compiler may not
 * move a load over a store, since it cannot know that they never meet, and a GPU's memory is only
 * busy while very many loads are under way. A vector may be read and written in the same call.
 * What lies outside of whole packs, and vectors that lie differently to a multiple of 16 bytes, are
 * taken number by number with the same formula.
 */
#ifndef KERNELS_CUDA_PRODUCT_PACKS_CUH
#define KERNELS_CUDA_PRODUCT_PACKS_CUH

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/product/pack_instructions.cuh"

enum {
    PACK = 4, /* numbers of one access */
    PACK_BYTES = PACK * (int)sizeof(float),
    LOADS = 4,            /* of 16 bytes that a thread has under way, where it reads one vector */
    RESIDENT_BLOCKS = 4,  /* of a multiprocessor: leaves 64 registers to hold what is read */
    BLOCKS_AT_ONCE = 1024 /* that a large GPU runs: as many get work before a thread gets more */
};

/* WIDTH neighbours; a whole pack lies at a multiple of 16 bytes. */
template <int WIDTH> ON_GPU void pack_read(float *to, const float *from)
{
    static_assert(WIDTH == 1 || WIDTH == PACK, "no access has this width");
    if constexpr (WIDTH == PACK) {
        const float4 x = *(const float4 *)from;
        to[0] = x.x, to[1] = x.y, to[2] = x.z, to[3] = x.w;
    } else {
        to[0] = from[0];
    }
}

template <int WIDTH> ON_GPU void pack_write(float *to, const float *from)
{
    if constexpr (WIDTH == PACK)
        pack_store(to, from);
    else
        to[0] = from[0];
}

/* The pack at `from` where is_whole says that it may be read by one access */
ON_GPU void pack_read_any(float *to, const float *from, bool is_whole)
{
    if (is_whole) {
        pack_read<PACK>(to, from);
        return;
    }
    for (int j = 0; j < PACK; j++) to[j] = from[j];
}

/* Numbers from the last multiple of 16 bytes to this one */
static inline int64_t pack_offset(const float *x)
{
    return (int64_t)((uintptr_t)x % PACK_BYTES / sizeof(float));
}

/* Whether packs may be read and written from here on; so they may where there is nothing. */
static inline bool is_packed(const float *x)
{
    return pack_offset(x) == 0;
}

/* How numbers are shared out: `head` before the first pack, the packs, and `edges`, which are the
 * head and those behind the last pack */
struct pack_cut {
    int64_t head, packs, edges;
};

static inline struct pack_cut cut_of(int64_t head, int64_t n)
{
    const int64_t packs = n > head ? (n - head) / PACK : 0;
    return {head, packs, n - packs * PACK};
}

static inline struct pack_cut uncut(int64_t n)
{
    return {0, 0, n};
}

/* Where vectors agree on the way to their first multiple of 16 bytes; NULL: has no say. */
static inline struct pack_cut cut_together(const float *const *at, int count, int64_t n)
{
    int64_t offset = -1;
    for (int i = 0; i < count; i++) {
        if (!at[i]) continue;
        if (offset >= 0 && pack_offset(at[i]) != offset) return uncut(n);
        offset = pack_offset(at[i]);
    }
    return cut_of(offset > 0 ? PACK - offset : 0, n);
}

/* body.take<WIDTH, COUNT>(first, step): what is to be done to COUNT packs of WIDTH numbers, the
 * first of which have the indices first, first + step ... BLOCKS: those that a multiprocessor must
 * have registers for at the same time */
template <typename Body>
static __global__ void __launch_bounds__(BLOCK, Body::BLOCKS) each_cut(Body body, struct pack_cut c)
{
    enum { COUNT = Body::COUNT };
    const int64_t threads = (int64_t)gridDim.x * BLOCK;
    const int64_t thread = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (thread + (COUNT - 1) * threads < c.packs)
        body.template take<PACK, COUNT>(c.head + thread * PACK, threads * PACK);
    else
#pragma unroll 1
        for (int64_t pack = thread; pack < c.packs; pack += threads)
            body.template take<PACK, 1>(c.head + pack * PACK, 0);
#pragma unroll 1
    for (int64_t edge = thread; edge < c.edges; edge += threads)
        body.template take<1, 1>(edge < c.head ? edge : edge + c.packs * PACK, 0);
}

template <typename Body>
static void each_pack(struct device *d, const char *name, const Body &body, const struct pack_cut &c)
{
    unsigned blocks = blocks_for(c.packs, BLOCK, BLOCKS_AT_ONCE);
    const unsigned full = blocks_for(c.packs, BLOCK * Body::COUNT, INT32_MAX);
    const unsigned single = blocks_for(c.edges, BLOCK, EACH_BLOCKS_MAX);
    if (blocks < full) blocks = full;
    if (blocks < single) blocks = single;
    if (c.packs + c.edges > 0) launch(d, {name, blocks, 1}, each_cut<Body>, body, c);
}

/* Vectors that a formula reads numbers from and writes numbers to. NULL: reads 0, writes nothing */
template <int READS, int WRITES> struct streams {
    const float *from[READS > 0 ? READS : 1];
    float *to[WRITES];
};

/* formula(to, from, i): the numbers of index i, from those of every vector */
template <int READS, int WRITES, typename Formula> struct stream_body {
    enum { COUNT = READS < 2 ? LOADS : READS < 5 ? LOADS / 2 : 1, BLOCKS = RESIDENT_BLOCKS };
    struct streams<READS, WRITES> s;
    Formula formula;

    template <int WIDTH> __device__ void read(float (*x)[WIDTH], int64_t i) const
    {
#pragma unroll
        for (int r = 0; r < READS; r++)
            if (s.from[r]) pack_read<WIDTH>(x[r], s.from[r] + i);
    }

    template <int WIDTH>
    __device__ void compute(float (*y)[WIDTH], const float (*x)[WIDTH], int64_t i) const
    {
#pragma unroll
        for (int j = 0; j < WIDTH; j++) {
            float from[READS > 0 ? READS : 1], to[WRITES];
            for (int r = 0; r < READS; r++) from[r] = x[r][j];
            formula(to, from, i + j);
            for (int w = 0; w < WRITES; w++) y[w][j] = to[w];
        }
    }

    template <int WIDTH> __device__ void write(const float (*y)[WIDTH], int64_t i) const
    {
#pragma unroll
        for (int w = 0; w < WRITES; w++)
            if (s.to[w]) pack_write<WIDTH>(s.to[w] + i, y[w]);
    }

    template <int WIDTH, int PACKS> __device__ void take(int64_t first, int64_t step) const
    {
        float x[PACKS][READS > 0 ? READS : 1][WIDTH] = {}, y[PACKS][WRITES][WIDTH];
#pragma unroll
        for (int k = 0; k < PACKS; k++) read<WIDTH>(x[k], first + k * step);
#pragma unroll
        for (int k = 0; k < PACKS; k++) compute<WIDTH>(y[k], x[k], first + k * step);
#pragma unroll
        for (int k = 0; k < PACKS; k++) write<WIDTH>(y[k], first + k * step);
    }
};

template <int READS, int WRITES, typename Formula>
static void each_number(struct device *d, const char *name, const struct streams<READS, WRITES> &s,
                        const Formula &formula, int64_t n)
{
    const float *at[READS + WRITES];
    for (int i = 0; i < READS; i++) at[i] = s.from[i];
    for (int i = 0; i < WRITES; i++) at[READS + i] = s.to[i];
    each_pack(d, name, stream_body<READS, WRITES, Formula>{s, formula},
              cut_together(at, READS + WRITES, n));
}

/* Sums of terms of a vector or of several: terms(from), of the numbers of one index. Who adds which
 * number when follows from n alone, so the sum has the same bits wherever the vectors lie. */
template <int READS, typename Terms> struct sum_body {
    const float *from[READS];
    Terms terms;
    int64_t n;
    bool is_whole; /* packs may be read by one access */
};

template <int WIDTH, int READS, typename Terms>
ON_GPU double sum_pack(const struct sum_body<READS, Terms> &s, const float (*x)[WIDTH])
{
    double sum = 0;
#pragma unroll
    for (int j = 0; j < WIDTH; j++) {
        float from[READS];
        for (int r = 0; r < READS; r++) from[r] = x[r][j];
        sum += s.terms(from);
    }
    return sum;
}

/* The packs pack, pack + step ...: all are read before the first is added. */
template <int PACKS, int READS, typename Terms>
ON_GPU double sum_packs(const struct sum_body<READS, Terms> &s, int64_t pack, int64_t step)
{
    float x[PACKS][READS][PACK];
    double sum = 0;
#pragma unroll
    for (int k = 0; k < PACKS; k++)
        for (int r = 0; r < READS; r++)
            pack_read_any(x[k][r], s.from[r] + (pack + k * step) * PACK, s.is_whole);
#pragma unroll
    for (int k = 0; k < PACKS; k++) sum += sum_pack<PACK>(s, x[k]);
    return sum;
}

template <int READS, typename Terms>
static __global__ void __launch_bounds__(BLOCK, RESIDENT_BLOCKS)
    sum_terms(struct sum_body<READS, Terms> s, double *partials)
{
    __shared__ double lane[BLOCK];
    const int64_t packs = s.n / PACK, step = (int64_t)gridDim.x * BLOCK;
    const int64_t thread = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    double sum = 0;
    int64_t pack = thread;
#pragma unroll 1
    for (; pack + (LOADS - 1) * step < packs; pack += LOADS * step)
        sum += sum_packs<LOADS>(s, pack, step);
#pragma unroll 1
    for (; pack < packs; pack += step) sum += sum_packs<1>(s, pack, step);
    if (packs * PACK + thread < s.n) {
        float x[READS][1];
        for (int r = 0; r < READS; r++) x[r][0] = s.from[r][packs * PACK + thread];
        sum += sum_pack<1>(s, x);
    }
    sum = block_sum(lane, sum);
    if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

/* Into one of the device's results. n > 0 */
template <int READS, typename Terms>
static void sum_into(struct device *d, const char *name, struct sum_body<READS, Terms> s,
                     int result)
{
    struct cuda_state *state = (struct cuda_state *)d->state;
    const unsigned blocks = reduction_blocks(s.n);
    s.is_whole = true;
    for (int r = 0; r < READS; r++) s.is_whole = s.is_whole && is_packed(s.from[r]);
    launch(d, {name, blocks, 1}, sum_terms<READS, Terms>, s,
           blocks > 1 ? state->partials : state->results + result);
    if (blocks > 1) cuda_sum_partials(d, blocks, result);
}

#endif
