/* sampler.h - classes drawn for a batch, and how often each is expected among them, as TensorFlow's
 * candidate samplers have it.
 *
 * What is drawn depends on a key and the number of the draw alone.
 */
#ifndef CORE_OPS_SPARSE_SAMPLER_H
#define CORE_OPS_SPARSE_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/error.h"

enum sampler_kind { SAMPLER_LOG_UNIFORM, SAMPLER_UNIGRAM, SAMPLER_UNIFORM };
extern const char *const sampler_names[];

struct sampler {
    enum sampler_kind kind;
    int64_t classes;
    bool unique;        /* no class twice in a draw */
    double *sums;       /* unigram: [classes] of the weights up to and with each class */
    uint8_t *was_drawn; /* [classes] scratch, zeros between draws */
};

/* One draw; more tries than classes if some were drawn twice. */
struct drawn {
    int64_t count, tries;
};

/* counts: of unigram, how often each class occurs, which to the power of distortion is its weight.
 * ERR_INPUT: all are 0. */
err sampler_open(enum sampler_kind, int64_t classes, bool unique, const double *counts,
                 double distortion, struct arena *, struct sampler *ret);

/* Fills ret_classes[count]; unique: count is at most the classes of a probability above 0. */
struct drawn sampler_draw(const struct sampler *, uint64_t key, uint64_t draw, int64_t count,
                          int64_t *ret_classes);
/* Classes that can be drawn at all */
int64_t sampler_support(const struct sampler *);

/* The logarithm of how often a class is expected in such a draw */
float sampler_log_expected(const struct sampler *, const struct drawn *, int64_t of_class);

#endif
