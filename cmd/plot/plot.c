/* plot.c - `dtrain plot RUN...`: loss and metrics of runs by step, in the terminal or as SVG. */
#include "cmd/plot/plot.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/out_file.h"

enum { COLUMNS = 80, WIDTH_MAX = 400 };

struct plot_flags {
    const char *svg;
    struct strings values;
    int64_t columns;
};

static const struct field fields[] = {
    FIELD_OF("svg", STRING, struct plot_flags, svg, .fallback = "null",
             .help = "write an image to this file instead of plain text to the terminal"),
    FIELD_OF("value", STRINGS, struct plot_flags, values, .fallback = "[]",
             .help = "plot only this value, as in --value=loss; may be repeated"),
    FIELD_OF("columns", INT, struct plot_flags, columns, .fallback = "0", .max = WIDTH_MAX,
             .help = "width of the text; 0: that of the terminal, or 80"),
    {0},
};

static const struct object plot_flags_object = {
    .name = "plot",
    .summary = "Draws runs",
    .fields = fields,
    .size = sizeof(struct plot_flags),
};

static void print_plot_help(FILE *out)
{
    fputs("  dtrain plot [FLAGS] RUN...\n\n"
          "Draws loss and metrics of up to 16 runs by step. A RUN is a file of --metrics_file, an\n"
          "event file of TensorBoard, or a folder with metrics.jsonl or event files.\n\n",
          out);
    flags_help(out, &plot_flags_object);
}

static int columns_of(const struct plot_flags *flags)
{
    struct winsize size;
    if (flags->columns) return (int)flags->columns;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : COLUMNS;
}

static err write_svg(const struct curves *curves, const char *path)
{
    struct out_file out = {0};
    if (strcmp(path, "-") == 0) { /* looked at when the program ends */
        plot_svg(curves, stdout);
        return OK;
    }
    err e = out_file_open(&out, path);
    if (!e) {
        plot_svg(curves, out.file);
        e = out_file_publish(&out);
    }
    out_file_close(&out);
    return e;
}

static err plot(struct curves *curves, int argc, char **argv)
{
    struct plot_flags flags;
    const char *runs[CURVE_RUNS_MAX];
    int count;
    TRY(flags_parse(&plot_flags_object, argc, argv, &curves->arena, &flags, runs, CURVE_RUNS_MAX,
                    &count));
    if (count == 0) return fail(ERR_INPUT, "no RUN was named; see `dtrain help plot`");
    curves->values = flags.values;
    for (int i = 0; i < count; i++) TRY(curves_read(curves, runs[i]));
    if (flags.svg) return write_svg(curves, flags.svg);
    plot_text(curves, columns_of(&flags), stdout);
    return OK;
}

static int cmd_plot(int argc, char **argv)
{
    struct curves curves = {0};
    err e = plot(&curves, argc - 1, argv + 1);
    if (e) e = fail_prefix(e, "plot");
    const int code = e ? report_error(e) : EXIT_DONE;
    curves_free(&curves);
    return code;
}

const struct command command_plot = {
    .name = "plot",
    .arguments = "[FLAGS] RUN...",
    .summary = "draw loss and metrics of runs, in the terminal or as SVG",
    .run = cmd_plot,
    .topic = "plot loss and metrics of runs",
    .print_help = print_plot_help,
};
