/* memory.c - see memory.h. */
#include "core/base/memory.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "core/base/control_groups.h"

double memory_resident(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%*s %lu", &pages) != 1) pages = 0;
    if (file) fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static bool of_host(const char *root, const char *name, double *ret)
{
    if (!control_named(control_open(root, "/proc/meminfo"), name, ret)) return false;
    *ret *= 1024;
    return true;
}

bool memory_of_host(const char *name, double *ret)
{
    return of_host("", name, ret);
}

static double limit_of_folder(const char *root, const char *folder, bool is_unified)
{
    double bytes = 0;
    const char *file = is_unified ? "memory.max" : "memory.limit_in_bytes";
    return control_number(root, folder, file, &bytes) ? bytes : 0;
}

/* Never 0, which would mean no limit. */
static double left_of_folder(const char *root, const char *folder, bool is_unified)
{
    const double limit = limit_of_folder(root, folder, is_unified);
    char path[CONTROL_PATH_MAX];
    double used = 0, dropped = 0;
    if (limit <= 0 ||
        !control_number(root, folder, is_unified ? "memory.current" : "memory.usage_in_bytes",
                        &used))
        return 0;
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    control_named(control_open(root, path), is_unified ? "inactive_file" : "total_inactive_file",
                  &dropped);
    return fmax(limit - fmax(used - dropped, 0), 1);
}

struct memory_room memory_room(const char *root)
{
    struct memory_room ret = {0};
    of_host(root, "MemTotal", &ret.limit);
    of_host(root, "MemAvailable", &ret.left);
    const double limit = control_groups_least(root, "memory", limit_of_folder);
    ret.is_of_group = limit > 0 && (limit < ret.limit || !(ret.limit > 0));
    if (!ret.is_of_group) return ret;
    const double left = control_groups_least(root, "memory", left_of_folder);
    ret.limit = limit;
    if (left > 0 && (left < ret.left || !(ret.left > 0))) ret.left = left;
    return ret;
}
