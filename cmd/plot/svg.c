/* svg.c - curves as one SVG picture: panels below each other, then which colour is which run. */
#include "cmd/plot/plot.h"

enum {
    WIDTH = 760,
    LEFT = 80, /* of the curves; labels stand before it */
    RIGHT = 740,
    PANEL_HEIGHT = 260,
    TOP = 30, /* of the curves in their panel */
    BOTTOM = 220,
    TICKS = 5,
    POINTS_DRAWN = 660, /* one for each unit of width */
    LEGEND_HEIGHT = 20,
};

/* That are told apart by those who see no red or no green, too (Okabe and Ito). */
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#e69f00", "#56b4e9", "#000000", "#999999"};
enum { COLOURS = sizeof colours / sizeof *colours };

/* Names come from files. */
static void put_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            fputs("&lt;", out);
        else if (*text == '&')
            fputs("&amp;", out);
        else if ((unsigned char)*text < ' ')
            fputc('?', out); /* XML has no such characters */
        else
            fputc(*text, out);
    }
}

static void put_label(FILE *out, double x, double y, const char *anchor, const char *text)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    put_text(out, text);
    fputs("</text>\n", out);
}

static void put_axes(FILE *out, struct plot_span steps, struct plot_span values, double top)
{
    char text[32];
    fprintf(out,
            "<rect x=\"%d\" y=\"%.0f\" width=\"%d\" height=\"%d\" fill=\"none\" "
            "stroke=\"#888\"/>\n",
            LEFT, top + TOP, RIGHT - LEFT, BOTTOM - TOP);
    for (int i = 0; i < TICKS; i++) {
        const double part = (double)i / (TICKS - 1), y = top + BOTTOM - part * (BOTTOM - TOP);
        fprintf(out, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>\n", LEFT, y, RIGHT);
        snprintf(text, sizeof text, "%.4g", values.from + part * (values.to - values.from));
        put_label(out, LEFT - 6, y + 4, "end", text);
        snprintf(text, sizeof text, "%.0f", steps.from + part * (steps.to - steps.from));
        put_label(out, LEFT + part * (RIGHT - LEFT), top + BOTTOM + 16, "middle", text);
    }
}

static void put_curve(FILE *out, const struct panel *panel, int run, int runs, double top)
{
    const struct plot_span steps = curves_steps(panel, runs), values = curves_values(panel, runs);
    const double width = (steps.to - steps.from) / (POINTS_DRAWN - 1);
    fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" points=\"",
            colours[run % COLOURS]);
    for (int i = 0; i < POINTS_DRAWN; i++) {
        const double from = steps.from + (i - 0.5) * width;
        double value;
        if (!curve_at(&panel->curves[run], from, from + width, &value)) continue;
        const double height = (value - values.from) / (values.to - values.from);
        fprintf(out, "%.1f,%.1f ", LEFT + (double)i * (RIGHT - LEFT) / (POINTS_DRAWN - 1),
                top + BOTTOM - height * (BOTTOM - TOP));
    }
    fputs("\"/>\n", out);
}

void plot_svg(const struct curves *c, FILE *out)
{
    const int legend = c->panel_count * PANEL_HEIGHT;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            WIDTH, legend + (c->run_count + 1) * LEGEND_HEIGHT);
    for (int i = 0; i < c->panel_count; i++) {
        const struct panel *panel = c->panels[i];
        const double top = (double)i * PANEL_HEIGHT;
        put_axes(out, curves_steps(panel, c->run_count), curves_values(panel, c->run_count), top);
        put_label(out, LEFT, top + TOP - 8, "start", panel->name);
        put_label(out, RIGHT, top + BOTTOM + 32, "end", "step");
        for (int run = 0; run < c->run_count; run++) put_curve(out, panel, run, c->run_count, top);
    }
    for (int run = 0; run < c->run_count; run++) {
        const double y = legend + (run + 0.5) * LEGEND_HEIGHT;
        fprintf(out, "<path d=\"M%d %.0fh30\" stroke=\"%s\" stroke-width=\"3\"/>\n", LEFT, y,
                colours[run % COLOURS]);
        put_label(out, LEFT + 40, y + 4, "start", c->runs[run]);
    }
    fputs("</svg>\n", out);
}
