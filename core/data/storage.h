/* storage.h - the memory behind a dataset.
 *
 * A block is a stretch of pages: anonymous, zero, growable. Storage is what most
 * formats own: one block of features, one of labels, and the name for messages.
 */
#ifndef CORE_DATA_STORAGE_H
#define CORE_DATA_STORAGE_H

#include "core/data/data.h"

struct block {
    void *at; /* NULL: none */
    size_t bytes;
};

/* Zeroed, aligned to a page, in huge pages where the system has them. ERR_MEMORY. */
err block_new(uint64_t bytes, struct block *ret);
/* At least bytes long afterwards, grown by half or more, so that growing row by row stays cheap. */
err block_grow(struct block *, uint64_t bytes);
void block_drop(struct block *); /* a zeroed one is fine; leaves it zeroed */

enum { CACHE_LINE = 64 };
static inline uint64_t whole_lines(uint64_t bytes)
{
    return (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

struct storage {
    struct block features, labels;
    struct block counts; /* double, how often each label occurs; none: nobody has counted */
    struct occurrences occurrences;        /* of the labels; set by storage_give */
    const char *name, *label_name;         /* NULL: the labels are in the file of that name */
    const char *use;                       /* as in a dataset; NULL: "" */
    struct column columns[STORED_COLUMNS]; /* of the dataset that has it */
};

/* Moves the storage into the dataset: owned, use, close, and of the columns names and addresses are
 * set. Copies of the texts and of the STORED_COLUMNS columns are kept. On failure the storage stays
 * the caller's. */
err storage_give(struct storage *, struct dataset *);
void storage_drop(struct storage *); /* blocks only: texts are borrowed until storage_give */

/* Of this many rows, or ERR_INPUT where that is more than memory can be */
err storage_bytes(const char *name, int64_t rows, const struct shape *, enum dtype, uint64_t *ret);

/* Labels that are stored as bytes become INT32; takes the block of bytes, also on failure. */
err storage_widen_labels(struct block *bytes, struct block *ret);

/* The elements of a "shape" attribute; ERR_INPUT when there are too many or one is out of range */
err storage_shape(const struct ints *, const char *what, struct shape *ret);

#endif
