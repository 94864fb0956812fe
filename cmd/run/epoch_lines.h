/* epoch_lines.h - prints which rows of which epochs were used.
 *
 * Consecutive epochs share a line: one is printed at once when rows were lost or used twice, and
 * then at most one per EPOCH_LINES_EVERY_NS, however short the epochs are.
 */
#ifndef CMD_RUN_EPOCH_LINES_H
#define CMD_RUN_EPOCH_LINES_H

#include "core/train/hooks/hook.h"

static const uint64_t EPOCH_LINES_EVERY_NS = 10000000000;
enum { EPOCH_LINE_BYTES = 256 };

struct epoch_lines { /* but for `say` zeroed: nothing was told */
    void (*say)(const char *line);
    bool has_some;       /* that are not yet told: */
    uint64_t from, end;  /* epochs */
    uint64_t each;       /* rows of the epochs of each message that came */
    struct rows_seen of; /* the last; its numbers are of all */
    uint64_t twice, lost;
    bool is_each; /* each epoch has these rows, all of them, once */
    uint64_t since_ns, said_ns;
    bool has_said;
};

/* An epoch that is over, or data that come without end. */
void epoch_lines_add(struct epoch_lines *, const struct rows_seen *, uint64_t now_ns);
void epoch_lines_flush(struct epoch_lines *, uint64_t now_ns);
/* The run has ended amid these epochs (rows 0: it has not); nothing is told of the first alone. */
void epoch_lines_end(struct epoch_lines *, const struct rows_seen *open, uint64_t now_ns);

#endif
