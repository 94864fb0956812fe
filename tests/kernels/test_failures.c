/* test_failures.c - what oneDNN fails with inside of kernels, which return nothing: synchronize()
 * tells it, once, and out of memory is not taken for something else. Its calls are wrapped
 * (--wrap).
 */
#include "tests/kernels/support.h"

#include <oneapi/dnnl/dnnl.h>
#include <string.h>

enum { SIDE = 128 }; /* too large for OpenBLAS */

static dnnl_status_t failure;

dnnl_status_t __wrap_dnnl_sgemm(char ta, char tb, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k,
                                float alpha, const float *a, dnnl_dim_t lda, const float *b,
                                dnnl_dim_t ldb, float beta, float *c, dnnl_dim_t ldc);
dnnl_status_t __wrap_dnnl_sgemm(char ta, char tb, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k,
                                float alpha, const float *a, dnnl_dim_t lda, const float *b,
                                dnnl_dim_t ldb, float beta, float *c, dnnl_dim_t ldc)
{
    return failure;
}

dnnl_status_t __wrap_dnnl_primitive_create(dnnl_primitive_t *ret, const_dnnl_primitive_desc_t pd);
dnnl_status_t __wrap_dnnl_primitive_create(dnnl_primitive_t *ret, const_dnnl_primitive_desc_t pd)
{
    *ret = NULL;
    return failure;
}

static void multiply(struct device *d, float *a, dnnl_status_t status)
{
    failure = status;
    d->kernels->gemm(d, &(struct gemm){.m = SIDE, .n = SIDE, .k = SIDE, .a = a, .b = a, .c = a});
}

static void a_product_without_memory_is_told_as_such(void **state)
{
    struct device d;
    assert_int_equal(device_open_cpu(1, NULL, &d), OK);
    float *a = new_floats(&d, (int64_t)SIDE * SIDE);
    multiply(&d, a, dnnl_out_of_memory);
    multiply(&d, a, dnnl_runtime_error); /* the first is told */
    multiply(&d, a, dnnl_success);
    assert_int_equal(d.kernels->synchronize(&d), ERR_MEMORY);
    assert_non_null(strstr(error_text(), "no memory for oneDNN (dnnl_sgemm)"));
    assert_int_equal(d.kernels->synchronize(&d), OK);
    multiply(&d, a, dnnl_runtime_error);
    assert_int_equal(d.kernels->synchronize(&d), ERR_DEVICE);
    assert_non_null(strstr(error_text(), "dnnl_sgemm failed (oneDNN 5)"));
    free_floats(&d, a);
    device_close(&d);
}

static void a_convolution_without_memory_is_not_opened(void **state)
{
    const struct conv2d shape = {.window = {.batch = 2,
                                            .in_y = 8,
                                            .in_x = 8,
                                            .out_y = 8,
                                            .out_x = 8,
                                            .kernel_y = 1,
                                            .kernel_x = 1,
                                            .stride_y = 1,
                                            .stride_x = 1,
                                            .dilation_y = 1,
                                            .dilation_x = 1},
                                 .in_channels = 3,
                                 .out_channels = 4};
    struct device d;
    struct conv2d_plan *plan = NULL;
    assert_int_equal(device_open_cpu(1, NULL, &d), OK);
    failure = dnnl_out_of_memory;
    assert_int_equal(d.kernels->conv2d_open(&d, &shape, &plan), ERR_MEMORY);
    assert_null(plan);
    device_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_without_memory_is_told_as_such),
        cmocka_unit_test(a_convolution_without_memory_is_not_opened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
