/* throttled.c - see throttled.h. */
#include "core/base/throttled.h"

#include "core/base/control_groups.h"

static const double MICRO = 1e-6;

/* The quota's period; in version 2 the second number of "150000 100000" */
static double period_of(const char *root, const char *folder, bool is_unified)
{
    double period = 0;
    char path[2 * CONTROL_PATH_MAX];
    if (!is_unified) return control_number(root, folder, "cpu.cfs_period_us", &period) ? period : 0;
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    FILE *file = control_open(root, path);
    if (file && fscanf(file, "%*s %lf", &period) != 1) period = 0;
    if (file) fclose(file);
    return period;
}

/* The inverse, because control_groups_least() finds the least. */
static double inverse_of_folder(const char *root, const char *folder, bool is_unified)
{
    double periods = 0;
    char path[2 * CONTROL_PATH_MAX];
    snprintf(path, sizeof path, "%s/cpu.stat", folder);
    if (!control_named(control_open(root, path), "nr_throttled", &periods)) return 0;
    const double seconds = periods * period_of(root, folder, is_unified) * MICRO;
    return seconds > 0 ? 1 / seconds : 0;
}

double throttled_s(const char *root)
{
    const double inverse = control_groups_least(root, "cpu", inverse_of_folder);
    return inverse > 0 ? 1 / inverse : 0;
}
