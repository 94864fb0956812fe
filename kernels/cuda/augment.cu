/* augment.cu - random augmentation of images: one thread per channel of an image. */
#include "kernels/cuda/launch.cuh"

struct augment_body {
    struct augment v;
    float *y;
    const float *x;

    __device__ void operator()(int64_t plane) const
    {
        element_augment(&v, y, x, plane);
    }
};

struct augment_back_body {
    struct augment v;
    float *dx;
    const float *dy;
    bool add;

    __device__ void operator()(int64_t plane) const
    {
        element_augment_back(&v, dx, dy, add, plane);
    }
};

void cuda_augment(struct device *d, const struct augment *v, float *y, const float *x)
{
    each(d, "augment", augment_body{*v, y, x}, v->batch * v->channels);
}

void cuda_augment_back(struct device *d, const struct augment *v, float *dx, const float *dy, bool add)
{
    each(d, "augment_back", augment_back_body{*v, dx, dy, add}, v->batch * v->channels);
}
