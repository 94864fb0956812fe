/* test_allocation.c - after the first step nothing is allocated.
 *
 * The functions below take the place of the C library's for everything in the process, and count
 * while counting is on. What oneDNN and OpenBLAS take inside a call to keep its arguments together
 * cannot be helped; it is left out of the count, and checked to be given back before the call
 * returns. Not built with sanitizers, which take the same place.
 */
#include "tests/core/graph/models.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static atomic_bool is_counting;
static atomic_long ours, libraries;

/* oneDNN is written in C++ and allocates through that library too. Nobody else here is. OpenBLAS
 * allocates in the products of some processors only. */
static bool is_library(const void *caller)
{
    Dl_info info;
    return dladdr(caller, &info) &&
           (strstr(info.dli_fname, "libdnnl") || strstr(info.dli_fname, "libstdc++") ||
            strstr(info.dli_fname, "openblas"));
}

static void count(const void *caller)
{
    if (atomic_load(&is_counting)) atomic_fetch_add(is_library(caller) ? &libraries : &ours, 1);
}

void *malloc(size_t bytes)
{
    count(__builtin_return_address(0));
    return __libc_malloc(bytes);
}

void *calloc(size_t elements, size_t bytes)
{
    count(__builtin_return_address(0));
    return __libc_calloc(elements, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    count(__builtin_return_address(0));
    return __libc_realloc(memory, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    count(__builtin_return_address(0));
    return __libc_memalign(alignment, bytes);
}

void *memalign(size_t alignment, size_t bytes)
{
    count(__builtin_return_address(0));
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **ret, size_t alignment, size_t bytes)
{
    count(__builtin_return_address(0));
    *ret = __libc_memalign(alignment, bytes);
    return *ret ? 0 : ENOMEM;
}

static void step(struct model *m, int64_t rows, uint64_t draw)
{
    model_forward(m, rows, draw);
    plan_backward(m->plan, false, NULL, NULL);
    plan_loss(m->plan, rows, NULL, NULL);
    graph_regularization(m->graph, m->plan->device);
    double state[2] = {0};
    for (int i = 0; i < m->graph->metric_count; i++)
        m->graph->metrics[i].metric->update(&m->graph->metrics[i], m->plan->device, rows, state);
}

static void check_steps(const char *text, const struct setting *setting, const char *isa)
{
    struct device device = open_device_or_skip(isa);
    struct model m;
    model_open(&m, &device, text, setting);
    step(&m, setting->batch, 0);
    atomic_store(&ours, 0);
    atomic_store(&is_counting, true);
    /* freed pieces fill the C library's caches at first, which count as taken */
    for (uint64_t draw = 1; draw < 20; draw++) step(&m, setting->batch, draw);
    const size_t before = mallinfo2().uordblks;
    for (uint64_t draw = 20; draw < 60; draw++) step(&m, setting->batch - (int64_t)draw % 2, draw);
    atomic_store(&is_counting, false);
    assert_int_equal(atomic_load(&ours), 0);
    assert_int_equal(mallinfo2().uordblks, before);
    model_close(&m);
    device_close(&device);
}

static void a_step_of_dense_layers_allocates_nothing(void **state)
{
    static const char text[] =
        "{\"model\": [{\"op\": \"dense\", \"units\": 100, \"activation\": \"gelu\", "
        "\"kernel_regularizer\": {\"l1\": 0.1, \"l2\": 0.1}}, {\"op\": \"dropout\"}, {\"op\": "
        "\"dense\", \"name\": \"a\", \"units\": 50, \"activation\": \"relu\"}, {\"op\": "
        "\"dense\", \"units\": 50}, {\"op\": \"multiply\", \"inputs\": [\"a\", \"dense_1\", "
        "\"a\"]}, {\"op\": \"softmax\"}, {\"op\": \"dense\", \"units\": 10}], "
        "\"loss\": {\"op\": \"softmax_cross_entropy\", \"class_weights\": [1, 2, 3, 4, 5, 6, 7, "
        "8, 9, 0]}, \"metrics\": [\"accuracy\", \"in_top_k\", \"loss\"]}";
    const struct setting setting = {64, {1, {784}}, true};
    check_steps(text, &setting, *state);
}

static void a_step_of_convolutions_allocates_nothing(void **state)
{
    static const char text[] =
        "{\"model\": [{\"op\": \"conv2d\", \"filters\": 8, \"kernel_size\": 5, \"padding\": "
        "\"same\", \"activation\": \"relu\"}, {\"op\": \"max_pool\", \"pool_size\": 2}, {\"op\": "
        "\"conv2d\", \"filters\": 16, \"kernel_size\": 3, \"strides\": 2, \"activation\": "
        "\"swish\"}, {\"op\": \"avg_pool\", \"pool_size\": 2, \"padding\": \"same\"}, "
        "{\"op\": \"flatten\"}, {\"op\": \"dense\", \"units\": 10}], \"loss\": "
        "\"softmax_cross_entropy\", \"metrics\": [\"accuracy\"]}";
    const struct setting setting = {16, {3, {28, 28, 1}}, true};
    check_steps(text, &setting, *state);
}

/* If the functions above were not the ones that are called, the tests would always pass. */
static void allocations_are_seen(void **state)
{
    struct device device = open_device();
    atomic_store(&ours, 0);
    atomic_store(&libraries, 0);
    atomic_store(&is_counting, true);
    struct model m;
    const struct setting setting = {2, {3, {9, 9, 3}}, true};
    model_open(&m, &device,
               "{\"model\": [{\"op\": \"conv2d\", \"filters\": 1, \"kernel_size\": 3}]}", &setting);
    atomic_store(&is_counting, false);
    assert_true(atomic_load(&ours) > 3);
    assert_true(atomic_load(&libraries) > 3);
    model_close(&m);
    device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_EVERY_ISA(a_step_of_dense_layers_allocates_nothing),
        ON_EVERY_ISA(a_step_of_convolutions_allocates_nothing),
        cmocka_unit_test(allocations_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
