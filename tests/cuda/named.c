/* named.c - see named.h. */
#include "tests/cuda/named.h"

#include <string.h>

#include "tests/cuda/emulator/emulated.h"
#include "tests/kernels/support.h"

void assert_told_of(const char *library)
{
    struct gpus gpus;
    struct device d;
    assert_int_equal(gpu_list(&gpus), OK);
    assert_non_null(strstr(gpus.libraries, library));
    assert_int_equal(device_open_emulated(&d), OK);
    assert_string_equal(d.kernels->name, "cuda emulated, cuBLAS 13.4.2");
    device_close(&d);
    assert_int_equal(emulated_memory_taken(), 0);
}

void assert_not_named(const char *library, const char *other)
{
    struct device d;
    assert_int_equal(device_open_emulated(&d), OK);
    assert_null(strstr(d.kernels->name, library));
    assert_null(strstr(d.kernels->name, other));
    device_close(&d);
}
