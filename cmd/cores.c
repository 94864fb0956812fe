/* cores.c - see cores.h.
 *
 * /proc/self/cgroup names the groups of the process, one line "0::PATH" for version 2 and
 * "N:cpu,cpuacct:PATH" for version 1; /proc/self/mountinfo says where their hierarchies are seen.
 * A quota binds all groups below it, so every folder from the mount down to the own group is read.
 * In a container the path may be the host's and not be there: then what the mount itself says
 * counts.
 */
#include "cmd/cores.h"

#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE_MAX_BYTES = 4096,
    MOUNTS_MAX = 65536, /* lines that are read */
    GROUPS_MAX = 64,    /* lines of /proc/self/cgroup */
};

struct group {
    bool is_unified; /* version 2 */
    char path[LINE_MAX_BYTES];
};

static FILE *open_below(const char *root, const char *path)
{
    char name[2 * LINE_MAX_BYTES];
    const int length = snprintf(name, sizeof name, "%s%s", root, path);
    return length < (int)sizeof name ? fopen(name, "re") : NULL;
}

/* Is the word among those between commas? */
static bool lists(const char *words, size_t bytes, const char *word)
{
    const size_t length = strlen(word);
    for (size_t at = 0; at + length <= bytes; at++) {
        const bool begins = at == 0 || words[at - 1] == ',';
        const bool ends = at + length == bytes || words[at + length] == ',';
        if (begins && ends && !memcmp(words + at, word, length)) return true;
    }
    return false;
}

/* "4:cpu,cpuacct:/docker/abc\n", "0::/user.slice\n" */
static bool read_group(const char *line, struct group *ret)
{
    const char *controllers = strchr(line, ':');
    const char *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path) return false;
    const size_t bytes = (size_t)(path - controllers - 1);
    ret->is_unified = bytes == 0;
    if (bytes && !lists(controllers + 1, bytes, "cpu")) return false;
    snprintf(ret->path, sizeof ret->path, "%.*s", (int)strcspn(path + 1, "\n"), path + 1);
    return true;
}

/* Cores of one folder; 0: no quota. */
static double quota_of_folder(const char *root, const char *folder, bool is_unified)
{
    char name[2 * LINE_MAX_BYTES];
    double quota = 0, period = 0;
    snprintf(name, sizeof name, "%s/%s", folder, is_unified ? "cpu.max" : "cpu.cfs_quota_us");
    FILE *file = open_below(root, name);
    if (!file) return 0;
    const int count = fscanf(file, "%lf %lf", &quota, &period); /* "max 100000" gives none */
    fclose(file);
    if (!is_unified && count >= 1) {
        snprintf(name, sizeof name, "%s/cpu.cfs_period_us", folder);
        file = open_below(root, name);
        if (!file) return 0;
        if (fscanf(file, "%lf", &period) != 1) period = 0;
        fclose(file);
    }
    return count >= 1 && quota > 0 && period > 0 ? quota / period : 0;
}

static void tighten(double *quota, double other)
{
    if (other > 0 && (*quota == 0 || other < *quota)) *quota = other;
}

/* Of the group and all above it; below: its path from the mount on. */
static double quota_of_group(const char *root, const char *mount, const char *below,
                             bool is_unified)
{
    char folder[2 * LINE_MAX_BYTES];
    const int length = snprintf(folder, sizeof folder, "%s%s", mount, below);
    const size_t shortest = strlen(mount);
    double quota = 0;
    if (length >= (int)sizeof folder) return quota;
    for (char *end = folder + length; end; end = strrchr(folder + shortest, '/')) {
        *end = '\0';
        tighten(&quota, quota_of_folder(root, folder, is_unified));
        if (end == folder + shortest) break;
    }
    tighten(&quota, quota_of_folder(root, mount, is_unified));
    return quota;
}

/* "36 25 0:32 /docker/abc /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct": the part of the
 * hierarchy that is seen, where, and of which kind. */
static double quota_of_mount(const char *root, char *line, const struct group *group)
{
    char *seen, *mount, *more = NULL;
    strtok_r(line, " ", &more);
    for (int skipped = 1; skipped < 3; skipped++) strtok_r(NULL, " ", &more);
    seen = strtok_r(NULL, " ", &more);
    mount = strtok_r(NULL, " ", &more);
    char *kind = mount && more ? strstr(more, "- cgroup") : NULL;
    if (!kind) return 0;
    const bool is_unified = !strncmp(kind, "- cgroup2 ", strlen("- cgroup2 "));
    kind[strcspn(kind, "\n")] = '\0';
    const char *options = strrchr(kind, ' ') + 1;
    if (is_unified != group->is_unified) return 0;
    if (!is_unified && !lists(options, strlen(options), "cpu")) return 0;
    const size_t bytes = strcmp(seen, "/") ? strlen(seen) : 0;
    const bool is_below =
        !strncmp(group->path, seen, bytes) && (!group->path[bytes] || group->path[bytes] == '/');
    return quota_of_group(root, mount, is_below ? group->path + bytes : "", is_unified);
}

static double quota_of(const char *root, const struct group *group)
{
    char line[LINE_MAX_BYTES];
    double quota = 0;
    FILE *mounts = open_below(root, "/proc/self/mountinfo");
    for (int i = 0; mounts && i < MOUNTS_MAX && fgets(line, sizeof line, mounts); i++)
        tighten(&quota, quota_of_mount(root, line, group));
    if (mounts) fclose(mounts);
    return quota;
}

struct cores cores_find(const char *root)
{
    struct cores cores = {.affinity = 1};
    cpu_set_t set;
    char line[LINE_MAX_BYTES];
    struct group group;
    if (!sched_getaffinity(0, sizeof set, &set) && CPU_COUNT(&set) > 0)
        cores.affinity = CPU_COUNT(&set);
    FILE *groups = open_below(root, "/proc/self/cgroup");
    for (int i = 0; groups && i < GROUPS_MAX && fgets(line, sizeof line, groups); i++)
        if (read_group(line, &group)) tighten(&cores.quota, quota_of(root, &group));
    if (groups) fclose(groups);
    return cores;
}

int cores_count(const struct cores *cores)
{
    const double whole = ceil(cores->quota);
    const bool is_tighter = whole >= 1 && whole < cores->affinity;
    return is_tighter ? (int)whole : cores->affinity;
}

int cores_here(void)
{
    const struct cores cores = cores_find("");
    return cores_count(&cores);
}
