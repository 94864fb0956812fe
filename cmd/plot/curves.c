/* curves.c - see curves.h. */
#include "cmd/plot/curves.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_wanted(const struct curves *c, const char *name)
{
    static const char *const others[] = {
        "step",        "seconds", "learning_rate", "examples_per_second", "global_step/sec",
        "examples/sec"};
    if (c->values.count) return strings_have(&c->values, name);
    return text_find(others, sizeof others / sizeof *others, name) < 0;
}

static err find_panel(struct curves *c, const char *name, struct panel **ret)
{
    for (int i = 0; i < c->panel_count; i++) {
        *ret = c->panels[i];
        if (strcmp((*ret)->name, name) == 0) return OK;
    }
    if (c->panel_count == PANELS_MAX)
        return fail(ERR_INPUT, "more than %d names; --value chooses some", (int)PANELS_MAX);
    struct panel *panel = arena_new(&c->arena, sizeof *panel);
    panel->name = arena_string(&c->arena, name);
    *ret = c->panels[c->panel_count++] = panel;
    return OK;
}

static err grow(struct plot_curve *curve)
{
    const int room = curve->room ? 2 * curve->room : 256;
    double *step = realloc(curve->step, (size_t)room * sizeof *step);
    if (step) curve->step = step;
    double *value = step ? realloc(curve->value, (size_t)room * sizeof *value) : NULL;
    if (value) curve->value = value;
    if (!value) return fail(ERR_MEMORY, "no memory for %d points", room);
    curve->room = room;
    return OK;
}

err curves_add(struct curves *c, const char *name, double step, double value)
{
    struct panel *panel;
    if (!(fabs(value) <= FLT_MAX) || !is_wanted(c, name)) return OK; /* no picture shows it */
    TRY(find_panel(c, name, &panel));
    struct plot_curve *curve = &panel->curves[c->run_count - 1];
    while (curve->count > 0 && curve->step[curve->count - 1] >= step) curve->count--;
    if (curve->count == POINTS_MAX)
        return fail(ERR_INPUT, "%s: more than %d points", name, (int)POINTS_MAX);
    if (curve->count == curve->room) TRY(grow(curve));
    curve->step[curve->count] = step;
    curve->value[curve->count++] = value;
    return OK;
}

void curves_free(struct curves *c)
{
    for (int i = 0; i < c->panel_count * CURVE_RUNS_MAX; i++) {
        struct plot_curve *curve = &c->panels[i / CURVE_RUNS_MAX]->curves[i % CURVE_RUNS_MAX];
        free(curve->step);
        free(curve->value);
    }
    arena_free(&c->arena);
}

/* A single value has room on both sides. */
static struct plot_span widen(struct plot_span span)
{
    if (span.to > span.from) return span;
    const double by = span.from != 0 ? fmax(fabs(span.from) / 10, DBL_MIN) : 1;
    return (struct plot_span){span.from - by, span.to + by};
}

struct plot_span curves_steps(const struct panel *panel, int runs)
{
    struct plot_span span = {INFINITY, -INFINITY};
    for (int r = 0; r < runs; r++) {
        const struct plot_curve *curve = &panel->curves[r];
        if (!curve->count) continue;
        span.from = fmin(span.from, curve->step[0]);
        span.to = fmax(span.to, curve->step[curve->count - 1]);
    }
    return widen(span);
}

struct plot_span curves_values(const struct panel *panel, int runs)
{
    struct plot_span span = {INFINITY, -INFINITY};
    for (int r = 0; r < runs; r++) {
        const struct plot_curve *curve = &panel->curves[r];
        for (int i = 0; i < curve->count; i++) {
            span.from = fmin(span.from, curve->value[i]);
            span.to = fmax(span.to, curve->value[i]);
        }
    }
    return widen(span);
}

/* The first point that is not before the step; count: there is none. */
static int first_from(const struct plot_curve *curve, double step)
{
    int low = 0, high = curve->count;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (curve->step[middle] < step)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool curve_at(const struct plot_curve *curve, double from, double to, double *ret)
{
    const int first = first_from(curve, from);
    double mean = 0;
    int count = 0;
    for (int i = first; i < curve->count && curve->step[i] < to; i++)
        mean += (curve->value[i] - mean) / ++count;
    *ret = mean;
    if (count) return true;
    if (first == 0 || first == curve->count) return false;
    const double *x = curve->step + first, *y = curve->value + first;
    const double part = ((from + to) / 2 - x[-1]) / (x[0] - x[-1]);
    *ret = y[-1] + part * (y[0] - y[-1]);
    return true;
}
