/* fixture.h - what the tests of this folder share: fixtures as JSON, a device, parsed optimizers.
 */
#ifndef TESTS_CORE_TRAIN_FIXTURE_H
#define TESTS_CORE_TRAIN_FIXTURE_H

/* Before cmocka, which calls a macro like the program's fail(); tests say (fail)(...). */
#include "core/train/variables/layout.h"
#include "core/train/variables/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* tests/fixtures/NAME; new reference. Fails the test where it cannot be read. */
json_t *fixture_load(const char *name);

/* The numbers of {"dtype", "shape", "data"} into at most `max` floats; returns how many. */
int fixture_floats(json_t *array, float *ret, int max);

/* {"type": type, ...attributes} as the member of an object with that name; new reference. */
json_t *fixture_variant(const char *member, const char *type, json_t *attributes);

/* From {"optimizer": {...}} as JSON text. Fails the test where it does not parse. */
struct optimizer_spec fixture_optimizer(const char *json, struct arena *);
struct optimizer_spec fixture_optimizer_json(json_t *, struct arena *);

/* A store of one optimizer. */
err fixture_store(const struct optimizer_spec *, struct device *, int64_t floats, float *values,
                  struct store *ret);

/* From {"learning_rate": {...}} and {"placement": {...}}. */
struct schedule_spec fixture_schedule(json_t *, struct arena *);
struct placement_spec fixture_placement(const char *json, struct arena *);

/* |got - wanted| <= relative * |wanted| + absolute, else the test fails and says where. */
struct tolerance {
    double relative, absolute;
};
void fixture_near(double got, double wanted, struct tolerance, const char *where);

/* Normal numbers, each by its place in the variable. */
extern const struct initializer fixture_draws;

struct device fixture_device(void);

/* Floats of the device, zero. Tests touch them, so the device is a CPU, or a GPU that is watched.
 */
float *fixture_block(struct device *, int64_t floats);
void fixture_release(struct device *, float *); /* NULL is fine */

#endif
