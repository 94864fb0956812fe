/* test_environment.c - a program that prepares its environment starts anew once, with what the
 * libraries need, and leaves alone what the user has set. The probe's path comes in PROBE. */
#include "tests/kernels/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct told {
    int starts, threads;
    char core[32], waiting[32], argument[32];
};

/* settings: assignments for the shell, in front of an environment without any of ours */
static struct told probe(const char *settings)
{
    char command[1024];
    struct told t;
    snprintf(command, sizeof command,
             "env -u OPENBLAS_CORETYPE -u OPENBLAS_NUM_THREADS -u OMP_NUM_THREADS -u "
             "OMP_WAIT_POLICY -u GOMP_SPINCOUNT -u DTRAIN_ENVIRONMENT_PREPARED %s '%s' one two",
             settings, getenv("PROBE"));
    FILE *out = popen(command, "r");
    assert_non_null(out);
    int fields =
        fscanf(out, "%d %31s %d %31s %31s", &t.starts, t.core, &t.threads, t.waiting, t.argument);
    assert_int_equal(pclose(out), 0);
    assert_int_equal(fields, 5);
    return t;
}

static void it_starts_anew_once_and_keeps_its_arguments(void **state)
{
    struct told t = probe("");
    assert_int_equal(t.starts, 2);
    assert_int_equal(t.threads, 1);
    assert_string_equal(t.waiting, "passive");
    assert_string_equal(t.argument, "two");
}

/* Whatever this processor is, OpenBLAS ends with kernels as wide as ours. */
static void openblas_uses_the_instructions_of_the_machine(void **state)
{
    struct told t = probe("");
    struct device d;
    assert_int_equal(device_open_cpu(1, NULL, &d), OK);
    bool is_old = strcmp(t.core, "Prescott") == 0 || strcmp(t.core, "Core2") == 0;
    if (strcmp(d.kernels->name, "cpu avx512") == 0)
        assert_true(strcmp(t.core, "SkylakeX") == 0 || strcmp(t.core, "Cooperlake") == 0 ||
                    strcmp(t.core, "SapphireRapids") == 0);
    else if (strcmp(d.kernels->name, "cpu avx2") == 0)
        assert_false(is_old);
    device_close(&d);
}

static void what_the_user_has_set_stays(void **state)
{
    struct told t = probe("OPENBLAS_CORETYPE=Prescott OMP_WAIT_POLICY=active");
    assert_string_equal(t.core, "Prescott");
    assert_string_equal(t.waiting, "active");
    t = probe("OPENBLAS_CORETYPE=Prescott OPENBLAS_NUM_THREADS=1 GOMP_SPINCOUNT=7");
    assert_int_equal(t.starts, 1); /* nothing to change */
    assert_string_equal(t.waiting, "-");
}

static void a_child_of_a_prepared_program_does_not_start_anew(void **state)
{
    struct told t = probe("DTRAIN_ENVIRONMENT_PREPARED=1");
    assert_int_equal(t.starts, 1);
    assert_string_equal(t.waiting, "-");
}

/* That of `meson test --setup`, which would test nothing if a library did not hear of it */
static void the_setup_of_the_tests_is_used(void **state)
{
    const char *kernels = getenv("DTRAIN_CPU_KERNELS"), *core = getenv("OPENBLAS_CORETYPE");
    const char *onednn = getenv("ONEDNN_MAX_CPU_ISA");
    char used_core[32], used_onednn[32], used_kernels[32];
    if (!kernels || !core || !onednn) skip();
    const int fields =
        sscanf(cpu_description(), "OpenBLAS %*s %31[^,], oneDNN %*s %31[^,], kernels %31s",
               used_core, used_onednn, used_kernels);
    assert_int_equal(fields, 3);
    assert_string_equal(used_core, core);
    assert_int_equal(strcasecmp(used_onednn, onednn), 0);
    assert_string_equal(used_kernels, kernels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_starts_anew_once_and_keeps_its_arguments),
        cmocka_unit_test(openblas_uses_the_instructions_of_the_machine),
        cmocka_unit_test(what_the_user_has_set_stays),
        cmocka_unit_test(the_setup_of_the_tests_is_used),
        cmocka_unit_test(a_child_of_a_prepared_program_does_not_start_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
