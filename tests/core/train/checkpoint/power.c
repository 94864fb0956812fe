/* power.c - writes down what is done to a folder, and shows the disks: see power.h. */
#include "tests/core/train/checkpoint/power.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/random.h"
#include "tests/core/train/checkpoint/power_inside.h"

enum { FILES_MAX = 1024, PATH_BYTES = 4096, SEEN_MAX = 1 << 20, AT_RANDOM = 8 };

static struct power power;
static struct {
    power_look *look;
    void *context;
    bool is_on;          /* off while look runs */
    int open[FILES_MAX]; /* descriptor: 1 + node, 0: none of ours */
    uint64_t seen[SEEN_MAX], salt;
    int64_t disks;
} watch;

/* ---- the disks of a moment ---- */

static bool is_new(uint64_t key)
{
    key = random_mix(key + watch.salt) | 1; /* 0: a free place */
    assert_true(watch.disks < SEEN_MAX / 2);
    uint64_t at = key % SEEN_MAX;
    for (; watch.seen[at]; at = (at + 1) % SEEN_MAX)
        if (watch.seen[at] == key) return false;
    watch.seen[at] = key;
    return true;
}

static void show(uint64_t chosen, enum bytes bytes)
{
    if (!is_new(disk_key(&power, chosen, bytes))) return;
    watch.disks++;
    disk_make(&power, chosen, bytes);
    watch.look(watch.context, power.disk);
    disk_remove(&power);
}

static void show_each(uint64_t chosen)
{
    for (int bytes = 0; bytes < BYTES_KINDS; bytes++) show(chosen, (enum bytes)bytes);
}

/* A failed test does not come back here, so that is_on stays false. */
static void show_all(void)
{
    if (!watch.is_on) return;
    watch.is_on = false;
    const int count = power.change_count;
    const uint64_t all = count ? ~UINT64_C(0) >> (64 - count) : 0;
    show_each(0);
    for (int i = 0; i < count; i++) {
        show_each(all >> i);
        show_each(UINT64_C(1) << i);
        show_each(all & ~(UINT64_C(1) << i));
    }
    for (int i = 0; i < AT_RANDOM; i++)
        show_each(all & random_u64((uint64_t)watch.disks, (uint64_t)i));
    watch.is_on = true;
}

/* ---- what was done ---- */

static int new_node(bool is_folder)
{
    assert_true(power.node_count < NODES_MAX);
    power.nodes[power.node_count] = (struct node){.is_folder = is_folder};
    return power.node_count++;
}

/* The folder's node and the last name of a path; false: it is not ours. */
static bool find(const char *path, struct name *ret)
{
    const size_t length = strlen(power.folder);
    char part[PATH_BYTES];
    if (strncmp(path, power.folder, length) != 0) return false;
    *ret = (struct name){.folder = ROOT, .node = ROOT};
    if (path[length] != '/') return !path[length];
    assert_in_range(snprintf(part, sizeof part, "%s", path + length + 1), 1, PATH_BYTES - 1);
    char *rest = part;
    for (char *slash; (slash = strchr(rest, '/')); rest = slash + 1) {
        *slash = '\0';
        ret->folder = names_find(&power.now, ret->folder, rest);
        if (ret->folder == NO_NODE) return false;
    }
    assert_in_range(snprintf(ret->text, sizeof ret->text, "%s", rest), 0, NAME_BYTES - 1);
    ret->node = names_find(&power.now, ret->folder, rest);
    return true;
}

static void change(const struct name *first, const struct name *second)
{
    struct change *change = &power.changes[power.change_count++];
    assert_true(power.change_count < CHANGES_MAX);
    *change = (struct change){.at = {*first}, .count = 1};
    if (second) change->at[change->count++] = *second;
    for (int i = 0; i < change->count; i++) names_set(&power.now, &change->at[i]);
}

static void name_it(struct name name, int node)
{
    name.node = node;
    change(&name, NULL);
}

static void sync_folder(int folder)
{
    int left = 0;
    for (int i = 0; i < power.change_count; i++) {
        const struct change *c = &power.changes[i];
        const bool is_sure = c->at[c->count - 1].folder == folder;
        for (int k = 0; k < c->count && is_sure; k++) names_set(&power.sure, &c->at[k]);
        if (!is_sure) power.changes[left++] = *c;
    }
    power.change_count = left;
}

/* Whatever is pending in a folder that is gone is of no interest. */
static void forget_folder(int folder)
{
    int left = 0;
    for (int i = 0; i < power.change_count; i++) {
        const struct change *c = &power.changes[i];
        if (c->at[c->count - 1].folder != folder) power.changes[left++] = *c;
    }
    power.change_count = left;
}

static void opened(int file, const char *path, int flags)
{
    struct name name;
    assert_in_range(file, 0, FILES_MAX - 1);
    watch.open[file] = 0;
    if (!find(path, &name)) return;
    if (name.node == NO_NODE) {
        name.node = new_node(false);
        name_it(name, name.node);
    }
    struct node *node = &power.nodes[name.node];
    if (flags & O_TRUNC) node->count = node->synced = 0;
    watch.open[file] = 1 + name.node;
}

static struct node *node_of(int file)
{
    const bool is_ours = watch.is_on && file >= 0 && file < FILES_MAX && watch.open[file];
    return is_ours ? &power.nodes[watch.open[file] - 1] : NULL;
}

static void grow(struct node *node, const void *from, size_t bytes)
{
    node->bytes = realloc(node->bytes, node->count + bytes);
    assert_non_null(node->bytes);
    memcpy(node->bytes + node->count, from, bytes);
    node->count += bytes;
}

