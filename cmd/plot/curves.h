/* curves.h - the numbers of runs by step, as `dtrain plot` draws them: a panel for each name, a
 * curve in it for each run.
 *
 * When a run was resumed from an earlier step, points after that step are dropped.
 */
#ifndef CMD_PLOT_CURVES_H
#define CMD_PLOT_CURVES_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/fields/fields.h"

enum { CURVE_RUNS_MAX = 16, PANELS_MAX = 64, POINTS_MAX = 1 << 20 };

struct plot_curve {
    double *step, *value; /* steps rise; values are finite */
    int count, room;
};

struct panel {
    const char *name;
    struct plot_curve curves[CURVE_RUNS_MAX]; /* of a run; count 0: it has none */
};

struct curves {
    struct arena arena;
    struct strings values; /* names to draw; none given: all but learning rate and speed */
    const char *runs[CURVE_RUNS_MAX];
    int run_count, panel_count;
    struct panel *panels[PANELS_MAX];
    const char *folder; /* put in front of names that are read: "eval/"; NULL: nothing */
};

/* A number of the newest run. Not kept: what is not finite, and names that nobody wants. ERR_INPUT:
 * more names or points than can be drawn. */
err curves_add(struct curves *, const char *name, double step, double value);
void curves_free(struct curves *);

/* A file of --metrics_file, an event file of TensorBoard, or a folder of such: one more run.
 * ERR_INPUT: too large, damaged, or nothing to draw in it. A last line or record that is not whole
 * is of a run that still writes, and left out. */
err curves_read(struct curves *, const char *path);

/* From the least to the largest; never empty. */
struct plot_span {
    double from, to;
};
struct plot_span curves_steps(const struct panel *, int runs);
struct plot_span curves_values(const struct panel *, int runs);
/* The mean of the points from step `from` to below `to`, or what lies on the line between the
 * points around it. false: the curve is not there. */
bool curve_at(const struct plot_curve *, double from, double to, double *ret);

#endif
