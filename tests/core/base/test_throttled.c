/* test_throttled.c - what CPU quotas of control groups of both versions have held up, in a folder
 * that stands for the root.
 */
#include "core/base/throttled.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define UNIFIED "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define OF_CPU "36 25 0:32 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
#define STAT "nr_periods %d\nnr_throttled %d\nthrottled_usec 1\n"

static char root[] = "/tmp/dtrain-test-XXXXXX";

static void put(const char *path, const char *text)
{
    char name[512];
    snprintf(name, sizeof name, "%s%s", root, path);
    for (char *at = name + strlen(root) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(name, 0700);
        *at = '/';
    }
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void put_stat(const char *path, int throttled)
{
    char text[128];
    snprintf(text, sizeof text, STAT, 2 * throttled, throttled);
    put(path, text);
}

static int begin(void **state)
{
    strcpy(root + strlen(root) - 6, "XXXXXX");
    return !mkdtemp(root);
}

static int end(void **state)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

static void is(double wanted)
{
    const double seconds = throttled_s(root);
    assert_true(seconds > wanted - 1e-9 && seconds < wanted + 1e-9);
}

static void without_a_quota_nothing_is_held_up(void **state)
{
    is(0);
    put("/proc/self/cgroup", "0::/pod/main\n");
    put("/proc/self/mountinfo", UNIFIED);
    is(0);
    put("/sys/fs/cgroup/pod/main/cpu.stat", "usage_usec 5\n");
    put("/sys/fs/cgroup/pod/main/cpu.max", "max 100000\n");
    is(0);
    put_stat("/sys/fs/cgroup/pod/main/cpu.stat", 0);
    is(0);
}

static void the_group_that_is_held_up_most_counts(void **state)
{
    put("/proc/self/cgroup", "0::/pod/main\n");
    put("/proc/self/mountinfo", UNIFIED);
    put("/sys/fs/cgroup/pod/main/cpu.max", "150000 100000\n");
    put_stat("/sys/fs/cgroup/pod/main/cpu.stat", 30);
    is(3);
    put("/sys/fs/cgroup/pod/cpu.max", "50000 50000\n");
    put_stat("/sys/fs/cgroup/pod/cpu.stat", 100);
    is(5);
    put_stat("/sys/fs/cgroup/pod/cpu.stat", 10);
    is(3);
}

static void version_1_says_it_in_other_files(void **state)
{
    put("/proc/self/cgroup", "4:cpu,cpuacct:/docker/abc\n");
    put("/proc/self/mountinfo", OF_CPU);
    put("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us", "100000\n");
    put_stat("/sys/fs/cgroup/cpu/docker/abc/cpu.stat", 7);
    is(0.7);
    put("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us", "none\n");
    is(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_a_quota_nothing_is_held_up, begin, end),
        cmocka_unit_test_setup_teardown(the_group_that_is_held_up_most_counts, begin, end),
        cmocka_unit_test_setup_teardown(version_1_says_it_in_other_files, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
