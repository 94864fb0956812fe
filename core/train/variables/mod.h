/* mod.h - row numbers of a table whose ids are dealt to its parts in turn, as with TensorFlow's
 * partition_strategy "mod": id i is row i / parts of part i mod parts. If the division leaves a
 * remainder, the first parts have one row more.
 *
 * Rows are numbered part by part, so that a part is one range of them; with one part (or 0: not cut
 * so) rows are the ids.
 */
#ifndef CORE_TRAIN_VARIABLES_MOD_H
#define CORE_TRAIN_VARIABLES_MOD_H

#include <stdint.h>

/* rows: of the whole table, at least `parts`; id and row are from 0 to rows - 1. */
int64_t mod_row_of_id(int64_t rows, int64_t parts, int64_t id);
int64_t mod_id_of_row(int64_t rows, int64_t parts, int64_t row);

#endif
