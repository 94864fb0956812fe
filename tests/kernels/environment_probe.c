/* environment_probe.c - prepares the environment as main() does and tells what came of it, for
 * test_environment.c: "<times started> <OpenBLAS kernels> <its threads> <last argument>". */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/device.h"

char *openblas_get_corename(void);
int openblas_get_num_threads(void);

int main(int argc, char **argv)
{
    const char *started = getenv("PROBE_STARTED");
    char count[16];
    snprintf(count, sizeof count, "%d", (started ? atoi(started) : 0) + 1);
    setenv("PROBE_STARTED", count, 1);
    cpu_environment_prepare(argv);

    const char *waiting = getenv("OMP_WAIT_POLICY");
    printf("%s %s %d %s %s\n", count, openblas_get_corename(), openblas_get_num_threads(),
           waiting ? waiting : "-", argv[argc - 1]);
    return 0;
}
