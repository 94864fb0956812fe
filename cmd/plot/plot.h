/* plot.h - the two ways in which `dtrain plot` draws curves. */
#ifndef CMD_PLOT_PLOT_H
#define CMD_PLOT_PLOT_H

#include <stdio.h>

#include "cmd/plot/curves.h"

/* Plain ASCII, this many columns wide (at least PLOT_COLUMNS_MIN), a mark for each run. */
enum { PLOT_COLUMNS_MIN = 40 };
void plot_text(const struct curves *, int columns, FILE *);
void plot_svg(const struct curves *, FILE *);

#endif
