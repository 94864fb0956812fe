/* test_cores.c - the CPU quota of control groups of both versions, as hosts and containers show
 * them, in a folder that stands for the root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cmd/cores.h"
#include "tests/core/base/fake_root.h"

#define OF_CPU "36 25 0:32 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
#define OF_SET "37 25 0:33 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"

static void assert_quota(double quota)
{
    const struct cores cores = cores_find(fake_root);
    assert_true(cores.quota > quota - 1e-9 && cores.quota < quota + 1e-9);
}

static void without_control_groups_there_is_no_quota(void **state)
{
    assert_quota(0);
}

static void the_tightest_group_above_the_own_one_counts(void **state)
{
    fake_root_put("/proc/self/cgroup", "0::/kubepods/pod1/main\n");
    fake_root_put("/proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/vda rw\n" FAKE_ROOT_UNIFIED);
    fake_root_put("/sys/fs/cgroup/kubepods/pod1/main/cpu.max", "max 100000\n");
    assert_quota(0);
    fake_root_put("/sys/fs/cgroup/kubepods/cpu.max", "800000 100000\n");
    assert_quota(8);
    fake_root_put("/sys/fs/cgroup/kubepods/pod1/cpu.max", "150000 100000\n");
    assert_quota(1.5);
    fake_root_put("/sys/fs/cgroup/other/cpu.max", "10000 100000\n");
    assert_quota(1.5);
}

static void a_container_sees_its_own_group_as_the_mount(void **state)
{
    fake_root_put("/proc/self/cgroup", "0::/\n");
    fake_root_put("/proc/self/mountinfo", FAKE_ROOT_UNIFIED);
    fake_root_put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    assert_quota(2);
}

static void a_path_of_the_host_that_is_not_there_leaves_the_mount(void **state)
{
    fake_root_put("/proc/self/cgroup", "0::/../../docker/abc\n");
    fake_root_put("/proc/self/mountinfo", FAKE_ROOT_UNIFIED);
    fake_root_put("/sys/fs/cgroup/cpu.max", "50000 100000\n");
    assert_quota(0.5);
}

static void version_1_has_quota_and_period_in_two_files(void **state)
{
    fake_root_put("/proc/self/cgroup",
                  "11:cpuset:/docker/abc\n4:cpu,cpuacct:/docker/abc\n0::/docker/abc\n");
    fake_root_put("/proc/self/mountinfo", OF_SET OF_CPU);
    fake_root_put("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "-1\n");
    fake_root_put("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us", "100000\n");
    assert_quota(0);
    fake_root_put("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "250000\n");
    assert_quota(2.5);
}

static void a_mount_may_show_the_own_part_of_the_hierarchy_alone(void **state)
{
    fake_root_put("/proc/self/cgroup", "4:cpuacct,cpu:/docker/abc/inner\n");
    fake_root_put("/proc/self/mountinfo",
                  "36 25 0:32 /docker/abc /cg rw - cgroup cgroup rw,cpuacct,cpu\n");
    fake_root_put("/cg/inner/cpu.cfs_quota_us", "300000\n");
    fake_root_put("/cg/inner/cpu.cfs_period_us", "100000\n");
    assert_quota(3);
}

static void what_is_no_quota_limits_nothing(void **state)
{
    fake_root_put("/proc/self/cgroup", "nothing\n0:\n0::/a\n");
    fake_root_put("/proc/self/mountinfo",
                  "\n1 2\n1 2 3 4\n1 2 3 4 5 - cgroup2\n" FAKE_ROOT_UNIFIED);
    const char *const texts[] = {"", "max\n", "0 100000\n", "-5 100000\n", "100000 0\n", "x y\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fake_root_put("/sys/fs/cgroup/a/cpu.max", texts[i]);
        assert_quota(0);
    }
}

static void a_part_of_a_core_counts_as_one(void **state)
{
    assert_int_equal(cores_count(&(struct cores){64, 0}), 64);
    assert_int_equal(cores_count(&(struct cores){64, 0.2}), 1);
    assert_int_equal(cores_count(&(struct cores){64, 1.5}), 2);
    assert_int_equal(cores_count(&(struct cores){64, 2}), 2);
    assert_int_equal(cores_count(&(struct cores){4, 100}), 4);
    assert_int_equal(cores_count(&(struct cores){1, 1e300}), 1);
}

#define IN_ROOT(test) cmocka_unit_test_setup_teardown(test, fake_root_begin, fake_root_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_ROOT(without_control_groups_there_is_no_quota),
        IN_ROOT(the_tightest_group_above_the_own_one_counts),
        IN_ROOT(a_container_sees_its_own_group_as_the_mount),
        IN_ROOT(a_path_of_the_host_that_is_not_there_leaves_the_mount),
        IN_ROOT(version_1_has_quota_and_period_in_two_files),
        IN_ROOT(a_mount_may_show_the_own_part_of_the_hierarchy_alone),
        IN_ROOT(what_is_no_quota_limits_nothing),
        cmocka_unit_test(a_part_of_a_core_counts_as_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
