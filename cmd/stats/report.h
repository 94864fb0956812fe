/* report.h - what `dtrain stats` makes of what it has read. */
#ifndef CMD_STATS_REPORT_H
#define CMD_STATS_REPORT_H

#include <stdio.h>

#include "core/data/stats/stats.h"

enum { STATS_WORDS_SHOWN = 3, NUMBERS_AS_WORDS_MAX = 1000 };

/* Are its values words (a vocabulary is made of them), or numbers (boundaries), or few of them
 * (both)? */
bool stats_has_words(const struct cell_stats *);
bool stats_has_boundaries(const struct cell_stats *);

err stats_print(const struct stats *, FILE *); /* ERR_MEMORY */
err stats_print_json(const struct stats *);    /* to standard output */

/* NAME.words.txt (counts: and NAME.counts.txt) and NAME.boundaries.txt of each cell that has them,
 * in the folder, which is made where it is absent; says which. boundaries: of this many buckets of
 * as many numbers each, fewer where many are equal. ERR_IO. */
err stats_write(const struct stats *, const char *folder, int64_t buckets, bool counts, FILE *);

#endif
