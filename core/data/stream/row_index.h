/* row_index.h - where the rows of a file are: the begin of each block of consecutive rows.
 *
 * One pass that only looks for ends of rows makes it. It may be saved in a file, which is valid as
 * long as it is undamaged and the data file is unchanged (size, times of change, inode).
 */
#ifndef CORE_DATA_STREAM_ROW_INDEX_H
#define CORE_DATA_STREAM_ROW_INDEX_H

#include "core/data/bad_rows.h"
#include "core/data/columns/column.h"
#include "core/data/input.h"

/* A block ends with the row that makes it this large; blocks are larger in a file that would have
 * more than ROW_BLOCKS_MAX. */
enum { ROW_BLOCK_BYTES = 256 << 10, ROW_BLOCKS_MAX = 1 << 16 };

struct row_block {
    struct row_place place; /* of its first row */
    int64_t first;          /* of the file's rows, from 0 */
};

struct row_index {
    struct file_state state;  /* of the file, when it was made */
    struct row_block *blocks; /* [count] */
    int64_t count, rows;
    bool is_packed; /* rows can only be reached by reading forward */
};

/* The reader must be at its first row; afterwards it is at its end. ERR_INPUT: the end of a row
 * cannot be found. */
err row_index_make(struct row_reader *, struct row_index *ret);
void row_index_free(struct row_index *); /* may be zeroed */

/* Removes broken rows, of which columns cannot be made, from the index; to: memory for one row. */
err row_index_leave_out(struct row_index *, struct row_reader *, struct columns *, void *const *to,
                        struct bad_rows *);

/* Index of the block that contains the row, 0 to rows - 1 */
int64_t row_index_block(const struct row_index *, int64_t row);

/* ERR_INPUT: the file has changed since the index was made. */
err row_index_check(const struct row_index *, const struct row_reader *);

/* Load and save an index in a folder; `key` identifies the file and how it is split into rows. Load
 * is false if the index cannot be read, is damaged, or the file has changed since. If saving fails,
 * no index is kept and it will be made again. */
bool row_index_load(const char *folder, uint64_t key, const struct row_reader *,
                    struct row_index *ret);
void row_index_save(const char *folder, uint64_t key, const struct row_index *);

#endif
