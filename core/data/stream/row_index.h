/* row_index.h - where the rows of a file are: blocks of rows that lie together, and where each
 * begins.
 *
 * It is made by one pass that looks at nothing but where rows end, and may be kept in a file, which
 * is believed as long as it is whole and the rows' file is as it was (size, times of change,
 * inode).
 */
#ifndef CORE_DATA_STREAM_ROW_INDEX_H
#define CORE_DATA_STREAM_ROW_INDEX_H

#include "core/data/bad_rows.h"
#include "core/data/columns/column.h"
#include "core/data/input.h"

/* Of a block of at least this many bytes the next row begins a new one; in a file of more than
 * ROW_BLOCKS_MAX of these, blocks are larger. */
enum { ROW_BLOCK_BYTES = 256 << 10, ROW_BLOCKS_MAX = 1 << 16 };

struct row_block {
    struct row_place place; /* of its first row */
    int64_t first;          /* of the file's rows, from 0 */
};

struct row_index {
    struct file_state state;  /* of the file, when it was made */
    struct row_block *blocks; /* [count] */
    int64_t count, rows;
    bool is_packed; /* rows are found by reading on only */
};

/* The reader is at its first row, and afterwards at its end. ERR_INPUT: a row whose end cannot be
 * found. */
err row_index_make(struct row_reader *, struct row_index *ret);
void row_index_free(struct row_index *); /* a zeroed one is fine */

/* Broken rows are no rows: those that are not made of their cells; to: memory of one row. */
err row_index_leave_out(struct row_index *, struct row_reader *, struct columns *, void *const *to,
                        struct bad_rows *);

/* The block that has the row, 0 to rows - 1 */
int64_t row_index_block(const struct row_index *, int64_t row);

/* ERR_INPUT: the file has changed since the index was made. */
err row_index_check(const struct row_index *, const struct row_reader *);

/* In a folder; `key` stands for the file and what makes rows of its bytes. An index that cannot be
 * read, is broken, or is of another state of the file is none: false. One that cannot be written is
 * left: it will be made again. */
bool row_index_load(const char *folder, uint64_t key, const struct row_reader *,
                    struct row_index *ret);
void row_index_save(const char *folder, uint64_t key, const struct row_index *);

#endif