static void synced(struct node *node)
{
    if (!node) return;
    node->synced = node->count;
    if (node->is_folder) sync_folder((int)(node - power.nodes));
}

/* ---- from here to there ---- */

void power_begin(const char *folder, const char *disk, power_look *look, void *context)
{
    power = (struct power){.folder = folder, .disk = disk};
    new_node(true);
    memset(&watch, 0, sizeof watch);
    watch.look = look;
    watch.context = context;
    watch.is_on = true;
}

void power_forget(void)
{
    watch.salt++;
}

int64_t power_end(void)
{
    show_all();
    watch.is_on = false;
    for (int i = 0; i < power.node_count; i++) free(power.nodes[i].bytes);
    return watch.disks;
}

/* ---- the calls; ld makes the real ones of these names ---- */

int __real_open64(const char *path, int flags, ...);
ssize_t __real_write(int file, const void *from, size_t bytes);
ssize_t __real_pwrite64(int file, const void *from, size_t bytes, off_t offset);
int __real_fsync(int file);
int __real_fdatasync(int file);
int __real_rename(const char *from, const char *to);
int __real_renameat2(int from_folder, const char *from, int to_folder, const char *to,
                     unsigned flags);
int __real_link(const char *from, const char *to);
int __real_unlink(const char *path);
int __real_unlinkat(int folder, const char *path, int flags);
int __real_mkdir(const char *path, mode_t mode);
int __real_rmdir(const char *path);

int __wrap_open64(const char *path, int flags, ...);
ssize_t __wrap_write(int file, const void *from, size_t bytes);
ssize_t __wrap_pwrite64(int file, const void *from, size_t bytes, off_t offset);
int __wrap_fsync(int file);
int __wrap_fdatasync(int file);
int __wrap_rename(const char *from, const char *to);
int __wrap_renameat2(int from_folder, const char *from, int to_folder, const char *to,
                     unsigned flags);
int __wrap_link(const char *from, const char *to);
int __wrap_unlink(const char *path);
int __wrap_unlinkat(int folder, const char *path, int flags);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_rmdir(const char *path);

int __wrap_open64(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (flags & O_CREAT) show_all();
    const int file = __real_open64(path, flags, mode);
    if (watch.is_on && file >= 0) opened(file, path, flags);
    return file;
}

ssize_t __wrap_write(int file, const void *from, size_t bytes)
{
    if (node_of(file)) show_all();
    const ssize_t done = __real_write(file, from, bytes);
    if (node_of(file) && done > 0) grow(node_of(file), from, (size_t)done);
    return done;
}

ssize_t __wrap_pwrite64(int file, const void *from, size_t bytes, off_t offset)
{
    const struct node *node = node_of(file);
    assert_true(!node || node->count == (size_t)offset); /* it comes in order */
    if (node) show_all();
    const ssize_t done = __real_pwrite64(file, from, bytes, offset);
    if (node && done > 0) grow(node_of(file), from, (size_t)done);
    return done;
}

int __wrap_fsync(int file)
{
    if (node_of(file)) show_all();
    const int failed = __real_fsync(file);
    if (!failed) synced(node_of(file));
    return failed;
}

int __wrap_fdatasync(int file)
{
    if (node_of(file)) show_all();
    const int failed = __real_fdatasync(file);
    if (!failed) synced(node_of(file));
    return failed;
}

static int renamed(const char *from, const char *to, int failed)
{
    struct name old, new;
    if (failed || !watch.is_on || !find(from, &old) || !find(to, &new)) return failed;
    new.node = old.node;
    old.node = NO_NODE;
    change(&old, &new);
    return 0;
}

int __wrap_rename(const char *from, const char *to)
{
    show_all();
    return renamed(from, to, __real_rename(from, to));
}

int __wrap_renameat2(int from_folder, const char *from, int to_folder, const char *to,
                     unsigned flags)
{
    show_all();
    return renamed(from, to, __real_renameat2(from_folder, from, to_folder, to, flags));
}

int __wrap_link(const char *from, const char *to)
{
    struct name old, new;
    show_all();
    const int failed = __real_link(from, to);
    if (!failed && watch.is_on && find(from, &old) && find(to, &new)) name_it(new, old.node);
    return failed;
}

int __wrap_unlink(const char *path)
{
    struct name name;
    show_all();
    const int failed = __real_unlink(path);
    if (!failed && watch.is_on && find(path, &name)) name_it(name, NO_NODE);
    return failed;
}

int __wrap_unlinkat(int folder, const char *path, int flags)
{
    char link[64], of_folder[PATH_BYTES], whole[2 * PATH_BYTES];
    struct name name;
    show_all();
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    const ssize_t length = readlink(link, of_folder, sizeof of_folder - 1);
    assert_true(length > 0);
    of_folder[length] = '\0';
    snprintf(whole, sizeof whole, "%s/%s", of_folder, path);
    const int failed = __real_unlinkat(folder, path, flags);
    if (!failed && watch.is_on && find(whole, &name)) name_it(name, NO_NODE);
    return failed;
}

int __wrap_mkdir(const char *path, mode_t mode)
{
    struct name name;
    show_all();
    const int failed = __real_mkdir(path, mode);
    if (!failed && watch.is_on && find(path, &name)) name_it(name, new_node(true));
    return failed;
}

int __wrap_rmdir(const char *path)
{
    struct name name;
    show_all();
    const int failed = __real_rmdir(path);
    if (failed || !watch.is_on || !find(path, &name)) return failed;
    forget_folder(name.node);
    name_it(name, NO_NODE);
    return 0;
}
