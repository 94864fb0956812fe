/* interaction.c - dot products among the vectors of an example. Each example is whole on one
 * thread, and its sums are taken in an order that depends on the width alone. */
#include "kernels/cpu/isa.h"
#include "kernels/elements.h"

struct interaction_task {
    struct interaction v;
    float *y;        /* [batch, pairs] */
    const float *dy; /* the same */
};

/* Examples that are worth a thread */
static int64_t grain(const struct interaction *v)
{
    return SPREAD_GRAIN / (interaction_pairs(v) * v->width + 1) + 1;
}

static const float *vector(const struct interaction *v, int64_t example, int64_t i)
{
    return v->x[element_source(v, i)] + element_vector(v, example, i);
}

static float dot(const float *a, const float *b, int64_t n)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t k = 0; k < n; k++) sum += a[k] * b[k];
    return sum;
}

static void dot_examples(const void *arguments, int64_t begin, int64_t end)
{
    const struct interaction_task *t = arguments;
    const struct interaction *v = &t->v;
    float *y = t->y + begin * interaction_pairs(v);
    for (int64_t example = begin; example < end; example++)
        for (int64_t i = 1; i < v->vectors; i++)
            for (int64_t j = 0; j < i; j++)
                *y++ = dot(vector(v, example, i), vector(v, example, j), v->width);
}

void ISA(dot_interaction)(struct device *d, const struct interaction *v, float *y)
{
    spread(d, v->batch, grain(v), dot_examples, &(struct interaction_task){*v, .y = y});
}

/* dx (+)= the sum of dy times the other vector over the pairs of vector i; dy: of the example */
static void back_vector(const struct interaction *v, int64_t example, int64_t i, const float *dy)
{
    const int source = element_source(v, i);
    float *dx = v->dx[source] + element_vector(v, example, i);
    if (!v->add[source]) memset(dx, 0, (size_t)v->width * sizeof *dx);
    for (int64_t j = 0; j < v->vectors; j++) {
        if (j == i) continue;
        const float slope = dy[element_pair(i, j)], *x = vector(v, example, j);
#pragma omp simd
        for (int64_t k = 0; k < v->width; k++) dx[k] += slope * x[k];
    }
}

static void back_examples(const void *arguments, int64_t begin, int64_t end)
{
    const struct interaction_task *t = arguments;
    const struct interaction *v = &t->v;
    for (int64_t example = begin; example < end; example++)
        for (int64_t i = 0; i < v->vectors; i++)
            if (v->dx[element_source(v, i)])
                back_vector(v, example, i, t->dy + example * interaction_pairs(v));
}

void ISA(dot_interaction_back)(struct device *d, const struct interaction *v, const float *dy)
{
    spread(d, v->batch, grain(v), back_examples, &(struct interaction_task){*v, .dy = dy});
}
