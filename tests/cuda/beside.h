/* beside.h - an emulated GPU with memory on both sides, for the tests of what goes on beside its
 * queue. */
#ifndef TESTS_CUDA_BESIDE_H
#define TESTS_CUDA_BESIDE_H

#include "tests/cuda/emulator/emulated.h"

#include "kernels/async.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { COUNT = 3000, BYTES = COUNT * sizeof(float), ROUNDS = 6 };

/* A GPU, and memory of it and of the host, which is pinned */
struct scene {
    struct device d;
    const struct async *async;
    float *x, *y;        /* of the device */
    float *from, *to;    /* of the host */
    struct inlet *inlet; /* of as much */
};

/* With copies as early as may be, and as late; nothing is left of it. */
void play(void (*act)(struct scene *));

struct device open_gpu(void);
float *host_memory(void); /* as much, on pages of its own, not pinned: munmap(it, BYTES) */
void set_all(float *, float value);

/* All numbers of the host's memory, or, after all that is queued, of the device's */
void assert_all(const float *, float value);
void assert_device(struct device *, const float *, float value);

/* A batch of one number through the inlet */
void send_batch(struct scene *, float value);
void take_batch(struct scene *, float *to);

/* x becomes 10 x + y, and is brought to the host; and that recorded. */
void queue_pass(struct scene *);
struct recording *record_pass(struct scene *);

#endif
