/* lookup.h - which rows of tables a batch names: of a column of ids, or of several that share a
 * table, the different ones, ascending, and each id's place among them.
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

/* How ids are turned into the numbers that they are sorted by */
struct lookup_order {
    bool keys;         /* keys (variables/growing/keys.h) */
    int64_t rows, mod; /* rows of the table, whose ids go to parts by turns (variables/mod.h); mod
                          0: ids are used as they are */
};

struct lookup {
    struct lookup_order order;
    int64_t cells;                /* of a batch at most, of all columns */
    int64_t count;                /* different ids of the last one */
    int64_t *ids;                 /* [count], or what they became; ascending */
    int64_t *times;               /* [count] how often each was named */
    int64_t *places;              /* [cells]: of each id in `ids`; -1 for those that are none */
    struct named *named, *sorted; /* [cells] scratch */
    int64_t named_count, bits;    /* ids added so far; all bits that are set in any of them */
};

void lookup_open(int64_t cells, struct lookup_order, struct arena *, struct lookup *ret);

/* A batch: its columns are added one after the other, each at the cells from first_cell on, then
 * all are looked up together. Negative ids name no row: their places are -1, as are those of cells
 * without an id. */
void lookup_begin(struct lookup *);
void lookup_add(struct lookup *, const int64_t *ids, int64_t count, int64_t first_cell);
void lookup_find(struct lookup *);

/* The first place whose id is at least `id`; count: there is none. */
int64_t lookup_place(const struct lookup *, int64_t id);

#endif
