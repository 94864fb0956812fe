/* fold.cu - broadcasting, reductions over axes, moves: a thread has a result, or where much is
 * folded into it, a warp. */
#include "kernels/cuda/launch.cuh"

struct fold_body {
    struct fold f;
    int64_t places; /* folded into a result */

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

void cuda_fold(struct device *d, const struct fold *f)
{
    const int64_t n = fold_places(&f->kept);
    const fold_body body = {*f, fold_places(&f->folded)};
    if (n <= 0) return;
    if (body.places < 2 * WARP)
        each(d, "fold", body, n);
    else
        launch(d, {"fold", row_blocks(n), 1}, fold_rows, body, n);
}
