/* fold.cu - broadcasting, reductions over axes, transposes: one thread per result, or a warp if
 * much is folded into it; and if neighbouring results read neighbouring elements, as in sums over
 * rows of a matrix, blocks share the folding for 32 results. */
#include "kernels/cuda/launch.cuh"

struct fold_body {
    struct fold f;
    int64_t places; /* elements folded into one result */

    __device__ float value(int64_t kept, int64_t i) const
    {
        const int64_t a = element_place(&f.kept, f.kept.a, kept) + element_place(&f.folded, f.folded.a, i);
        const int64_t b = element_place(&f.kept, f.kept.b, kept) + element_place(&f.folded, f.folded.b, i);
        const int64_t c = element_place(&f.kept, f.kept.c, kept) + element_place(&f.folded, f.folded.c, i);
        return element_fold(f.of, &f, f.a[a], f.b ? f.b[b] : 0.0f, f.c ? f.c[c] : 0.0f);
    }

    __device__ void give(int64_t kept, float total) const
    {
        float *y = f.y + element_place(&f.kept, f.kept.y, kept);
        *y = f.add ? *y + f.scale * total : f.scale * total;
    }

    __device__ void operator()(int64_t kept) const
    {
        double sum = 0;
        float top = 0;
        for (int64_t i = 0; i < places; i++) {
            const float v = value(kept, i);
            sum += v;
            top = i && top >= v ? top : v;
        }
        give(kept, f.is_max || places == 1 ? top : (float)sum);
    }
};

static __global__ void fold_rows(struct fold_body body, int64_t n)
{
    const int lane = lane_index();
    for (int64_t kept = grid_warp(); kept < n; kept += grid_warps()) {
        double sum = 0;
        float top = -INFINITY;
        for (int64_t i = lane; i < body.places; i += WARP) {
            const float v = body.value(kept, i);
            sum += v;
            top = top >= v ? top : v;
        }
        sum = warp_sum(sum);
        top = warp_max(top);
        if (lane == 0) body.give(kept, body.f.is_max ? top : (float)sum);
    }
}

ON_GPU double fold_two(bool is_max, double a, double b)
{
    return !is_max ? a + b : a >= b ? a : b;
}

/* One lane per result; the folded elements are dealt in turn to the warps of all blocks in a column
 * of the grid. partials [n, slices]: if there are several such blocks */
static __global__ void fold_across(struct fold_body body, int64_t n, double *partials)
{
    __shared__ double part[BLOCK_WARPS][WARP];
    const int lane = lane_index(), warp = (int)threadIdx.x / WARP;
    const bool is_max = body.f.is_max;
    const int64_t kept = (int64_t)blockIdx.x * WARP + lane, step = (int64_t)gridDim.y * BLOCK_WARPS;
    double all = is_max ? -INFINITY : 0.0;
    for (int64_t i = (int64_t)blockIdx.y * BLOCK_WARPS + warp; kept < n && i < body.places; i += step)
        all = fold_two(is_max, all, body.value(kept, i));
    part[warp][lane] = all;
    __syncthreads();
    if (warp > 0 || kept >= n) return;
    for (int i = 1; i < BLOCK_WARPS; i++) all = fold_two(is_max, all, part[i][lane]);
    if (gridDim.y == 1)
        body.give(kept, (float)all);
    else
        partials[kept * gridDim.y + blockIdx.y] = all;
}

struct fold_slices_body {
    struct fold_body body;
    const double *partials;
    int slices;

    __device__ void operator()(int64_t kept) const
    {
        double all = partials[kept * slices];
        for (int i = 1; i < slices; i++)
            all = fold_two(body.f.is_max, all, partials[kept * slices + i]);
        body.give(kept, (float)all);
    }
};

/* Threads of a warp read neighbours in any case, unless a warp folds one result. If the last axis
 * is short, most elements of a warp are no neighbours, so that it is not faster. */
static bool is_across(const struct fold *f)
{
    const int kept = f->kept.count - 1, folded = f->folded.count - 1;
    const bool is_wide = kept == 0 || (kept > 0 && f->kept.n[kept] >= WARP / 4);
    return is_wide && f->kept.a[kept] == 1 && f->folded.a[folded] != 1;
}

static void run_across(struct device *d, const struct fold_body &body, int64_t n)
{
    enum { BLOCKS_WANTED = 1024, NUMBERS_MIN = 4 /* per thread */ };
    double *partials = ((const struct cuda_state *)d->state)->partials;
    const unsigned blocks = blocks_for(n, WARP, INT32_MAX);
    const int64_t room = PARTIALS_MAX / n, wanted = BLOCKS_WANTED / blocks;
    const int64_t most = room < wanted ? room : wanted;
    const unsigned slices =
        blocks_for(body.places, BLOCK_WARPS * NUMBERS_MIN, most > 1 ? (unsigned)most : 1);
    launch(d, {"fold", blocks, slices}, fold_across, body, n, partials);
    if (slices > 1) each(d, "fold_slices", fold_slices_body{body, partials, (int)slices}, n);
}

void cuda_fold(struct device *d, const struct fold *f)
{
    const int64_t n = fold_places(&f->kept);
    const fold_body body = {*f, fold_places(&f->folded)};
    if (n <= 0) return;
    if (body.places < 2 * WARP)
        each(d, "fold", body, n);
    else if (is_across(f))
        run_across(d, body, n);
    else
        launch(d, {"fold", row_blocks(n), 1}, fold_rows, body, n);
}
