/* example.h - the cells of a row that is a serialized tf.Example: features by name, each a list of
 * bytes, of floats or of integers.
 *
 * A feature is a cell with a list of values; a feature that is not there is a missing cell.
 */
#ifndef CORE_DATA_FORMATS_EXAMPLE_H
#define CORE_DATA_FORMATS_EXAMPLE_H

#include "core/base/proto.h"
#include "core/data/formats/named_cells.h"

/* Reads a new row; words point into the view. ERR_INPUT: which feature is broken. */
err example_read(struct named_cells *, struct view);

#endif
