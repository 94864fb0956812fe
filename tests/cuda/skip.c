/* skip.c - ends a test before it begins where there is no GPU: 77 means skipped. One that is there
 * and cannot be opened is a failure. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kernels/kernels.h"

enum { SKIPPED = 77 };

static __attribute__((constructor)) void skip_without_gpu(void)
{
    struct device d;
    int count;
    if (gpu_count(&count)) {
        fprintf(stderr, "skipped, no GPU: %s\n", error_text());
        _exit(SKIPPED);
    }
    if (device_open_gpu(&(struct gpu_options){0}, &d)) {
        fprintf(stderr, "%s\n", error_text());
        _exit(EXIT_FAILURE);
    }
    fprintf(stderr, "on %s\n", d.kernels->name);
    device_close(&d);
}
