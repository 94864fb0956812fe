/* lookup.h - which rows of tables a batch names: of each column of ids the different ones,
 * ascending, and each id's place among them.
 *
 * With places instead of ids a graph computes on the rows of the batch alone, and ascending ids
 * that belong to one ps are one stretch.
 */
#ifndef CORE_TRAIN_SESSION_LOOKUP_H
#define CORE_TRAIN_SESSION_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"

/* An id, and where in the batch it stands */
struct named {
    int64_t id, cell;
};

struct lookup {
    int64_t cells;                /* of a batch at most */
    int64_t count;                /* different ids of the last one */
    int64_t *ids;                 /* [count], ascending */
    int64_t *places;              /* [cells]: of each id in `ids`; -1 for those that are none */
    struct named *named, *sorted; /* [cells] scratch */
};

void lookup_open(int64_t cells, struct arena *, struct lookup *ret);

/* Negative ids are none. cells: those of this batch; the places behind them are -1. */
void lookup_find(struct lookup *, const int64_t *ids, int64_t cells);

/* The first place whose id is at least `id`; count: there is none. */
int64_t lookup_place(const struct lookup *, int64_t id);

#endif
