/* update.cu - the optimizers: the formulas of elements.h, on the numbers of one element, which are
 * in registers. What is written comes first among what is read. */
#include "kernels/cuda/product/packs.cuh"

struct sgd_formula {
    float rate;
    __device__ void operator()(float *to, const float *from, int64_t) const
    {
        to[0] = from[0] - rate * from[1];
    }
};

static void update_sgd(struct device *d, const struct update_sgd *u, int64_t n)
{
    each_number(d, "update_sgd", streams<2, 1>{{u->value, u->gradient}, {u->value}},
                sgd_formula{u->rate}, n);
}

struct momentum_formula {
    struct update_momentum u;
    __device__ void operator()(float *to, const float *from, int64_t) const
    {
        struct update_momentum one = u;
        one.value = to, one.momentum = to + 1, one.gradient = from + 2;
        to[0] = from[0], to[1] = from[1];
        element_momentum(&one, u.nesterov, 0);
    }
};

static void update_momentum(struct device *d, const struct update_momentum *u, int64_t n)
{
    each_number(d, "update_momentum",
                streams<3, 2>{{u->value, u->momentum, u->gradient}, {u->value, u->momentum}},
                momentum_formula{*u}, n);
}

struct adagrad_formula {
    struct update_adagrad u;
    __device__ void operator()(float *to, const float *from, int64_t) const
    {
        struct update_adagrad one = u;
        one.value = to, one.accumulator = to + 1, one.gradient = from + 2;
        to[0] = from[0], to[1] = from[1];
        element_adagrad(&one, 0);
    }
};

static void update_adagrad(struct device *d, const struct update_adagrad *u, int64_t n)
{
    each_number(d, "update_adagrad",
                streams<3, 2>{{u->value, u->accumulator, u->gradient}, {u->value, u->accumulator}},
                adagrad_formula{*u}, n);
}

struct adam_formula {
    struct update_adam u;
    __device__ void operator()(float *to, const float *from, int64_t) const
    {
        struct update_adam one = u;
        one.value = to, one.m = to + 1, one.v = to + 2, one.gradient = from + 3;
        to[0] = from[0], to[1] = from[1], to[2] = from[2];
        element_adam(&one, 0);
    }
};

static void update_adam(struct device *d, const struct update_adam *u, int64_t n)
{
    each_number(d, "update_adam",
                streams<4, 3>{{u->value, u->m, u->v, u->gradient}, {u->value, u->m, u->v}},
                adam_formula{*u}, n);
}

/* The mean is neither read nor written where there is none. */
template <bool CENTERED> struct rmsprop_formula {
    struct update_rmsprop u;
    __device__ void operator()(float *to, const float *from, int64_t) const
    {
        struct update_rmsprop one = u;
        one.value = to, one.rms = to + 1, one.momentum = to + 2, one.gradient = from + 3;
        to[0] = from[0], to[1] = from[1], to[2] = from[2];
        if (CENTERED) one.mean = to + 3, to[3] = from[4];
        element_rmsprop(&one, CENTERED, 0);
    }
};

static void update_rmsprop(struct device *d, const struct update_rmsprop *u, int64_t n)
{
    if (u->mean)
        each_number(d, "update_rmsprop",
                    streams<5, 4>{{u->value, u->rms, u->momentum, u->gradient, u->mean},
                                  {u->value, u->rms, u->momentum, u->mean}},
                    rmsprop_formula<true>{*u}, n);
    else
        each_number(d, "update_rmsprop",
                    streams<4, 3>{{u->value, u->rms, u->momentum, u->gradient},
                                  {u->value, u->rms, u->momentum}},
                    rmsprop_formula<false>{*u}, n);
}

void cuda_update_fill(struct kernels *table)
{
    table->update_sgd = update_sgd;
    table->update_momentum = update_momentum;
    table->update_adagrad = update_adagrad;
    table->update_adam = update_adam;
    table->update_rmsprop = update_rmsprop;
}
