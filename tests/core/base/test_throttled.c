/* test_throttled.c - what CPU quotas of control groups of both versions have held up, in a folder
 * that stands for the root.
 */
#include "core/base/throttled.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/core/base/fake_root.h"

#define OF_CPU "36 25 0:32 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
#define STAT "nr_periods %d\nnr_throttled %d\nthrottled_usec 1\n"

static void put_stat(const char *path, int throttled)
{
    char text[128];
    snprintf(text, sizeof text, STAT, 2 * throttled, throttled);
    fake_root_put(path, text);
}

static void is(double wanted)
{
    const double seconds = throttled_s(fake_root);
    assert_true(seconds > wanted - 1e-9 && seconds < wanted + 1e-9);
}

static void without_a_quota_nothing_is_held_up(void **state)
{
    is(0);
    fake_root_put("/proc/self/cgroup", "0::/pod/main\n");
    fake_root_put("/proc/self/mountinfo", FAKE_ROOT_UNIFIED);
    is(0);
    fake_root_put("/sys/fs/cgroup/pod/main/cpu.stat", "usage_usec 5\n");
    fake_root_put("/sys/fs/cgroup/pod/main/cpu.max", "max 100000\n");
    is(0);
    put_stat("/sys/fs/cgroup/pod/main/cpu.stat", 0);
    is(0);
}

static void the_group_that_is_held_up_most_counts(void **state)
{
    fake_root_put("/proc/self/cgroup", "0::/pod/main\n");
    fake_root_put("/proc/self/mountinfo", FAKE_ROOT_UNIFIED);
    fake_root_put("/sys/fs/cgroup/pod/main/cpu.max", "150000 100000\n");
    put_stat("/sys/fs/cgroup/pod/main/cpu.stat", 30);
    is(3);
    fake_root_put("/sys/fs/cgroup/pod/cpu.max", "50000 50000\n");
    put_stat("/sys/fs/cgroup/pod/cpu.stat", 100);
    is(5);
    put_stat("/sys/fs/cgroup/pod/cpu.stat", 10);
    is(3);
}

static void version_1_says_it_in_other_files(void **state)
{
    fake_root_put("/proc/self/cgroup", "4:cpu,cpuacct:/docker/abc\n");
    fake_root_put("/proc/self/mountinfo", OF_CPU);
    fake_root_put("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us", "100000\n");
    put_stat("/sys/fs/cgroup/cpu/docker/abc/cpu.stat", 7);
    is(0.7);
    fake_root_put("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us", "none\n");
    is(0);
}

#define IN_ROOT(test) cmocka_unit_test_setup_teardown(test, fake_root_begin, fake_root_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_ROOT(without_a_quota_nothing_is_held_up),
        IN_ROOT(the_group_that_is_held_up_most_counts),
        IN_ROOT(version_1_says_it_in_other_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
