/* row_files.h - the files of a source whose rows are read as a stream: which rows are where, and a
 * cursor that reads them.
 */
#ifndef CORE_DATA_STREAM_ROW_FILES_H
#define CORE_DATA_STREAM_ROW_FILES_H

#include "core/data/parts.h"
#include "core/data/stream/order.h"
#include "core/data/stream/row_index.h"

struct row_files {
    const struct source_spec *source; /* borrowed, as all that context names */
    struct format_context context;
    struct bad_rows bad_rows;
    struct data_parts *parts;
    bool is_stored;         /* there are no data.columns: the readers make columns by themselves */
    const char *name, *use; /* for messages; use: of readers that do, else "" */
    struct arena arena;
    struct columns *columns; /* those of the first file with rows, for whoever asks first */
    int first_file;          /* which it is */

    struct indexed_file *files; /* [file_count] those that skip and take leave rows of */
    int file_count;
    struct unit *units; /* [unit_count] in the order of the files */
    int64_t unit_count, rows;
    bool has_fresh; /* an index that is not kept yet */
};

struct indexed_file {
    struct row_index index;
    uint64_t key;  /* of the index, where it is kept */
    uint64_t head; /* of its bytes, as parts_head() has it */
    bool is_fresh; /* it is not kept yet */
};

/* Finds all rows; none where there are other parts than these. ERR_INPUT: files that are not as one
 * another, or have too few rows or too many broken ones. To be closed also after a failure. */
err row_files_open(struct row_files *, const struct source_spec *, const struct format_context *);
void row_files_close(struct row_files *);
/* Keeps indexes that were made now, where the context names a folder and it is there. */
void row_files_keep(struct row_files *);

/* For one thread. Zeroed but for `files`; the first that is opened may take the files' columns. */
struct row_cursor {
    struct row_files *files;
    struct columns *columns;
    struct row_reader *reader; /* NULL: none is open */
    int file;                  /* which it reads */
    int64_t row;               /* the next one it gives */
};

err row_cursor_open(struct row_cursor *);
void row_cursor_close(struct row_cursor *);
/* Makes the columns of all rows of a passage, from passage->to on; to: one address per column.
 * ERR_INPUT: the row is broken, or the file is not what it was. */
err row_cursor_read(struct row_cursor *, const struct passage *, void *const *to);

#endif
