/* apart_inside.h - what the files of the device behind a wall share. */
#ifndef TESTS_DEVICE_APART_INSIDE_H
#define TESTS_DEVICE_APART_INSIDE_H

#include "kernels/async.h"
#include "tests/device/apart.h"

enum { BLOCKS_MAX = 1024, PLANS_MAX = 64, PINS_MAX = 64 };

struct block {
    char *base;
    size_t bytes;
};

struct known_plan {
    const struct conv2d_plan *plan;
    struct conv2d shape;
    void *workspace; /* of the device, so that there is something to count */
};

struct apart {
    struct kernels table;
    struct device inner; /* the CPU's */
    char *memory;        /* one reservation, handed out from its beginning and never again */
    size_t taken, limit, in_use;
    struct block blocks[BLOCKS_MAX];
    struct known_plan plans[PLANS_MAX];
    struct block pins[PINS_MAX]; /* of the host */
    struct traffic traffic;
    const char *kernel;      /* that runs */
    const char *what, *name; /* marked */
};

/* Opens the wall for a kernel of this name; leave closes it again. */
struct device *apart_enter(struct device *, const char *kernel);
void apart_leave(struct device *);

/* So many bytes at p are the device's, in one of its blocks. */
void apart_has(struct device *, const void *p, size_t bytes);
/* None of them is. */
void apart_is_host(struct device *, const void *p, size_t bytes);

void apart_fill_walls(struct kernels *); /* around what kernels.def lists */
void apart_fill_async(struct kernels *);

#endif
