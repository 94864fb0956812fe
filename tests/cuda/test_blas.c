/* test_blas.c - finding cuBLAS and setting it up, with a library that only bears its name. The
 * environment of the test leads the loader to it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cuda/emulator/emulated.h"
#include "tests/cuda/named.h"
#include "tests/kernels/support.h"

static void cublas_is_found_and_told_of(void **state)
{
    assert_told_of("cuBLAS 13.4.2 (/");
}

static void a_library_of_another_version_than_its_name_says_is_not_used(void **state)
{
    setenv("FAKE_CUBLAS_MAJOR", "11", 1);
    assert_not_named("cuBLAS 11", "cuBLAS 13.4.2");
    unsetenv("FAKE_CUBLAS_MAJOR");
}

static void where_cublas_cannot_be_set_up_products_are_our_own(void **state)
{
    static const char *const functions[] = {"create", "workspace"};
    for (int i = 0; i < 2; i++) {
        struct device d;
        setenv("FAKE_CUBLAS_BROKEN", functions[i], 1);
        assert_int_equal(device_open_emulated(&d), OK);
        assert_non_null(strstr(d.kernels->name, "own products: cublas"));
        device_close(&d);
        assert_int_equal(emulated_memory_taken(), 0);
    }
    unsetenv("FAKE_CUBLAS_BROKEN");
}

static void assert_product_fails(const char *broken, err kind, const char *text)
{
    struct device d;
    assert_int_equal(device_open_gpu(&(struct gpu_options){.is_watched = true}, &d), OK);
    float *x = new_floats(&d, 64);
    setenv("FAKE_CUBLAS_BROKEN", broken, 1);
    d.kernels->gemm(&d, &(struct gemm){.m = 4, .n = 4, .k = 4, .a = x, .b = x + 16, .c = x + 32});
    unsetenv("FAKE_CUBLAS_BROKEN");
    assert_int_equal(d.kernels->synchronize(&d), kind);
    assert_non_null(strstr(error_text(), text));
    free_floats(&d, x);
    device_close(&d);
}

static void a_product_that_fails_is_told_with_the_name_of_its_status(void **state)
{
    assert_product_fails("gemm", ERR_DEVICE, "cublasGemmEx: CUBLAS_STATUS_NOT_INITIALIZED");
    assert_product_fails("gemm memory", ERR_MEMORY, "cublasGemmEx: CUBLAS_STATUS_ALLOC_FAILED");
}

/* The library rounds what it multiplies where bf16 is allowed: 1 + 2^-8 becomes 1. */
static void precision_goes_with_the_product(void **state)
{
    static const float wanted[] = {[PRECISION_FLOAT32] = 4 * (1 + 0x1p-8f),
                                   [PRECISION_TF32] = 4 * (1 + 0x1p-8f),
                                   [PRECISION_BF16] = 4};
    for (enum precision i = PRECISION_FLOAT32; i <= PRECISION_BF16; i++) {
        const struct gpu_options options = {.is_watched = true, .precision = i};
        struct device d;
        assert_int_equal(device_open_gpu(&options, &d), OK);
        float *x = new_floats(&d, 48);
        for (int j = 0; j < 32; j++) x[j] = j < 16 ? 1 + 0x1p-8f : 1;
        const struct gemm product = {.m = 4, .n = 4, .k = 4, .a = x, .b = x + 16, .c = x + 32};
        d.kernels->gemm(&d, &product);
        assert_int_equal(d.kernels->synchronize(&d), OK);
        for (int j = 32; j < 48; j++) assert_true(x[j] == wanted[i]);
        free_floats(&d, x);
        device_close(&d);
    }
}

/* A GPU that broke under the library's product is told of, not the product. */
static void a_product_on_a_gpu_that_broke_is_no_mistake_of_the_library(void **state)
{
    struct device d;
    assert_int_equal(device_open_emulated(&d), OK);
    setenv("FAKE_CUBLAS_BROKEN", "gemm", 1);
    emulated_break("cudaStreamQuery", 0);
    d.kernels->gemm(&d, &(struct gemm){.m = 1, .n = 1, .k = 1});
    emulated_break(NULL, 0);
    unsetenv("FAKE_CUBLAS_BROKEN");
    assert_int_equal(d.kernels->synchronize(&d), ERR_LOST);
    device_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cublas_is_found_and_told_of),
        cmocka_unit_test(a_library_of_another_version_than_its_name_says_is_not_used),
        cmocka_unit_test(where_cublas_cannot_be_set_up_products_are_our_own),
        cmocka_unit_test(a_product_that_fails_is_told_with_the_name_of_its_status),
        cmocka_unit_test(precision_goes_with_the_product),
        cmocka_unit_test(a_product_on_a_gpu_that_broke_is_no_mistake_of_the_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
