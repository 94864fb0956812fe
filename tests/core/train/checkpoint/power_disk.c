/* power_disk.c - a disk after a power cut, as files: see power_inside.h. */
#include "tests/core/train/checkpoint/power_inside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_BYTES = 4096, OPEN_FOLDERS_MAX = 16, OLD_S = 1600000000 };
static const uint64_t FNV_START = 0xcbf29ce484222325u, FNV_FACTOR = 0x100000001b3u;

int names_find(const struct names *names, int folder, const char *text)
{
    for (int i = 0; i < names->count; i++)
        if (names->at[i].folder == folder && strcmp(names->at[i].text, text) == 0)
            return names->at[i].node;
    return NO_NODE;
}

void names_set(struct names *names, const struct name *name)
{
    int i = 0;
    while (i < names->count &&
           (names->at[i].folder != name->folder || strcmp(names->at[i].text, name->text) != 0))
        i++;
    assert_true(i < NAMES_MAX);
    names->at[i] = *name;
    if (i == names->count) names->count++;
}

/* What the disk is called by: the sure names, and the changes that were lucky. */
static const struct names *names_of(const struct power *p, uint64_t chosen)
{
    static struct names names;
    names = p->sure;
    for (int i = 0; i < p->change_count; i++)
        for (int k = 0; k < p->changes[i].count && (chosen >> i & 1); k++)
            names_set(&names, &p->changes[i].at[k]);
    return &names;
}

static size_t bytes_of(const struct node *node, enum bytes bytes)
{
    const size_t unsure = node->count - node->synced;
    if (bytes == BYTES_LOST) return node->synced;
    return node->synced + (bytes == BYTES_HALF ? unsure / 2 : unsure);
}

/* Called for each file and folder that has a path; a folder before what is in it. */
typedef void take_node(void *context, const char *path, const struct node *node);

static void visit(const struct power *p, const struct names *names, int folder, const char *path,
                  take_node *take, void *context)
{
    char below[PATH_BYTES];
    for (int i = 0; i < names->count; i++) {
        const struct name *name = &names->at[i];
        if (name->folder != folder || name->node == NO_NODE) continue;
        assert_in_range(snprintf(below, sizeof below, "%s/%s", path, name->text), 1,
                        PATH_BYTES - 1);
        take(context, below, &p->nodes[name->node]);
        if (p->nodes[name->node].is_folder) visit(p, names, name->node, below, take, context);
    }
}

struct keying {
    enum bytes bytes;
    uint64_t sum;
};

static uint64_t fnv(uint64_t hash, const char *at, size_t count)
{
    for (size_t i = 0; i < count; i++) hash = (hash ^ (unsigned char)at[i]) * FNV_FACTOR;
    return hash;
}

/* A sum, so that the order of names does not count. */
static void add_key(void *context, const char *path, const struct node *node)
{
    struct keying *keying = context;
    const uint64_t hash = fnv(FNV_START, path, strlen(path) + 1);
    keying->sum += fnv(hash, node->bytes, bytes_of(node, keying->bytes));
}

uint64_t disk_key(const struct power *p, uint64_t chosen, enum bytes bytes)
{
    struct keying keying = {.bytes = bytes};
    visit(p, names_of(p, chosen), ROOT, "", add_key, &keying);
    return keying.sum;
}

/* All of one time, which orders nothing. The calls of the C library are not those that are wrapped.
 */
static void make_one(void *context, const char *path, const struct node *node)
{
    const enum bytes *bytes = context;
    if (node->is_folder) {
        assert_int_equal(mkdir(path, 0777), 0);
        return;
    }
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    const size_t count = bytes_of(node, *bytes);
    if (count) assert_int_equal(fwrite(node->bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
    const struct timespec times[2] = {{.tv_sec = OLD_S}, {.tv_sec = OLD_S}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

void disk_make(const struct power *p, uint64_t chosen, enum bytes bytes)
{
    assert_int_equal(mkdir(p->disk, 0777), 0);
    visit(p, names_of(p, chosen), ROOT, p->disk, make_one, &bytes);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *at)
{
    return remove(path);
}

void disk_remove(const struct power *p)
{
    (void)nftw(p->disk, remove_one, OPEN_FOLDERS_MAX, FTW_DEPTH | FTW_PHYS);
}
