/* row_files.h - the files of a source that is read as a stream: an index of where rows are, and a
 * cursor that reads them. */
#ifndef CORE_DATA_STREAM_ROW_FILES_H
#define CORE_DATA_STREAM_ROW_FILES_H

#include "core/data/parts.h"
#include "core/data/stream/order.h"
#include "core/data/stream/row_index.h"

struct row_files {
    const struct source_spec *source; /* borrowed, as is all that context refers to */
    struct format_context context;
    struct bad_rows bad_rows;
    struct data_parts *parts;
    bool is_stored;         /* no data.columns: readers make columns themselves */
    const char *name, *use; /* for messages; use: of readers if is_stored, else "" */
    struct arena arena;
    struct columns *columns; /* made from the first file with rows; the first cursor takes them */
    int first_file;          /* index of that file */

    struct indexed_file *files; /* [file_count] files up to the last that `take` needs */
    int file_count;
    struct unit *units; /* [unit_count] in order of files */
    int64_t unit_count, rows;
    bool has_fresh; /* an index is not yet saved */
};

struct indexed_file {
    struct row_index index;
    uint64_t key;  /* name of the saved index */
    uint64_t head; /* digest by parts_head() */
    bool is_fresh; /* it is not yet saved */
};

/* Indexes all rows; 0 rows are accepted if context says that there are other parts. ERR_INPUT:
 * files differ, or have too few rows or too many broken ones. To be closed also after a failure. */
err row_files_open(struct row_files *, const struct source_spec *, const struct format_context *);
void row_files_close(struct row_files *);
/* Saves new indexes to the context's index_folder, if it exists. */
void row_files_keep(struct row_files *);

/* For one thread. The caller zeroes it and sets `files`; the first one opened takes files->columns.
 */
struct row_cursor {
    struct row_files *files;
    struct columns *columns;
    struct row_reader *reader; /* NULL: no file is open */
    int file;                  /* the open one */
    int64_t row;               /* the next row to be read */
};

err row_cursor_open(struct row_cursor *);
void row_cursor_close(struct row_cursor *);
/* Reads the rows of a passage into columns, from row passage->to on; to: one address per column.
 * ERR_INPUT: a row is broken, or the file has changed. */
err row_cursor_read(struct row_cursor *, const struct passage *, void *const *to);

#endif
