/* sampler.h - drawing classes for a batch, and the expected count of each in a draw, as
 * TensorFlow's candidate samplers.
 *
 * A draw depends only on a key and the number of the draw.
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
    bool unique;        /* no class occurs twice in a draw */
    double *sums;       /* unigram: [classes] cumulative weights, including each class */
    uint8_t *was_drawn; /* [classes] scratch, zeros between draws */
};

/* One draw of `count` classes; with `unique`, repeated classes make `tries` larger. */
struct drawn {
    int64_t count, tries;
};

/* counts: for unigram, how often each class occurs; its weight is that to the power of distortion.
 * ERR_INPUT: all are 0. */
err sampler_open(enum sampler_kind, int64_t classes, bool unique, const double *counts,
                 double distortion, struct arena *, struct sampler *ret);

/* Fills ret_classes[count]; with `unique`, count must be at most sampler_support(). */
struct drawn sampler_draw(const struct sampler *, uint64_t key, uint64_t draw, int64_t count,
                          int64_t *ret_classes);
/* Number of classes with a probability above 0 */
int64_t sampler_support(const struct sampler *);

/* Logarithm of the expected count of a class in such a draw */
float sampler_log_expected(const struct sampler *, const struct drawn *, int64_t of_class);

#endif
