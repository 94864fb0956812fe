/* example.h - the cells of a row that is a serialized tf.Example: features by name, each a list of
 * bytes, of floats or of integers.
 *
 * A feature is a cell, with as many values as it has. One that is not there is missing.
 */
#ifndef CORE_DATA_FORMATS_EXAMPLE_H
#define CORE_DATA_FORMATS_EXAMPLE_H

#include "core/base/proto.h"
#include "core/data/formats/named_cells.h"

/* A new row; words stay in the bytes. ERR_INPUT: which feature is broken. */
err example_read(struct named_cells *, struct view);

#endif
