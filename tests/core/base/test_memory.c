/* test_memory.c - what is left of the memory of control groups of both versions and of hosts, in a
 * folder that stands for the root (core/base/memory.h).
 */
#include "core/base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/core/base/fake_root.h"

#define OF_MEMORY "36 25 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"

static int begin(void **state)
{
    if (fake_root_begin(state)) return 1;
    fake_root_put("/proc/meminfo",
                  "MemTotal:  16000 kB\nMemFree:  100 kB\nMemAvailable:    8000 kB\n");
    return 0;
}

static void assert_room(double limit, double left, bool is_of_group)
{
    const struct memory_room room = memory_room(fake_root);
    assert_true(room.limit == limit);
    assert_true(room.left == left);
    assert_int_equal(room.is_of_group, is_of_group);
}

static void without_a_limit_the_host_tells(void **state)
{
    assert_room(16384000, 8192000, false);
    fake_root_put("/proc/self/cgroup", "0::/pod/main\n");
    fake_root_put("/proc/self/mountinfo", FAKE_ROOT_UNIFIED);
    fake_root_put("/sys/fs/cgroup/pod/main/memory.max", "max\n");
    fake_root_put("/sys/fs/cgroup/pod/main/memory.current", "5000\n");
    assert_room(16384000, 8192000, false);
    fake_root_put("/sys/fs/cgroup/pod/main/memory.max", "99999999999\n");
    assert_room(16384000, 8192000, false);
}

static void what_others_of_a_group_use_is_not_left_but_files_are(void **state)
{
    fake_root_put("/proc/self/cgroup", "0::/pod/main\n");
    fake_root_put("/proc/self/mountinfo", FAKE_ROOT_UNIFIED);
    fake_root_put("/sys/fs/cgroup/pod/main/memory.max", "4000000\n");
    fake_root_put("/sys/fs/cgroup/pod/main/memory.current", "3500000\n");
    assert_room(4000000, 500000, true);
    fake_root_put("/sys/fs/cgroup/pod/main/memory.stat",
                  "anon 1\nfile 2500000\ninactive_file 2000000\n");
    assert_room(4000000, 2500000, true);
    fake_root_put("/sys/fs/cgroup/pod/memory.max", "9000000\n"); /* of all containers of a pod */
    fake_root_put("/sys/fs/cgroup/pod/memory.current", "8999000\n");
    assert_room(4000000, 1000, true);
    fake_root_put("/sys/fs/cgroup/pod/memory.current", "9999000\n");
    assert_room(4000000, 1, true);
}

static void a_host_that_is_full_leaves_nothing_to_a_group(void **state)
{
    fake_root_put("/proc/self/cgroup", "4:memory:/docker/abc\n");
    fake_root_put("/proc/self/mountinfo", OF_MEMORY);
    fake_root_put("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "12000000\n");
    fake_root_put("/sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", "3000000\n");
    fake_root_put("/sys/fs/cgroup/memory/docker/abc/memory.stat",
                  "cache 7\ntotal_inactive_file 1000000\n");
    assert_room(12000000, 8192000, true);
    fake_root_put("/proc/meminfo", "MemTotal:  16000 kB\nMemAvailable:    80000 kB\n");
    assert_room(12000000, 10000000, true);
}

static void nothing_is_told_where_nothing_can_be_read(void **state)
{
    fake_root_put("/proc/meminfo", "MemTotal\nMemAvailable: x kB\n");
    assert_room(0, 0, false);
    fake_root_put("/proc/self/cgroup", "0::/a\n");
    fake_root_put("/proc/self/mountinfo", FAKE_ROOT_UNIFIED);
    fake_root_put("/sys/fs/cgroup/a/memory.max", "5000\n");
    assert_room(5000, 0, true);
}

#define IN_ROOT(test) cmocka_unit_test_setup_teardown(test, begin, fake_root_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_ROOT(without_a_limit_the_host_tells),
        IN_ROOT(what_others_of_a_group_use_is_not_left_but_files_are),
        IN_ROOT(a_host_that_is_full_leaves_nothing_to_a_group),
        IN_ROOT(nothing_is_told_where_nothing_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
