/* rig.h - one and the same training on any device, with everything that comes of it on a tape.
 *
 * Workers are sessions on the device in question; the ps are stores on the CPU, their blocks plain
 * memory of the host, as windows of links are. Two devices agree when their tapes do, bit by bit.
 */
#ifndef TESTS_DEVICE_RIG_H
#define TESTS_DEVICE_RIG_H

/* Before cmocka, which calls a macro like the program's fail(); tests say (fail)(...). */
#include "core/train/session/session.h"
#include "core/train/variables/store.h"
#include "tests/device/apart.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { RIG_WORKERS_MAX = 2, RIG_PS_MAX = 3, RIG_STEPS = 6 };

struct tape {
    char *at;
    size_t bytes, room;
};
void tape_add(struct tape *, const void *, size_t bytes);
void tape_free(struct tape *);
void assert_same_tape(const struct tape *, const struct tape *);

struct scene {
    const char *spec; /* JSON */
    int workers, ps_count, batches_per_push;
};

/* IN_TURN: a GPU that does nothing beside its queue */
enum place { ON_CPU, APART, ON_GPU, IN_TURN };

/* What has been handed on of a worker's gradients in this step, as it was then */
struct handed {
    struct rig *rig;
    int worker;
    struct exchange to;
    char *at[RIG_PS_MAX];
    int64_t numbers[RIG_PS_MAX];
    int times; /* in all steps */
};

struct rig {
    const struct scene *scene;
    enum place place;
    struct spec spec;
    struct device device, host;
    struct kernels in_turn; /* the device's, where it is such a one */
    int workers, ps_count;
    struct session session[RIG_WORKERS_MAX];
    struct store store[RIG_PS_MAX];
    float *values[RIG_PS_MAX], *gradients[RIG_PS_MAX][RIG_WORKERS_MAX];
    struct handed handed[RIG_WORKERS_MAX];               /* of a device with memory of its own */
    void (*meanwhile)(struct rig *, int worker, int ps); /* as some of it is; NULL: nothing */
    float *shown[RIG_PS_MAX]; /* to workers, what values are rounded to; NULL: themselves */
};

void rig_load_spec(const char *text, struct spec *ret);
void rig_open(struct rig *, const struct scene *, enum place);
void rig_close(struct rig *); /* nothing of the device is left in use */

/* A step of every worker and its update: losses, norms, metrics, gradients, values. */
void rig_step(struct rig *, int64_t step, struct tape *);
/* What has been handed on in this step was final. */
void rig_check_handed(const struct rig *, int worker);
/* Loss, metrics and predictions over the evaluation set, by the first worker. */
void rig_evaluate(struct rig *, struct tape *);

/* Floats of the host, zero, on pages of their own, as windows have them: they can be pinned. */
float *rig_block(int64_t floats);

#endif
