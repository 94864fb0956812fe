/* sampler.c - see sampler.h. */
#include "core/ops/sparse/sampler.h"

#include <math.h>

#include "core/base/random.h"

/* Limit on tries for one more class; after that the next class not drawn yet is taken. */
enum { TRIES_OF_EACH = 1000 };

const char *const sampler_names[] = {[SAMPLER_LOG_UNIFORM] = "log_uniform",
                                     [SAMPLER_UNIGRAM] = "unigram",
                                     [SAMPLER_UNIFORM] = "uniform",
                                     NULL};

static err sum_counts(const double *counts, double distortion, struct sampler *s)
{
    double sum = 0;
    for (int64_t i = 0; i < s->classes; i++) {
        if (counts[i] > 0) sum += pow(counts[i], distortion);
        s->sums[i] = sum;
    }
    return sum > 0 && isfinite(sum) ? OK : fail(ERR_INPUT, "no class occurs");
}

err sampler_open(enum sampler_kind kind, int64_t classes, bool unique, const double *counts,
                 double distortion, struct arena *arena, struct sampler *ret)
{
    *ret = (struct sampler){.kind = kind, .classes = classes, .unique = unique};
    if (unique) ret->was_drawn = arena_array(arena, (size_t)classes, sizeof *ret->was_drawn);
    if (kind != SAMPLER_UNIGRAM) return OK;
    ret->sums = arena_array(arena, (size_t)classes, sizeof *ret->sums);
    return sum_counts(counts, distortion, ret);
}

static double probability_of(const struct sampler *s, int64_t of_class)
{
    const double k = (double)of_class;
    switch (s->kind) {
    case SAMPLER_LOG_UNIFORM:
        return (log(k + 2) - log(k + 1)) / log1p((double)s->classes);
    case SAMPLER_UNIGRAM:
        return (s->sums[of_class] - (of_class > 0 ? s->sums[of_class - 1] : 0)) /
               s->sums[s->classes - 1];
    default:
        return 1 / (double)s->classes;
    }
}

int64_t sampler_support(const struct sampler *s)
{
    int64_t count = 0;
    if (s->kind != SAMPLER_UNIGRAM) return s->classes;
    for (int64_t i = 0; i < s->classes; i++) count += probability_of(s, i) > 0;
    return count;
}

/* The first class whose cumulative weight is above `wanted` */
static int64_t find_sum(const struct sampler *s, double wanted)
{
    int64_t first = 0, end = s->classes - 1;
    while (first < end) {
        const int64_t middle = first + (end - first) / 2;
        if (s->sums[middle] > wanted)
            end = middle;
        else
            first = middle + 1;
    }
    return first;
}

static int64_t class_at(const struct sampler *s, uint64_t bits)
{
    const double share = (double)(bits >> 11) * 0x1p-53; /* [0, 1) */
    switch (s->kind) {
    case SAMPLER_LOG_UNIFORM: {
        const int64_t k = (int64_t)exp(share * log1p((double)s->classes)) - 1;
        return k < s->classes ? k : s->classes - 1;
    }
    case SAMPLER_UNIGRAM:
        return find_sum(s, share * s->sums[s->classes - 1]);
    default:
        return (int64_t)(share * (double)s->classes);
    }
}

static int64_t next_free(const struct sampler *s, int64_t from)
{
    int64_t k = from;
    while (s->was_drawn[k] || probability_of(s, k) <= 0) k = (k + 1) % s->classes;
    return k;
}

struct drawn sampler_draw(const struct sampler *s, uint64_t key, uint64_t draw, int64_t count,
                          int64_t *ret_classes)
{
    const uint64_t of_draw = random_u64(key, draw);
    struct drawn d = {0};
    for (int64_t tries_of_this = 0; d.count < count;) {
        int64_t k = class_at(s, random_u64(of_draw, (uint64_t)d.tries++));
        if (++tries_of_this == TRIES_OF_EACH && s->unique) k = next_free(s, k);
        if (s->unique && s->was_drawn[k]) continue;
        if (s->unique) s->was_drawn[k] = 1;
        ret_classes[d.count++] = k;
        tries_of_this = 0;
    }
    for (int64_t i = 0; i < count && s->unique; i++) s->was_drawn[ret_classes[i]] = 0;
    return d;
}

float sampler_log_expected(const struct sampler *s, const struct drawn *d, int64_t of_class)
{
    const double p = probability_of(s, of_class);
    if (d->tries == d->count) return (float)log(p * (double)d->count);
    return (float)log(-expm1((double)d->tries * log1p(-p)));
}
