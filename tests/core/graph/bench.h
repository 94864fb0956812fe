/* bench.h - one op, loss or metric alone, with memory of its own, and the devices to run it on. */
#ifndef TESTS_CORE_GRAPH_BENCH_H
#define TESTS_CORE_GRAPH_BENCH_H

#include "core/graph/graph.h"

/* after ours: cmocka makes a macro of fail */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* Rows of a test table: the test once per instruction set that kernels are built for. A machine has
 * some of them, and the test skips the others. */
#define ON_EVERY_ISA(test)                                                                         \
    {#test ": avx512", test, NULL, NULL, "avx512"}, {#test ": avx2", test, NULL, NULL, "avx2"},    \
        {#test ": sse2", test, NULL, NULL, "sse2"},                                                \
    {                                                                                              \
#test ": generic", test, NULL, NULL, "generic"                                             \
    }

/* Opens the device, or skips the test where the machine lacks the instructions. */
struct device open_device_or_skip(const char *isa);
struct device open_device(void); /* the best of this machine */

enum { BENCH_MEMORY_MAX = 64 };

/* Pieces of the device's memory that are freed together. */
struct memory {
    struct device *device;
    void *at[BENCH_MEMORY_MAX];
    int count;
};
void *memory_take(struct memory *, size_t bytes); /* zeroed, aligned to 64 */
void memory_free(struct memory *);

/* A node that is no part of a graph: every tensor has its own memory, gradients included. */
struct bench {
    struct device *device;
    struct arena arena;
    struct memory memory;
    struct node node;
    struct tensor input[INPUTS_MAX]; /* ids have no gradient */
    const struct tensor *inputs[INPUTS_MAX];
    bool add[INPUTS_MAX];
    struct tensor weights; /* of all ids, where the case has some */
    bool is_positive;      /* as the case says of its inputs */
    uint64_t *draw;        /* what node.draw points to: 0 at first */
};
/* attributes: JSON object without "op"; fails the test when it is refused */
void bench_open(struct bench *, struct device *, const struct op *, json_t *attributes,
                const struct op_case *shapes);
void bench_open_for(struct bench *, struct device *, const struct op *, json_t *attributes,
                    const struct op_case *shapes, bool training);
void bench_close(struct bench *);
/* Whether the input is one that no gradient goes to, of 0 and 1 */
bool bench_is_ids(const struct bench *, int input);
bool bench_is_mask(const struct bench *, int input);
void bench_forward(struct bench *);
void bench_backward(struct bench *); /* from node.output.gradient, which it may change */

struct loss_bench {
    struct device *device;
    struct arena arena;
    struct memory memory;
    struct loss_node node;
    struct tensor logits; /* value and gradient */
};
void loss_bench_open(struct loss_bench *, struct device *, const struct loss *, json_t *attributes,
                     const struct shape *logits);
void loss_bench_close(struct loss_bench *);
void loss_bench_count(struct loss_bench *, int64_t rows);  /* what a plan does with each batch */
double loss_bench_mean(struct loss_bench *, int64_t rows); /* that, forward, then the mean loss */

/* The JSON text as an object; fails the test when it is none. New reference. */
json_t *object_from(const char *text);
/* Attributes of a kind, parsed into the arena. */
void *attributes_from(const struct object *, json_t *, struct arena *);

void assert_near(double got, double want, double error);

/* |got - want| <= absolute + relative * |want| + of_largest * the largest |want| of the array, or
 * the test fails naming `what` and the index. What is summed is compared by of_largest: where terms
 * cancel, an element near zero is good to no more on any processor. */
struct tolerance {
    double relative, absolute, of_largest;
};
void assert_close(const float *got, const float *want, int64_t count, struct tolerance,
                  const char *what);

#endif
