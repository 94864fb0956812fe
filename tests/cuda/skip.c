/* skip.c - ends a test before it begins where there is no GPU: 77 means skipped. One that is there
 * and cannot be opened is a failure. Without NVIDIA's libraries, which take seconds to load and are
 * the test's own affair.
 *
 * It stands in front of main() (ld --wrap=main) and is no constructor: a program's kernels are made
 * known to CUDA by constructors, and it may not be called before them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"

enum { SKIPPED = 77 };

/* What was main(), and what is called in its place */
int __real_main(int argc, char **argv);
int __wrap_main(int argc, char **argv);

static int say(const char *what, int code)
{
    fprintf(stderr, "%s%s\n", what, error_text());
    return code;
}

int __wrap_main(int argc, char **argv)
{
    struct device d;
    int count;
    const err e = gpu_count(&count);
    if (e == ERR_DEVICE) return say("skipped, no GPU: ", SKIPPED);
    if (e || device_open_gpu(&(struct gpu_options){.is_bare = true}, &d))
        return say("", EXIT_FAILURE);
    fprintf(stderr, "on %.*s\n", (int)strcspn(d.kernels->name, ","), d.kernels->name);
    device_close(&d);
    return __real_main(argc, argv);
}
