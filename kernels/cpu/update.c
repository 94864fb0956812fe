/* update.c - the optimizers: one pass over a stretch of values and their slots.
 *
 * They are bound by memory: every value, slot and gradient is read once and written once. The
 * formulas are in elements.h. Arguments are copied to the stack, where the compiler knows that no
 * store through a float pointer changes them.
 */
#include "kernels/cpu/isa.h"
#include "kernels/elements.h"

enum { UPDATE_GRAIN = SPREAD_GRAIN / 2 }; /* floats; three to seven streams each */

static void sgd_range(const void *arguments, int64_t begin, int64_t end)
{
    const struct update_sgd u = *(const struct update_sgd *)arguments;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) u.value[i] -= u.rate * u.gradient[i];
}

static void update_sgd(struct device *d, const struct update_sgd *u, int64_t n)
{
    spread(d, n, UPDATE_GRAIN, sgd_range, u);
}

static void momentum_range(const void *arguments, int64_t begin, int64_t end)
{
    const struct update_momentum u = *(const struct update_momentum *)arguments;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) element_momentum(&u, false, i);
}

static void nesterov_range(const void *arguments, int64_t begin, int64_t end)
{
    const struct update_momentum u = *(const struct update_momentum *)arguments;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) element_momentum(&u, true, i);
}

static void update_momentum(struct device *d, const struct update_momentum *u, int64_t n)
{
    spread(d, n, UPDATE_GRAIN, u->nesterov ? nesterov_range : momentum_range, u);
}

static void adagrad_range(const void *arguments, int64_t begin, int64_t end)
{
    const struct update_adagrad u = *(const struct update_adagrad *)arguments;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) element_adagrad(&u, i);
}

static void update_adagrad(struct device *d, const struct update_adagrad *u, int64_t n)
{
    spread(d, n, UPDATE_GRAIN, adagrad_range, u);
}

static void adam_range(const void *arguments, int64_t begin, int64_t end)
{
    const struct update_adam u = *(const struct update_adam *)arguments;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) element_adam(&u, i);
}

static void update_adam(struct device *d, const struct update_adam *u, int64_t n)
{
    spread(d, n, UPDATE_GRAIN, adam_range, u);
}

static void rmsprop_range(const void *arguments, int64_t begin, int64_t end)
{
    const struct update_rmsprop u = *(const struct update_rmsprop *)arguments;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) element_rmsprop(&u, false, i);
}

static void rmsprop_centered_range(const void *arguments, int64_t begin, int64_t end)
{
    const struct update_rmsprop u = *(const struct update_rmsprop *)arguments;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) element_rmsprop(&u, true, i);
}

static void update_rmsprop(struct device *d, const struct update_rmsprop *u, int64_t n)
{
    spread(d, n, UPDATE_GRAIN, u->mean ? rmsprop_centered_range : rmsprop_range, u);
}

void KERNELS(update)(struct kernels *table)
{
    table->update_sgd = update_sgd;
    table->update_momentum = update_momentum;
    table->update_adagrad = update_adagrad;
    table->update_adam = update_adam;
    table->update_rmsprop = update_rmsprop;
}
