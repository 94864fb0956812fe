/* fake_root.h - a folder that stands for the root of a host, for what reads /proc and /sys. */
#ifndef TESTS_CORE_BASE_FAKE_ROOT_H
#define TESTS_CORE_BASE_FAKE_ROOT_H

/* Of the mounts of control groups version 2, in /proc/self/mountinfo */
#define FAKE_ROOT_UNIFIED                                                                          \
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"

extern char fake_root[];

/* Of cmocka: an empty one, and none any more */
int fake_root_begin(void **state);
int fake_root_end(void **state);

/* A file below it, with the folders that it lies in */
void fake_root_put(const char *path, const char *text);

#endif
