/* augment.c - random augmentation of images: elements.h has the formulas for one channel of an
 * image. */
#include "kernels/cpu/isa.h"
#include "kernels/elements.h"

struct augment_task {
    const struct augment *v;
    float *y, *dx;
    const float *x, *dy;
    bool add;
};

static void augment_range(const void *arguments, int64_t begin, int64_t end)
{
    const struct augment_task *t = arguments;
    for (int64_t i = begin; i < end; i++) element_augment(t->v, t->y, t->x, i);
}

static void augment_back_range(const void *arguments, int64_t begin, int64_t end)
{
    const struct augment_task *t = arguments;
    for (int64_t i = begin; i < end; i++) element_augment_back(t->v, t->dx, t->dy, t->add, i);
}

static int64_t grain(const struct augment *v)
{
    return SPREAD_GRAIN / (4 * v->out_y * v->out_x + 1) + 1;
}

void ISA(augment)(struct device *d, const struct augment *v, float *y, const float *x)
{
    spread(d, v->batch * v->channels, grain(v), augment_range,
           &(struct augment_task){.v = v, .y = y, .x = x});
}

void ISA(augment_back)(struct device *d, const struct augment *v, float *dx, const float *dy,
                       bool add)
{
    spread(d, v->batch * v->channels, grain(v), augment_back_range,
           &(struct augment_task){.v = v, .dx = dx, .dy = dy, .add = add});
}
