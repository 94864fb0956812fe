/* storage.h - the memory behind a dataset.
 *
 * A block is anonymous memory: zeroed whole pages, growable. Storage is what most formats own: one
 * block of features, one of labels, and names for messages.
 */
#ifndef CORE_DATA_STORAGE_H
#define CORE_DATA_STORAGE_H

#include "core/data/data.h"

struct block {
    void *at; /* NULL: no memory */
    size_t bytes;
};

/* Zeroed, page-aligned, in huge pages if the system has them. ERR_MEMORY. */
err block_new(uint64_t bytes, struct block *ret);
/* Makes it at least `bytes` long; grows by half or more, so that growing row by row is cheap. */
err block_grow(struct block *, uint64_t bytes);
void block_drop(struct block *); /* may be zeroed; zeroes it */

enum { CACHE_LINE = 64 };
static inline uint64_t whole_lines(uint64_t bytes)
{
    return (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

struct storage {
    struct block features, labels;
    struct block counts;            /* double, how often each label occurs; none: not counted */
    struct occurrences occurrences; /* of the labels; set by storage_give */
    const char *name, *label_name;  /* label_name NULL: labels are in file `name` */
    const char *use;                /* as in a dataset; NULL: "" */
    struct column columns[STORED_COLUMNS]; /* those of the dataset */
};

/* Moves the storage into the dataset: sets owned, use, close, and the columns' names and addresses.
 * Keeps copies of the texts and of the STORED_COLUMNS columns. On failure the caller keeps the
 * storage. */
err storage_give(struct storage *, struct dataset *);
void storage_drop(struct storage *); /* frees the blocks only: texts are borrowed until
                                        storage_give */

/* Bytes of this many rows. ERR_INPUT: more than the address space */
err storage_bytes(const char *name, int64_t rows, const struct shape *, enum dtype, uint64_t *ret);

/* Converts labels from UINT8 to INT32; takes ownership of `bytes`, also on failure. */
err storage_widen_labels(struct block *bytes, struct block *ret);

/* Converts a "shape" attribute. ERR_INPUT: too many dimensions, or one is out of range */
err storage_shape(const struct ints *, const char *what, struct shape *ret);

#endif
