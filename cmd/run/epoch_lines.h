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

struct epoch_lines { /* zeroed, except for `say`, before the first call */
    void (*say)(const char *line);
    bool has_some;       /* epochs that are not yet printed: */
    uint64_t from, end;  /* epochs, from 0; end is not included */
    uint64_t each;       /* rows of the first one added; if is_each, of every one */
    struct rows_seen of; /* rows and applied of all of them; left: of the last */
    uint64_t twice, lost;
    bool is_each; /* each epoch has `each` rows, and as many were used */
    uint64_t since_ns, said_ns;
    bool has_said;
};

/* Adds epochs that are over, or rows of endless data. */
void epoch_lines_add(struct epoch_lines *, const struct rows_seen *, uint64_t now_ns);
void epoch_lines_flush(struct epoch_lines *, uint64_t now_ns);
/* The run has ended within `open` (rows 0: between epochs). Prints it unless it is only epoch 1. */
void epoch_lines_end(struct epoch_lines *, const struct rows_seen *open, uint64_t now_ns);

#endif
