/* test_cores.c - the CPU quota of control groups of both versions, as hosts and containers show
 * them, in a folder that stands for the root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "cmd/cores.h"

#define UNIFIED "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define OF_CPU "36 25 0:32 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
#define OF_SET "37 25 0:33 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"

static char root[] = "/tmp/dtrain-test-XXXXXX";

/* A file below the root, with the folders that it lies in */
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

static void assert_quota(double quota)
{
    const struct cores cores = cores_find(root);
    assert_true(cores.quota > quota - 1e-9 && cores.quota < quota + 1e-9);
}

static void without_control_groups_there_is_no_quota(void **state)
{
    assert_quota(0);
}

static void the_tightest_group_above_the_own_one_counts(void **state)
{
    put("/proc/self/cgroup", "0::/kubepods/pod1/main\n");
    put("/proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/vda rw\n" UNIFIED);
    put("/sys/fs/cgroup/kubepods/pod1/main/cpu.max", "max 100000\n");
    assert_quota(0);
    put("/sys/fs/cgroup/kubepods/cpu.max", "800000 100000\n");
    assert_quota(8);
    put("/sys/fs/cgroup/kubepods/pod1/cpu.max", "150000 100000\n");
    assert_quota(1.5);
    put("/sys/fs/cgroup/other/cpu.max", "10000 100000\n");
    assert_quota(1.5);
}

static void a_container_sees_its_own_group_as_the_mount(void **state)
{
    put("/proc/self/cgroup", "0::/\n");
    put("/proc/self/mountinfo", UNIFIED);
    put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    assert_quota(2);
}

static void a_path_of_the_host_that_is_not_there_leaves_the_mount(void **state)
{
    put("/proc/self/cgroup", "0::/../../docker/abc\n");
    put("/proc/self/mountinfo", UNIFIED);
    put("/sys/fs/cgroup/cpu.max", "50000 100000\n");
    assert_quota(0.5);
}

static void version_1_has_quota_and_period_in_two_files(void **state)
{
    put("/proc/self/cgroup", "11:cpuset:/docker/abc\n4:cpu,cpuacct:/docker/abc\n0::/docker/abc\n");
    put("/proc/self/mountinfo", OF_SET OF_CPU);
    put("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us", "100000\n");
    assert_quota(0);
    put("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "250000\n");
    assert_quota(2.5);
}

static void a_mount_may_show_the_own_part_of_the_hierarchy_alone(void **state)
{
    put("/proc/self/cgroup", "4:cpuacct,cpu:/docker/abc/inner\n");
    put("/proc/self/mountinfo", "36 25 0:32 /docker/abc /cg rw - cgroup cgroup rw,cpuacct,cpu\n");
    put("/cg/inner/cpu.cfs_quota_us", "300000\n");
    put("/cg/inner/cpu.cfs_period_us", "100000\n");
    assert_quota(3);
}

static void what_is_no_quota_limits_nothing(void **state)
{
    put("/proc/self/cgroup", "nothing\n0:\n0::/a\n");
    put("/proc/self/mountinfo", "\n1 2\n1 2 3 4\n1 2 3 4 5 - cgroup2\n" UNIFIED);
    const char *const texts[] = {"", "max\n", "0 100000\n", "-5 100000\n", "100000 0\n", "x y\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        put("/sys/fs/cgroup/a/cpu.max", texts[i]);
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

#define IN_ROOT(test) cmocka_unit_test_setup_teardown(test, begin, end)

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
