/* rows.cuh - one row by one warp. All lanes call these together and get the same result. */
#ifndef KERNELS_CUDA_ROWS_CUH
#define KERNELS_CUDA_ROWS_CUH

#include "kernels/cuda/launch.cuh"

/* The largest of a row; NaN does not count. */
ON_GPU float row_max(const float *x, int64_t columns)
{
    float top = -INFINITY;
    for (int64_t i = lane_index(); i < columns; i += WARP) top = x[i] > top ? x[i] : top;
    return warp_max(top);
}

/* y = e^(x - top), and the sum of that; y may be x, or NULL for the sum alone */
ON_GPU float row_exp(float *y, const float *x, float top, int64_t columns)
{
    double sum = 0;
    for (int64_t i = lane_index(); i < columns; i += WARP) {
        float e = mathf_exp(x[i] - top);
        if (y) y[i] = e;
        sum += e;
    }
    return (float)warp_sum(sum);
}

#endif
