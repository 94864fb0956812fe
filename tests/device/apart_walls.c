/* apart_walls.c - a wall around each kernel of kernels.def, which looks at what its pointers lead
 * to and then calls the CPU's. Of a convolution it knows the shape by its plan. */
#include "tests/device/apart_inside.h"

/* DO with each parameter, of which there are 9 at most */
#define EACH(DO, first, ...) DO first __VA_OPT__(EACH_2(DO, __VA_ARGS__))
#define EACH_2(DO, first, ...) DO first __VA_OPT__(EACH_3(DO, __VA_ARGS__))
#define EACH_3(DO, first, ...) DO first __VA_OPT__(EACH_4(DO, __VA_ARGS__))
#define EACH_4(DO, first, ...) DO first __VA_OPT__(EACH_5(DO, __VA_ARGS__))
#define EACH_5(DO, first, ...) DO first __VA_OPT__(EACH_6(DO, __VA_ARGS__))
#define EACH_6(DO, first, ...) DO first __VA_OPT__(EACH_7(DO, __VA_ARGS__))
#define EACH_7(DO, first, ...) DO first __VA_OPT__(EACH_8(DO, __VA_ARGS__))
#define EACH_8(DO, first, ...) DO first __VA_OPT__(EACH_9(DO, __VA_ARGS__))
#define EACH_9(DO, first) DO first

/* A parameter: its type, its name, and how it is looked at */
#define ARRAY(type, name, count) (type *, name, HAS(name, count);)
#define ARRAY_OR_NULL(type, name, count) (type *, name, HAS_OR_NULL(name, count);)
#define HOST(type, name, count, ...)                                                               \
    (type *, name, IS_HOST(name, (size_t)(count) * sizeof *(name)); __VA_ARGS__)
#define PLAN(name, of)                                                                             \
    (struct conv2d_plan *, name, const struct conv2d *of = &known(d, name)->shape;)
#define COUNT(name) (int64_t, name, )
#define VALUE(type, name) (type, name, )
#define DECLARED(type, name, ...) , type name
#define PASSED(type, name, ...) , name
#define LOOKED_AT(type, name, ...) __VA_ARGS__

#define HAS(at, count) apart_has(d, at, (size_t)(count) * sizeof *(at))
#define HAS_OR_NULL(at, count) apart_has(d, at, (at) ? (size_t)(count) * sizeof *(at) : 0)
#define IS_HOST(at, bytes) apart_is_host(d, at, bytes)

static struct known_plan *known(struct device *d, const struct conv2d_plan *plan)
{
    struct apart *a = d->state;
    for (int i = 0; i < PLANS_MAX; i++)
        if (a->plans[i].plan == plan) return &a->plans[i];
    return NULL;
}

static void leave(struct device *const *d)
{
    apart_leave(*d);
}

/* The wall closes when the call has been made, which may return something or nothing. */
#define KERNEL(returns, name, ...)                                                                 \
    static returns wall_##name(struct device *d EACH(DECLARED, __VA_ARGS__))                       \
    {                                                                                              \
        __attribute__((cleanup(leave))) struct device *const entered = d;                          \
        struct device *const inner = apart_enter(entered, #name);                                  \
        EACH(LOOKED_AT, __VA_ARGS__)                                                               \
        return inner->kernels->name(inner EACH(PASSED, __VA_ARGS__));                              \
    }
#include "kernels/kernels.def"

/* As if a convolution took a number for each pixel of its output */
static size_t workspace_bytes(struct device *d, const struct conv2d *shape)
{
    return (size_t)window_outputs(&shape->window) * sizeof(float);
}

static err open_known(struct device *d, const struct conv2d *shape, struct conv2d_plan **ret)
{
    struct apart *a = d->state;
    void *workspace;
    TRY(d->kernels->allocate(d, workspace_bytes(d, shape), &workspace));
    const err e = wall_conv2d_open(d, shape, ret);
    for (int i = 0; i < PLANS_MAX && !e; i++) {
        if (a->plans[i].plan) continue;
        a->plans[i] = (struct known_plan){*ret, *shape, workspace};
        return OK;
    }
    d->kernels->release(d, workspace);
    return e ? e : fail(ERR_MEMORY, "more than %d convolutions", PLANS_MAX);
}

static void close_known(struct device *d, struct conv2d_plan *plan)
{
    struct known_plan *found = known(d, plan);
    wall_conv2d_close(d, plan);
    if (found) d->kernels->release(d, found->workspace);
    if (found) *found = (struct known_plan){0};
}

void apart_fill_walls(struct kernels *table)
{
#define KERNEL(returns, name, ...) table->name = wall_##name;
#include "kernels/kernels.def"
    table->conv2d_open = open_known;
    table->conv2d_bytes = workspace_bytes;
    table->conv2d_close = close_known;
}
