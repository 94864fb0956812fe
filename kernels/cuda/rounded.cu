/* rounded.cu - rounds floats to 16 bits, and sums 16-bit numbers. */
#include "kernels/cuda/launch.cuh"

struct round_off_body {
    uint16_t *y;
    float *error;
    const float *x;
    enum number as;
    __device__ void operator()(int64_t i) const
    {
        y[i] = element_round_off(as, x[i], &error[i]);
    }
};

void cuda_round_off(struct device *d, uint16_t *y, float *error, const float *x, enum number as,
                    int64_t n)
{
    each(d, "round_off", round_off_body{y, error, x, as}, n);
}

/* Passed as a kernel argument, limited to 4 KiB. */
enum { SOURCES_MAX = 256 };

struct sum_rounded_body {
    float *y, scale;
    int count;
    enum number as;
    const uint16_t *sources[SOURCES_MAX];
    __device__ void operator()(int64_t i) const
    {
        float sum = element_widen(as, sources[0][i]);
        for (int source = 1; source < count; source++) sum += element_widen(as, sources[source][i]);
        y[i] = scale * sum;
    }
};

void cuda_sum_rounded(struct device *d, float *y, const uint16_t *const sources[], int count,
                      enum number as, float scale, int64_t n)
{
    sum_rounded_body body = {y, scale, count, as, {}};
    if (count > SOURCES_MAX) {
        cuda_refuse(d, "sum_rounded: more than 256 sources");
        return;
    }
    memcpy(body.sources, sources, (size_t)count * sizeof *sources);
    each(d, "sum_rounded", body, n);
}
