/* product.cuh - a matrix product in tiles, whatever its operands are read from.
 *
 * A block makes a tile of the result, TILE_ROWS x COLUMNS, step by step along the terms: the
 * operands of a step are gathered into shared memory, each number once for the whole block, while
 * the block adds up the steps before. Where there are too few tiles for the GPU, the terms are
 * shared out in slices, whose sums are added afterwards, the first first. Every sum is taken in an
 * order that the shape gives, so the result has the same bits in every run.
 *
 * What is multiplied is an Operands:
 *     Left, Right              types of left and right, each a Side (tile.cuh)
 *     ROUNDS                   whether tensor cores may multiply them, as the precision has it
 *     rows, columns, terms     sizes, which fit an int
 *     store<COUNT>(row, column, sums)
 *                              takes COUNT neighbours of a row; more than one only where the
 *                              product says that it stores quads
 *     plain(sums)              the same operands, whose results are stored as they are, in rows
 * that go on behind the last: those of slice 1 follow those of slice 0
 */
#ifndef KERNELS_CUDA_PRODUCT_PRODUCT_CUH
#define KERNELS_CUDA_PRODUCT_PRODUCT_CUH

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/sums.cuh"

enum {
    TILE_COLUMNS = 128,        /* at most */
    NARROW_COLUMNS = 32,       /* the same of products that are not wide, which take registers */
    STEP_TERMS = 16,           /* of tensor cores; more where each thread is to have a whole unit */
    PRODUCT_BLOCKS = 256,      /* enough for every multiprocessor of the largest GPU */
    SLICE_TERMS_MIN = 128,     /* or adding slices up takes longer than they save */
    SLICE_TERMS_MULTIPLE = 32, /* whole steps of every kind of sums */
    PRODUCT_SIZE_MAX = INT32_MAX - 1024 /* so that what lies in a tile beyond the end fits an int */
};

/* Floats that the sums of all slices of a product take at most */
enum { PRODUCT_SUMS_MAX = PRODUCT_BLOCKS * TILE_ROWS * TILE_COLUMNS };

/* How a product is made, beside its operands */
struct product {
    const char *name;
    bool is_wide;      /* both sides can be read by quads */
    bool stores_quads; /* the result, or the sums of slices, can be written by quads */
    int64_t slices;    /* as product_slices() has it */
    float *sums;       /* [slices, rows, columns] of the device; a single slice takes none */
};

/* Columns of a tile of a wide product: no more than the result has, as far as there are such tiles
 */
static inline int64_t tile_columns(int64_t columns)
{
    return columns <= 32 ? 32 : columns <= 64 ? 64 : TILE_COLUMNS;
}

static inline int64_t tile_count(int64_t rows, int64_t columns, int64_t width)
{
    return (rows + TILE_ROWS - 1) / TILE_ROWS * ((columns + width - 1) / width);
}

/* Among how many slices the terms should be shared out. It follows from the shape alone, as the
 * order of the sums does. */
static inline int64_t product_slices(int64_t rows, int64_t columns, int64_t terms)
{
    const int64_t tiles = tile_count(rows, columns, tile_columns(columns));
    const int64_t most = terms / SLICE_TERMS_MIN;
    const int64_t wanted = tiles > 0 ? PRODUCT_BLOCKS / tiles : 0;
    const int64_t slices = wanted < most ? wanted : most;
    return slices > 1 ? slices : 1;
}

/* Floats that their sums take */
static inline int64_t product_sums(int64_t rows, int64_t columns, int64_t terms)
{
    const int64_t slices = product_slices(rows, columns, terms);
    return slices > 1 ? slices * rows * columns : 0;
}

/* Whether a matrix of this many columns can be read and written by quads */
static inline bool has_quads(const float *numbers, int64_t columns)
{
    return (uintptr_t)numbers % (QUAD * sizeof *numbers) == 0 && columns % QUAD == 0;
}

/* Adds the slices up, the first first. */
template <typename Operands> struct sum_slices {
    Operands o;
    const float *sums; /* [slices, rows, columns] */
    int slices;

    __device__ void operator()(int64_t i) const
    {
        const int64_t count = (int64_t)o.rows * o.columns, row = quotient_of(i, o.columns);
        float sum = sums[i];
        for (int64_t slice = 1; slice < slices; slice++) sum += sums[slice * count + i];
        o.template store<1>((int)row, (int)(i - row * o.columns), &sum);
    }
};

/* What a kernel is told of the slices */
struct slicing {
    int count, terms; /* of each but the last */
    bool stores_quads;
};

static inline struct slicing slicing_of(const struct product &p, int64_t terms)
{
    const int64_t share = (terms + p.slices - 1) / p.slices + SLICE_TERMS_MULTIPLE - 1;
    const int64_t steps = share / SLICE_TERMS_MULTIPLE > 1 ? share / SLICE_TERMS_MULTIPLE : 1;
    const int64_t slice_terms = steps * SLICE_TERMS_MULTIPLE;
    const int64_t count = (terms + slice_terms - 1) / slice_terms; /* rounding may leave fewer */
    return {count > 1 ? (int)count : 1, (int)slice_terms, p.stores_quads};
}

