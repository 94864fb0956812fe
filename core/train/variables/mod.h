/* mod.h - the rows of a table whose ids go to its parts by turns, as TensorFlow's
 * partition_strategy "mod" has it: id i is row i / parts of part i mod parts. The first parts have
 * one row more where they do not divide the rows.
 *
 * Rows are numbered part by part, so that a part is one stretch of them; where there is one part
 * (or 0: it is not cut so) they are the ids.
 */
#ifndef CORE_TRAIN_VARIABLES_MOD_H
#define CORE_TRAIN_VARIABLES_MOD_H

#include <stdint.h>

/* Of all `rows`, no fewer than parts; both from 0 to rows - 1. */
int64_t mod_row_of_id(int64_t rows, int64_t parts, int64_t id);
int64_t mod_id_of_row(int64_t rows, int64_t parts, int64_t row);

#endif
