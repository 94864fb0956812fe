/* cores.c - see cores.h. */
#include "cmd/cores.h"

#include <math.h>
#include <sched.h>

#include "core/base/control_groups.h"

/* The quota in cores; cgroup v2 (is_unified) has "150000 100000" or "max 100000" in one file. */
static double quota_of_folder(const char *root, const char *folder, bool is_unified)
{
    double quota = 0, period = 0;
    if (is_unified) {
        char name[2 * CONTROL_PATH_MAX];
        snprintf(name, sizeof name, "%s/cpu.max", folder);
        FILE *file = control_open(root, name);
        if (!file) return 0;
        if (fscanf(file, "%lf %lf", &quota, &period) != 2) period = 0;
        fclose(file);
    } else if (!control_number(root, folder, "cpu.cfs_quota_us", &quota) ||
               !control_number(root, folder, "cpu.cfs_period_us", &period)) {
        return 0;
    }
    return quota > 0 && period > 0 ? quota / period : 0;
}

struct cores cores_find(const char *root)
{
    struct cores cores = {.affinity = 1};
    cpu_set_t set;
    if (!sched_getaffinity(0, sizeof set, &set) && CPU_COUNT(&set) > 0)
        cores.affinity = CPU_COUNT(&set);
    cores.quota = control_groups_least(root, "cpu", quota_of_folder);
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
