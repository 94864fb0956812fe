/* elements.h - rows of a fixed size: features contiguous in one file, labels in another.
 *
 * A format sets where they begin, their type, shape and number; then they can be loaded into memory
 * or read row by row.
 */
#ifndef CORE_DATA_FORMATS_ELEMENTS_H
#define CORE_DATA_FORMATS_ELEMENTS_H

#include "core/data/input.h"

/* The numbers of one file, from the input's current offset. */
struct stored_file {
    struct input *input; /* NULL: no such file */
    struct shape shape;  /* of one row */
    enum dtype dtype;    /* UINT8, INT32, FLOAT32; labels of UINT8 become INT32 */
    bool is_big_endian;
    size_t head;            /* bytes before the numbers of each row */
    bool is_channels_first; /* stored as [channel, y, x], while shape is [y, x, channel] */
    const char *what;       /* for messages: what the numbers are */
};

struct stored_rows {
    struct stored_file features, labels;
    int64_t rows;
    /* The label is byte `label_at` of each row's head; there is no file of labels. */
    bool has_labels_inside;
    size_t label_at;
};

/* Loads all rows. ERR_INPUT: the files do not hold exactly these rows. */
err elements_load(const struct stored_rows *, struct dataset *ret);
/* Opens a reader with `stored`; takes the inputs, also on failure. ERR_INPUT: as above, but for
 * packed files only found at the end. */
err elements_read(struct stored_rows *, struct row_reader **ret);
/* Bytes of this many rows of a file, with their heads. ERR_INPUT: more than the address space */
err elements_bytes(const struct stored_file *, int64_t rows, uint64_t *ret);
void elements_close(struct stored_rows *); /* may be zeroed */

#endif
