/* parts.h - a source of several files, read one after the other as if they were one.
 *
 * A format reads one file at a time, or one of each of its fields. This finds the files, joins
 * their rows, and tells messages which file has a row.
 */
#ifndef CORE_DATA_PARTS_H
#define CORE_DATA_PARTS_H

#include "core/data/data.h"

struct data_parts;

/* Whether the format reads files; false: it is a generator. */
bool parts_are_files(const struct format *);

/* The names and patterns of files in the spec; NULL: a generator, or a format with several fields
 * of files. */
const struct strings *parts_given(const struct source_spec *);

/* Reads all files into memory by format->open. ERR_INPUT: a file is not found, fields have
 * different numbers of files, or columns of files differ. */
err parts_open(const struct source_spec *, const struct format_context *, struct dataset *ret);

/* The same row by row; is_stored: as format->read_stored has them, else as context->columns of the
 * cells, which must be the same in all files. Rows that skip and take leave out are not kept. */
err parts_open_columns(const struct source_spec *, const struct format_context *, bool is_stored,
                       struct dataset *ret);

/* Digest of the files in order: names without folders, sizes, and the first 64 KiB; so it does not
 * depend on the folder. ERR_INPUT: a generator, or a pipe, which cannot be read twice. */
err parts_digest(const struct source_spec *, const struct format_context *, uint64_t *ret);

/* Digest of the first 64 KiB of file `part`, unpacked; 0: a URL, where all tasks find the same
 * file. */
err parts_head(const struct data_parts *, const struct format_context *, int part, uint64_t *ret);

/* A reader of the cells of all files, after the rows that skip leaves out (reader->passed), or of
 * all rows of a generator. The caller frees the parts after closing the reader, also on failure;
 * source and context must live until then. */
err parts_open_rows(const struct source_spec *, const struct format_context *,
                    struct data_parts **ret_parts, struct row_reader **ret);

/* The same, file by file: parts_find lists the files; parts_read opens a reader of file `part`, of
 * cells or with `stored`; *ret NULL: the file has no rows, but others may. The first reader
 * determines the cells or columns; ERR_INPUT: a later file has different ones. After the first, any
 * thread may open more. */
err parts_find(const struct source_spec *, const struct format_context *, struct data_parts **ret);
int parts_count(const struct data_parts *);
err parts_read(struct data_parts *, const struct source_spec *, const struct format_context *,
               int part, bool is_stored, struct row_reader **ret);

/* Reads to the end a file of broken rows only, while cells are not known from any file. */
err parts_pass_broken(struct row_reader *, struct bad_rows *);

/* parts_note_empty: file `part` has no rows. parts_end, after all files with `rows` rows in total:
 * logs how many files have none; ERR_INPUT: none of several files has any. */
void parts_note_empty(struct data_parts *, int part);
err parts_end(const struct data_parts *, int64_t rows);

/* From the file that was opened first; they live as long as the parts. */
struct strings parts_feature_names(const struct data_parts *);

/* Adds to *ret the bytes of all files, unpacked: estimated for packed ones. */
err parts_bytes(const struct source_spec *, const struct format_context *, uint64_t *ret);

/* Where a row of a dataset is in its file, for messages. */
struct part_row {
    const char *name, *label_name; /* as in a dataset */
    int64_t row;                   /* from 0; messages count from 1 */
};
struct part_row dataset_row_part(const struct dataset *, int64_t row);

void parts_free(struct data_parts *); /* may be NULL */

#endif