template <typename Sums, typename Operands>
ON_GPU struct product_task task_of_block(const Operands &o, const struct slicing &s)
{
    const unsigned column_tiles = (o.columns + Sums::COLUMNS - 1) / Sums::COLUMNS;
    const unsigned row_tiles = (o.rows + TILE_ROWS - 1) / TILE_ROWS;
    const unsigned line = blockIdx.x / column_tiles, slice = line / row_tiles;
    const int row = (line - slice * row_tiles) * TILE_ROWS;
    const int column = (blockIdx.x - line * column_tiles) * Sums::COLUMNS;
    const int first = slice * s.terms, left = o.terms - first;
    const int terms = left < s.terms ? left : s.terms;
    return {row, column, first, (terms + Sums::TERMS - 1) / Sums::TERMS, (int)slice};
}

template <int COUNT, typename Operands>
ON_GPU void store_group(const Operands &o, bool stores_quads, int row, int column,
                        const float *sums)
{
    if (stores_quads) {
        if (column < o.columns) o.template store<COUNT>(row, column, sums);
        return;
    }
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        if (column + i < o.columns) o.template store<1>(row, column + i, sums + i);
}

template <typename Operands, typename Sums>
ON_GPU void store_tile(const Operands &o, const struct slicing &s, const struct product_task &t,
                       const Sums &sum)
{
    enum { GROUP = Sums::GROUP };
#pragma unroll
    for (int i = 0; i < Sums::HEIGHT; i++) {
        const int row = t.first_row + sum.row(i);
#pragma unroll
        for (int j = 0; j < Sums::BREADTH; j += GROUP) {
            alignas(16) float group[GROUP];
#pragma unroll
            for (int e = 0; e < GROUP; e++) group[e] = sum.at[i][j + e];
            if (row < o.rows)
                store_group<GROUP>(o, s.stores_quads, t.slice * o.rows + row,
                                   t.first_column + sum.column(j), group);
        }
    }
}

template <typename Operands, typename Sums, bool WIDE>
static __global__ void __launch_bounds__(Sums::THREADS, WIDE ? (int)Sums::BLOCKS : 2)
    product_tiles(Operands o, struct slicing s)
{
    typedef typename Sums::template fetch<Operands, WIDE> Fetch;
    typedef typename Fetch::Sides Sides;
    __shared__ typename Fetch::Shared shared;
    const struct product_task t = task_of_block<Sums>(o, s);
    Sums sum = {};
    Fetch fetch;
    fetch.start(o, shared, t);
    for (int left_over = t.steps - 1; left_over >= 0; left_over--) {
        const int stage = fetch.arrive(o, shared, left_over);
        sum.template add<typename Sides::left_layout, typename Sides::right_layout>(
            shared.left[stage], shared.right[stage]);
    }
    store_tile(o, s, t, sum);
}

template <typename Sums, bool WIDE, typename Operands>
static void launch_tiles(struct device *d, const char *name, const Operands &o,
                         const struct slicing &s)
{
    const int64_t blocks = tile_count(o.rows, o.columns, Sums::COLUMNS) * s.count;
    if (blocks > INT32_MAX) {
        cuda_refuse(d, "a product of too many tiles");
        return;
    }
    launch(d, {name, (unsigned)blocks, 1, Sums::THREADS}, product_tiles<Operands, Sums, WIDE>, o,
           s);
}

/* What is not wide stays in float32: tensor cores would wait for numbers that come one by one. */
template <int COLUMNS, bool WIDE, typename Operands>
static void launch_product(struct device *d, const char *name, const Operands &o,
                           const struct slicing &s)
{
    enum { BF16_TERMS = COLUMNS == 32 ? 2 * STEP_TERMS : STEP_TERMS };
    if constexpr (WIDE && Operands::ROUNDS) {
        switch (((const struct cuda_state *)d->state)->precision) {
        case PRECISION_TF32:
            return launch_tiles<tensor_sums<COLUMNS, tf32_words, STEP_TERMS>, true>(d, name, o, s);
        case PRECISION_BF16:
            return launch_tiles<tensor_sums<COLUMNS, bf16_words, BF16_TERMS>, true>(d, name, o, s);
        case PRECISION_FLOAT32:
            break;
        }
    }
    launch_tiles<float_sums<COLUMNS>, WIDE>(d, name, o, s);
}

template <bool WIDE, typename Operands>
static void launch_width(struct device *d, const char *name, const Operands &o,
                         const struct slicing &s)
{
    if constexpr (!WIDE) {
        launch_product<NARROW_COLUMNS, false>(d, name, o, s);
    } else {
        if (o.columns <= 32)
            launch_product<32, true>(d, name, o, s);
        else if (o.columns <= 64)
            launch_product<64, true>(d, name, o, s);
        else
            launch_product<TILE_COLUMNS, true>(d, name, o, s);
    }
}

template <typename Operands>
static void product(struct device *d, const struct product &p, const Operands &o)
{
    if (o.rows == 0 || o.columns == 0) return;
    if (o.rows > PRODUCT_SIZE_MAX || o.columns > PRODUCT_SIZE_MAX || o.terms > PRODUCT_SIZE_MAX) {
        cuda_refuse(d, "a product of too many rows, columns or terms");
        return;
    }
    const struct slicing s = slicing_of(p, o.terms);
    const Operands stored = s.count > 1 ? o.plain(p.sums) : o;
    if (p.is_wide)
        launch_width<true>(d, p.name, stored, s);
    else
        launch_width<false>(d, p.name, stored, s);
    if (s.count == 1) return;
    const int64_t results = (int64_t)o.rows * o.columns;
    each(d, p.name, sum_slices<Operands>{o, p.sums, s.count}, results);
}

#endif
