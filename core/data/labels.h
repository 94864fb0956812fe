/* labels.h - several labels of a source, each made of a cell: "labels" instead of "label".
 *
 * They are numeric columns after those of data.columns, so code that reads, streams or sends
 * columns need not know about them; nodes do not read them, and losses find them by name.
 */
#ifndef CORE_DATA_LABELS_H
#define CORE_DATA_LABELS_H

#include "core/data/data.h"

struct label_spec {
    const char *name, *cell; /* cell NULL: same as name */
    const char *positive;    /* the word that counts as 1, all others as 0; NULL: none */
    struct strings classes;  /* words, by class; none: labels are numbers */
    const json_t *threshold; /* a number: the label is 1 if at least this, else 0; null: none */
    double scale, offset;    /* label = scale * number + offset */
    bool one_hot;            /* the cell has `count` numbers, one of them 1: the class is its
                                index */
    int64_t count;           /* numbers in the cell */
    const char *separator;
};
extern const struct object label_spec_object;

/* The source's "labels", of struct label_spec; none: it has a single label. */
const struct objects *labels_listed(const struct source_spec *);
/* ERR_INPUT: contradictory settings, or labels without data.columns. */
err labels_check(const struct source_spec *, const struct objects *columns);
/* Of struct column_spec: those of data.columns, then one for each label; in the arena. */
const struct objects *labels_beside(const struct objects *columns, const struct source_spec *,
                                    struct arena *);

#endif
