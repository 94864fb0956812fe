/* composed.c - see composed.h. */
#include "core/ops/losses/composed.h"

#include <math.h>

#include "core/ops/algebra/loops.h"

enum { ALIGN_FLOATS = 16 }; /* 64 bytes, as kernels want them */

/* Offset of the second numbers, in floats */
static int64_t places(const struct loss_node *node)
{
    const int64_t count = shape_count(&node->logits->shape);
    return (count + ALIGN_FLOATS - 1) / ALIGN_FLOATS * ALIGN_FLOATS;
}

size_t composed_bytes(const struct loss_node *node, struct device *d)
{
    (void)d;
    return 2 * (size_t)places(node) * sizeof(float);
}

err composed_prepare(struct loss_node *node, struct device *d)
{
    return d->kernels->allocate(d, composed_bytes(node, d), &node->state);
}

void composed_release(struct loss_node *node, struct device *d)
{
    if (node->state) d->kernels->release(d, node->state);
    node->state = NULL;
}

float *composed_first(const struct loss_node *node)
{
    return node->state;
}

float *composed_second(const struct loss_node *node)
{
    return (float *)node->state + places(node);
}

void composed_scale(const struct loss_node *node, struct device *d, float *numbers, int64_t n)
{
    struct fold f = {.of = FOLD_MULTIPLY, .scale = 1, .y = numbers, .a = numbers, .b = node->scale};
    fold_axis(&f, n, 1, 1, 0, 0);
    d->kernels->fold(d, &f);
}

void composed_sum(const struct loss_node *node, struct device *d, int64_t rows, const float *terms)
{
    const int64_t columns = pairwise_columns(node);
    struct fold f = {.of = FOLD_CLIP, .scale = 1, .high = INFINITY, .y = node->losses, .a = terms};
    fold_axis(&f, rows, 1, columns, 0, 0);
    fold_axis(&f, columns, 0, 1, 0, 0);
    d->kernels->fold(d, &f);
}
