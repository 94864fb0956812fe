/* labels.h - several labels of a source, each made of a cell: "labels" instead of "label".
 *
 * They are columns of numbers behind those of data.columns, so that whoever reads, streams or sends
 * columns need not know them; nodes do not read them, and losses find them by name.
 */
#ifndef CORE_DATA_LABELS_H
#define CORE_DATA_LABELS_H

#include "core/data/data.h"

struct label_spec {
    const char *name, *cell; /* cell NULL: called as the label is */
    const char *positive;    /* the word that counts as 1; NULL: none */
    struct strings classes;  /* words, by class; none: labels are numbers */
    const json_t *threshold; /* a number: 1 from it on, else 0; null: none */
    double scale, offset;    /* label = scale * number + offset */
    bool one_hot;            /* `count` numbers, of which one is 1: the class is its place */
    int64_t count;           /* numbers in the cell */
    const char *separator;
};
extern const struct object label_spec_object;

/* Of struct label_spec; none: the source has its own label. */
const struct objects *labels_listed(const struct source_spec *);
/* ERR_INPUT: what contradicts itself, or a source without data.columns. */
err labels_check(const struct source_spec *, const struct objects *columns);
/* Of struct column_spec: those of data.columns, and the labels'. */
const struct objects *labels_beside(const struct objects *columns, const struct source_spec *,
                                    struct arena *);

#endif
