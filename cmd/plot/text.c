/* text.c - curves in a terminal. */
#include <math.h>
#include <string.h>

#include "cmd/plot/plot.h"

enum { ROWS = 12, LABEL_COLUMNS = 11, COLUMNS_MAX = 400 };

static const char marks[CURVE_RUNS_MAX + 1] = "*o+x#@%=&$~abcde";

struct canvas {
    char at[ROWS][COLUMNS_MAX];
    int columns; /* of the curves alone */
};

/* Later runs are drawn over earlier ones. */
static void draw_curve(struct canvas *canvas, const struct panel *panel, int run, int runs)
{
    const struct plot_span steps = curves_steps(panel, runs), values = curves_values(panel, runs);
    const double width = (steps.to - steps.from) / (canvas->columns - 1);
    for (int x = 0; x < canvas->columns; x++) {
        const double from = steps.from + (x - 0.5) * width;
        double value;
        if (!curve_at(&panel->curves[run], from, from + width, &value)) continue;
        const double height = (value - values.from) / (values.to - values.from);
        canvas->at[ROWS - 1 - (int)lround(height * (ROWS - 1))][x] = marks[run];
    }
}

static void print_panel(const struct canvas *canvas, const struct panel *panel, int runs, FILE *out)
{
    const struct plot_span steps = curves_steps(panel, runs), values = curves_values(panel, runs);
    fprintf(out, "%s\n", panel->name);
    for (int y = 0; y < ROWS; y++) {
        const double value = values.to - (values.to - values.from) * y / (ROWS - 1);
        int used = canvas->columns;
        while (used > 0 && canvas->at[y][used - 1] == ' ') used--;
        if (y % 4 == 0 || y == ROWS - 1)
            fprintf(out, "%*.4g |%.*s\n", LABEL_COLUMNS - 2, value, used, canvas->at[y]);
        else
            fprintf(out, "%*s|%.*s\n", LABEL_COLUMNS - 1, "", used, canvas->at[y]);
    }
    char first[32], last[32];
    const int width = snprintf(first, sizeof first, "%.0f", steps.from);
    snprintf(last, sizeof last, "step %.0f", steps.to);
    fprintf(out, "%*s%s%*s\n\n", LABEL_COLUMNS, "", first, canvas->columns - width, last);
}

void plot_text(const struct curves *c, int columns, FILE *out)
{
    struct canvas canvas;
    if (columns < PLOT_COLUMNS_MIN) columns = PLOT_COLUMNS_MIN;
    canvas.columns = columns - LABEL_COLUMNS < COLUMNS_MAX ? columns - LABEL_COLUMNS : COLUMNS_MAX;
    for (int i = 0; i < c->panel_count; i++) {
        memset(canvas.at, ' ', sizeof canvas.at);
        for (int run = 0; run < c->run_count; run++)
            draw_curve(&canvas, c->panels[i], run, c->run_count);
        print_panel(&canvas, c->panels[i], c->run_count, out);
    }
    for (int run = 0; run < c->run_count; run++)
        fprintf(out, "  %c %s\n", marks[run], c->runs[run]);
}
