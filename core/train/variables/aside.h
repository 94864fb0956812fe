/* aside.h - rows of a table as they were, kept while a checkpoint is written and the table goes on.
 */
#ifndef CORE_TRAIN_VARIABLES_ASIDE_H
#define CORE_TRAIN_VARIABLES_ASIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"

struct aside {
    int64_t floats;      /* of a record */
    int64_t count, room; /* records */
    float *records;      /* [room, floats] */
    int64_t *places;     /* [place_count] 1 + index of a record; 0: free */
    int64_t *rows;       /* [room] of each record */
    int64_t place_count; /* a power of two, twice as many as room */
};

void aside_open(int64_t floats, struct aside *ret); /* takes no memory yet */
void aside_close(struct aside *);                   /* a zeroed one is fine */

/* NULL: the row is not aside. Valid until the next is added. */
const float *aside_find(const struct aside *, int64_t row);
/* Room for a row that is not aside yet. ERR_MEMORY: nothing has changed. */
err aside_add(struct aside *, int64_t row, float **ret_record);

#endif
