/* interaction.c - dot products among the vectors of an example, one by one or summed. One thread
 * computes an example, with sums in an order that depends only on the width. */
#include "kernels/cpu/chunk.h"
#include "kernels/cpu/isa.h"
#include "kernels/elements.h"

struct interaction_task {
    struct interaction v;
    float *y;        /* [batch, pairs]; [batch] if summed */
    const float *dy; /* the same */
};

/* Examples that are worth a thread, if each pair costs time */
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

/* ---- all pairs in one sum ---- */

/* The same, if each vector costs time */
static int64_t summed_grain(const struct interaction *v)
{
    return SPREAD_GRAIN / (v->vectors * v->width + 1) + 1;
}

/* Each number times the sum of those before it: avoids terms that cancel. */
static float sum_pairs(const struct interaction *v, int64_t example)
{
    double total[CHUNK] = {0};
    for (int64_t at = 0; at < v->width; at += CHUNK) {
        const int count = chunk_count(v->width - at);
        float x[CHUNK], before[CHUNK] = {0}, sum[CHUNK] = {0};
        for (int64_t i = 0; i < v->vectors; i++) {
            chunk_load(x, vector(v, example, i) + at, count, 0.0f);
#pragma omp simd
            for (int k = 0; k < CHUNK; k++) {
                sum[k] += x[k] * before[k];
                before[k] += x[k];
            }
        }
        for (int k = 0; k < CHUNK; k++) total[k] += sum[k];
    }
    return (float)chunk_sum(total);
}

static void sum_examples(const void *arguments, int64_t begin, int64_t end)
{
    const struct interaction_task *t = arguments;
    for (int64_t example = begin; example < end; example++)
        t->y[example] = sum_pairs(&t->v, example);
}

void ISA(factorization_machine)(struct device *d, const struct interaction *v, float *y)
{
    spread(d, v->batch, summed_grain(v), sum_examples, &(struct interaction_task){*v, .y = y});
}

/* dx (+)= slope times the sum of the other vectors; count numbers from `at` on */
static void back_chunk(const struct interaction *v, int64_t example, int64_t at, float slope)
{
    const int count = chunk_count(v->width - at);
    float x[CHUNK], dx[CHUNK], sum[CHUNK] = {0};
    for (int64_t i = 0; i < v->vectors; i++) {
        chunk_load(x, vector(v, example, i) + at, count, 0.0f);
#pragma omp simd
        for (int k = 0; k < CHUNK; k++) sum[k] += x[k];
    }
    for (int64_t i = 0; i < v->vectors; i++) {
        const int source = element_source(v, i);
        if (!v->dx[source]) continue;
        float *to = v->dx[source] + element_vector(v, example, i) + at;
        chunk_load(x, vector(v, example, i) + at, count, 0.0f);
        chunk_load(dx, to, v->add[source] ? count : 0, 0.0f);
#pragma omp simd
        for (int k = 0; k < CHUNK; k++) dx[k] += slope * (sum[k] - x[k]);
        chunk_store(to, dx, count);
    }
}

static void back_sums(const void *arguments, int64_t begin, int64_t end)
{
    const struct interaction_task *t = arguments;
    for (int64_t example = begin; example < end; example++)
        for (int64_t at = 0; at < t->v.width; at += CHUNK)
            back_chunk(&t->v, example, at, t->dy[example]);
}

void ISA(factorization_machine_back)(struct device *d, const struct interaction *v, const float *dy)
{
    spread(d, v->batch, summed_grain(v), back_sums, &(struct interaction_task){*v, .dy = dy});
}
