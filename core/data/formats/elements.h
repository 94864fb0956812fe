/* elements.h - rows of a fixed size: those of features one behind the other in a file, and their
 * labels in another one.
 *
 * A format says where they begin, of which type and shape they are and how many there are; then
 * they are a dataset in memory, or read row by row.
 */
#ifndef CORE_DATA_FORMATS_ELEMENTS_H
#define CORE_DATA_FORMATS_ELEMENTS_H

#include "core/data/input.h"

/* Of one file, from where its input stands. Little-endian, unless it says something else. */
struct stored_file {
    struct input *input; /* NULL: there is none */
    struct shape shape;  /* of one row */
    enum dtype dtype;    /* UINT8, INT32, FLOAT32; labels that are bytes become INT32 */
    bool is_big_endian;
    size_t head;            /* bytes before the numbers of each row */
    bool is_channels_first; /* stored as [channel, y, x], where the shape is [y, x, channel] */
    const char *what;       /* for messages: what the file is full of */
};

struct stored_rows {
    struct stored_file features, labels;
    int64_t rows;
    /* The label is this byte of the features' head, and there is no file of labels. */
    bool has_labels_inside;
    size_t label_at;
};

/* All of them. ERR_INPUT: the files do not hold exactly these rows. */
err elements_load(const struct stored_rows *, struct dataset *ret);
/* A reader that has `stored`, which takes the inputs, also on failure. ERR_INPUT: the same; of a
 * packed file this is told only at its end. */
err elements_read(struct stored_rows *, struct row_reader **ret);
/* Bytes of this many rows of a file, with what stands before each. ERR_INPUT: more than can be */
err elements_bytes(const struct stored_file *, int64_t rows, uint64_t *ret);
void elements_close(struct stored_rows *); /* a zeroed one is fine */

#endif
