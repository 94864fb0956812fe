/* environment.c - the environment variables that the arithmetic libraries read when they are
 * loaded.
 *
 * OpenBLAS chooses its kernels and starts its threads before main() runs, so changing that means
 * executing the program again: 4 ms, once. A task that another of our programs starts inherits the
 * environment and does not repeat it.
 */
#include <stdlib.h>
#include <unistd.h>

#include "kernels/cpu/cpu.h"

/* Set before executing the program again; prevents a second time. */
#define PREPARED "DTRAIN_ENVIRONMENT_PREPARED"

char *openblas_get_corename(void);
int openblas_get_num_threads(void);

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

/* Sets the variable if it is not set; returns whether it did. */
static bool set_missing(const char *name, const char *value)
{
    return value && !is_set(name) && setenv(name, value, 1) == 0;
}

/* How often OpenMP's threads check for work before they sleep: 1000 times are 30 to 50 us. Measured
 * on a 784-512-512-10 network, 2 threads on 2 cores, us per step: sleeping at once 1370, this 840,
 * 10000 times 840; with two other processes on these cores 1750, 2300, 7700. One thread: 1430. */
#define LOOKS_BEFORE_SLEEP "1000"

static bool set_waiting(void)
{
    if (is_set("GOMP_SPINCOUNT") || is_set("OMP_WAIT_POLICY")) return false;
    bool changed = set_missing("GOMP_SPINCOUNT", LOOKS_BEFORE_SLEEP);
    return set_missing("OMP_WAIT_POLICY", "passive") || changed;
}

void cpu_environment_prepare(char **argv)
{
    if (is_set(PREPARED) || setenv(PREPARED, "1", 1) != 0) return;
    bool changed = set_missing("OPENBLAS_CORETYPE", openblas_core_wanted(openblas_get_corename()));
    if (openblas_get_num_threads() > 1) changed |= set_missing("OPENBLAS_NUM_THREADS", "1");
    changed |= set_waiting();
    if (changed) (void)execv("/proc/self/exe", argv); /* if that fails, slower kernels will do */
}
