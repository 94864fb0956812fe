/* control_groups.c - see control_groups.h.
 *
 * /proc/self/cgroup names the groups of the process, one line "0::PATH" for version 2 and
 * "N:cpu,cpuacct:PATH" for version 1; /proc/self/mountinfo says where their hierarchies are seen. A
 * limit holds for all groups below it, so every folder from the mount down to the own group is
 * read. In a container the path may be the host's and not exist: then the limit of the mount itself
 * counts.
 */
#include "core/base/control_groups.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOUNTS_MAX = 65536, /* lines that are read */
    GROUPS_MAX = 64,    /* lines of /proc/self/cgroup */
    LINES_MAX = 200,    /* of a file of named numbers */
};

struct control_group {
    bool is_unified; /* version 2 */
    char path[CONTROL_PATH_MAX];
};

struct group_search {
    const char *root, *controller;
    control_limit *limit;
};

FILE *control_open(const char *root, const char *path)
{
    char name[2 * CONTROL_PATH_MAX];
    const int length = snprintf(name, sizeof name, "%s%s", root, path);
    return length < (int)sizeof name ? fopen(name, "re") : NULL;
}

bool control_number(const char *root, const char *folder, const char *file, double *ret)
{
    char name[2 * CONTROL_PATH_MAX];
    snprintf(name, sizeof name, "%s/%s", folder, file);
    FILE *in = control_open(root, name);
    const bool is_there = in && fscanf(in, "%lf", ret) == 1;
    if (in) fclose(in);
    return is_there;
}

bool control_named(FILE *file, const char *name, double *ret)
{
    const size_t length = strlen(name);
    char line[128];
    bool is_told = false;
    for (int i = 0; file && !is_told && i < LINES_MAX && fgets(line, sizeof line, file); i++)
        is_told = !strncmp(line, name, length) && sscanf(line + length, "%*[: ]%lf", ret) == 1;
    if (file) fclose(file);
    return is_told;
}

/* Is the word in a list with commas? */
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
static bool read_group(const char *line, const char *controller, struct control_group *ret)
{
    const char *names = strchr(line, ':');
    const char *path = names ? strchr(names + 1, ':') : NULL;
    if (!path) return false;
    const size_t bytes = (size_t)(path - names - 1);
    ret->is_unified = bytes == 0;
    if (bytes && !lists(names + 1, bytes, controller)) return false;
    snprintf(ret->path, sizeof ret->path, "%.*s", (int)strcspn(path + 1, "\n"), path + 1);
    return true;
}

static void tighten(double *least, double other)
{
    if (other > 0 && (*least == 0 || other < *least)) *least = other;
}

/* The least limit of the group and all above it; below: its path below the mount. */
static double limit_of_group(const struct group_search *s, const char *mount, const char *below,
                             bool is_unified)
{
    char folder[2 * CONTROL_PATH_MAX];
    const int length = snprintf(folder, sizeof folder, "%s%s", mount, below);
    const size_t shortest = strlen(mount);
    double limit = 0;
    if (length >= (int)sizeof folder) return limit;
    for (char *end = folder + length; end; end = strrchr(folder + shortest, '/')) {
        *end = '\0';
        tighten(&limit, s->limit(s->root, folder, is_unified));
        if (end == folder + shortest) break;
    }
    tighten(&limit, s->limit(s->root, mount, is_unified));
    return limit;
}

/* "36 25 0:32 /docker/abc /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct": root of the mount
 * in the hierarchy, mount point, type. */
static double limit_of_mount(const struct group_search *s, char *line,
                             const struct control_group *group)
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
    if (!is_unified && !lists(options, strlen(options), s->controller)) return 0;
    const size_t bytes = strcmp(seen, "/") ? strlen(seen) : 0;
    const bool is_below =
        !strncmp(group->path, seen, bytes) && (!group->path[bytes] || group->path[bytes] == '/');
    return limit_of_group(s, mount, is_below ? group->path + bytes : "", is_unified);
}

static double limit_of(const struct group_search *s, const struct control_group *group)
{
    char line[CONTROL_PATH_MAX];
    double limit = 0;
    FILE *mounts = control_open(s->root, "/proc/self/mountinfo");
    for (int i = 0; mounts && i < MOUNTS_MAX && fgets(line, sizeof line, mounts); i++)
        tighten(&limit, limit_of_mount(s, line, group));
    if (mounts) fclose(mounts);
    return limit;
}

double control_groups_least(const char *root, const char *controller, control_limit *limit)
{
    const struct group_search search = {root, controller, limit};
    char line[CONTROL_PATH_MAX];
    struct control_group group;
    double least = 0;
    FILE *groups = control_open(root, "/proc/self/cgroup");
    for (int i = 0; groups && i < GROUPS_MAX && fgets(line, sizeof line, groups); i++)
        if (read_group(line, controller, &group)) tighten(&least, limit_of(&search, &group));
    if (groups) fclose(groups);
    return least;
}
