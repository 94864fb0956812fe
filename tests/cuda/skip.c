/* skip.c - ends a test before it begins where there is no GPU: 77 means skipped. */
#include <stdio.h>
#include <unistd.h>

#include "kernels/kernels.h"

enum { SKIPPED = 77 };

static __attribute__((constructor)) void skip_without_gpu(void)
{
    struct device d;
    const err e = device_open_gpu(&(struct gpu_options){0}, &d);
    if (!e) {
        fprintf(stderr, "on %s\n", d.kernels->name);
        device_close(&d);
        return;
    }
    fprintf(stderr, "skipped, no GPU: %s\n", error_text());
    if (e == ERR_DEVICE) _exit(SKIPPED);
}
