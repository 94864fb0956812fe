/* update.cu - the optimizers: the formulas of elements.h, one element per thread. */
#include "kernels/cuda/launch.cuh"

struct sgd_element {
    struct update_sgd u;
    __device__ void operator()(int64_t i) const
    {
        u.value[i] -= u.rate * u.gradient[i];
    }
};

static void update_sgd(struct device *d, const struct update_sgd *u, int64_t n)
{
    each(d, "update_sgd", sgd_element{*u}, n);
}

struct momentum_element {
    struct update_momentum u;
    __device__ void operator()(int64_t i) const
    {
        element_momentum(&u, u.nesterov, i);
    }
};

static void update_momentum(struct device *d, const struct update_momentum *u, int64_t n)
{
    each(d, "update_momentum", momentum_element{*u}, n);
}

struct adagrad_element {
    struct update_adagrad u;
    __device__ void operator()(int64_t i) const
    {
        element_adagrad(&u, i);
    }
};

static void update_adagrad(struct device *d, const struct update_adagrad *u, int64_t n)
{
    each(d, "update_adagrad", adagrad_element{*u}, n);
}

struct adam_element {
    struct update_adam u;
    __device__ void operator()(int64_t i) const
    {
        element_adam(&u, i);
    }
};

static void update_adam(struct device *d, const struct update_adam *u, int64_t n)
{
    each(d, "update_adam", adam_element{*u}, n);
}

struct rmsprop_element {
    struct update_rmsprop u;
    __device__ void operator()(int64_t i) const
    {
        element_rmsprop(&u, u.mean != NULL, i);
    }
};

static void update_rmsprop(struct device *d, const struct update_rmsprop *u, int64_t n)
{
    each(d, "update_rmsprop", rmsprop_element{*u}, n);
}

void cuda_update_fill(struct kernels *table)
{
    table->update_sgd = update_sgd;
    table->update_momentum = update_momentum;
    table->update_adagrad = update_adagrad;
    table->update_adam = update_adam;
    table->update_rmsprop = update_rmsprop;
}
