#include "tests/kernels/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "kernels/cpu_bf16.h"
#include "kernels/elements.h"

enum { EMULATED_ROWS_MAX = 5000 };

const int64_t lengths[LENGTHS] = {1, 3, 10, 16, 17, 100, 1000, 4099, LENGTH_MAX};

/* Then operands are such numbers, whose products are the same ones in bfloat16. */
static bool in_bf16(void)
{
    return getenv("KERNELS_IN_BF16") != NULL;
}

static void on_device(int threads, const char *isa, void (*body)(struct device *))
{
    struct device d;
    err e = device_open_cpu(threads, isa, &d);
    if (e) {
        assert_int_equal(e, ERR_DEVICE); /* this processor has no such instructions */
        return;
    }
    if (in_bf16() && device_cpu_bf16(&d)) {
        device_close(&d);
        skip(); /* oneDNN has no bfloat16 here */
    }
    body(&d);
    assert_int_equal(d.kernels->synchronize(&d), OK);
    device_close(&d);
}

void on_every_device(void (*body)(struct device *))
{
    static const char *const sets[] = {"avx512", "avx2", "sse2", NULL};
    struct device any;
    assert_int_equal(device_open_cpu(1, NULL, &any), OK);
    bool is_generic = strcmp(any.kernels->name, "cpu generic") == 0;
    device_close(&any);
    for (int threads = 1; threads <= 2; threads++) {
        if (KERNELS_ARE_SLOW && threads > 1) {
            on_device(threads, NULL, body);
            continue;
        }
        if (is_generic) on_device(threads, "generic", body);
        for (int i = 0; sets[i] && !is_generic; i++) on_device(threads, sets[i], body);
    }
}

bool is_feasible(const struct device *d, int64_t rows)
{
    return rows <= EMULATED_ROWS_MAX || !strstr(d->kernels->name, "emulated");
}

float *new_floats(struct device *d, int64_t n)
{
    void *memory;
    assert_int_equal(d->kernels->allocate(d, (size_t)n * sizeof(float), &memory), OK);
    return memory;
}

float *random_floats(struct device *d, int64_t n, float low, float high, uint64_t seed)
{
    float *x = new_floats(d, n);
    for (int64_t i = 0; i < n; i++) x[i] = low + (high - low) * random_uniform(seed, (uint64_t)i);
    for (int64_t i = 0; i < n && in_bf16(); i++) x[i] = element_from_bf16(element_to_bf16(x[i]));
    return x;
}

float *copy_floats(struct device *d, const float *from, int64_t n)
{
    float *x = new_floats(d, n);
    memcpy(x, from, (size_t)n * sizeof(float));
    return x;
}

void free_floats(struct device *d, float *x)
{
    d->kernels->release(d, x);
}

void assert_near(double got, double want, struct tolerance t, const char *what, int64_t index)
{
    if (isnan(got) && isnan(want)) return;
    if (got == want || fabs(got - want) <= t.absolute + t.relative * fabs(want)) return;
    fail_msg("%s[%lld]: got %.9g, want %.9g", what, (long long)index, got, want);
}

void assert_same_bits(const float *a, const float *b, int64_t n, const char *what)
{
    for (int64_t i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) != 0)
            fail_msg("%s[%lld]: %.9g and %.9g differ", what, (long long)i, a[i], b[i]);
}

void assert_spoilt_row_is_alone(struct device *d, int64_t m, int64_t n, int64_t k)
{
    float *a = random_floats(d, m * k, -1, 1, 75), *b = random_floats(d, k * n, -1, 1, 76);
    float *c = new_floats(d, m * n);
    for (int64_t i = 0; i < k; i++) a[11 * k + i] = NAN;
    d->kernels->gemm(d, &(struct gemm){.m = m, .n = n, .k = k, .a = a, .b = b, .c = c});
    for (int64_t i = 0; i < m * n; i++) assert_true(isnan(c[i]) == (i / n == 11));
    free_floats(d, a);
    free_floats(d, b);
    free_floats(d, c);
}
