/* test_blas.c - finding cuBLAS and setting it up, with a library that only bears its name. The
 * environment of the test leads the loader to it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cuda/emulated.h"
#include "tests/kernels/support.h"

static void cublas_is_found_and_told_of(void **state)
{
    struct gpus gpus;
    struct device d;
    assert_int_equal(gpu_list(&gpus), OK);
    assert_non_null(strstr(gpus.libraries, "cuBLAS 13.4.2 (/"));
    assert_int_equal(device_open_emulated(&d), OK);
    assert_string_equal(d.kernels->name, "cuda emulated, cuBLAS 13.4.2");
    device_close(&d);
    assert_int_equal(emulated_memory_taken(), 0);
}

static void a_library_of_another_version_than_its_name_says_is_not_used(void **state)
{
    struct device d;
    setenv("FAKE_CUBLAS_MAJOR", "11", 1);
    assert_int_equal(device_open_emulated(&d), OK);
    assert_null(strstr(d.kernels->name, "cuBLAS 11"));
    assert_null(strstr(d.kernels->name, "cuBLAS 13.4.2"));
    device_close(&d);
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

static void a_product_that_fails_is_told(void **state)
{
    struct device d;
    assert_int_equal(device_open_gpu(&(struct gpu_options){.is_watched = true}, &d), OK);
    float *x = new_floats(&d, 64);
    setenv("FAKE_CUBLAS_BROKEN", "sgemm", 1);
    d.kernels->gemm(&d, &(struct gemm){.m = 4, .n = 4, .k = 4, .a = x, .b = x + 16, .c = x + 32});
    unsetenv("FAKE_CUBLAS_BROKEN");
    assert_int_equal(d.kernels->synchronize(&d), ERR_DEVICE);
    assert_non_null(strstr(error_text(), "cublasSgemm failed"));
    free_floats(&d, x);
    device_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cublas_is_found_and_told_of),
        cmocka_unit_test(a_library_of_another_version_than_its_name_says_is_not_used),
        cmocka_unit_test(where_cublas_cannot_be_set_up_products_are_our_own),
        cmocka_unit_test(a_product_that_fails_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
