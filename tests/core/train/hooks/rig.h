/* rig.h - hooks driven by hand: a real session over a few generated digits, and a run whose steps,
 * times and answers the test makes up. What is logged meanwhile is kept. */
#ifndef TESTS_CORE_TRAIN_HOOKS_RIG_H
#define TESTS_CORE_TRAIN_HOOKS_RIG_H

/* Before cmocka, which calls a macro like the program's fail(); tests say (fail)(...). */
#include "core/train/hooks/hook.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { RIG_TEXT_MAX = 65536, SECOND = 1000000000 };

struct rig {
    char folder[64];
    struct spec spec;
    struct device device;
    struct session session;
    float *values, *gradients; /* the block of the one ps */
    struct run_view view;

    /* what hooks asked for */
    int saves, stops, evaluations;
    bool is_saving;     /* saves are refused */
    char restored[256]; /* the checkpoint whose values the last one got; "": none */
    err stop_kind;
    char stop_why[ERROR_TEXT_MAX];
    struct evaluation answer; /* to the next evaluation */

    int log_pipe, real_stderr;
    char log[RIG_TEXT_MAX];
};

/* For cmocka_unit_test_setup_teardown: *state is the rig. */
int rig_setup(void **state);
int rig_teardown(void **state);

/* The rig's spec with these assignments ("train.hooks=[...]"), NULL at the end. */
err rig_load(struct rig *, const char *const sets[]);
/* Loads, which must work, and opens everything but the hooks; then the hooks. */
void rig_prepare(struct rig *, const char *const sets[]);
void rig_start(struct rig *, const char *const sets[]);
err rig_open(struct rig *); /* the hooks alone */

err rig_tell(struct rig *, enum occasion_kind); /* one that carries nothing */
void rig_saved(struct rig *, const char *prefix, const char *why);

/* before, computed and stepped of the global step, `seconds` after the start. */
void rig_step(struct rig *, uint64_t step, double seconds);
/* Begun at one time, whole at another. */
void rig_step_from(struct rig *, uint64_t step, double begin_seconds, double seconds);
void rig_adopt(struct rig *, uint64_t step, double seconds);
void rig_evaluated(struct rig *, uint64_t step, double loss, double accuracy);
void rig_end(struct rig *, int code); /* and close */

void rig_must(err e); /* be OK, or the test fails with the error's text */

/* What was logged since the last call, without times. */
const char *rig_log(struct rig *);

#endif
