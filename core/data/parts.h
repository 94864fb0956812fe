/* parts.h - a source of several files: one after the other, as if they were one.
 *
 * A format reads one file, or one of each of its fields, at a time. Here is what is around it:
 * which they are, rows of all of them, and for messages which of them has a row.
 */
#ifndef CORE_DATA_PARTS_H
#define CORE_DATA_PARTS_H

#include "core/data/data.h"

struct data_parts;

/* Whether rows of the format come from files. */
bool parts_are_files(const struct format *);

/* What the spec says of them: names, patterns; NULL: they come from no file, or from several for
 * each part. */
const struct strings *parts_given(const struct source_spec *);

/* Rows of all files in memory, as format->open makes them of each. ERR_INPUT: files that are not
 * found, of which one field has more than another, or whose columns differ. */
err parts_open(const struct source_spec *, const struct format_context *, struct dataset *ret);

/* The same row by row, as columns of the cells (context->columns), which all of the files must have
 * alike, or of what is stored. Of what skip and take leave out nothing is made. */
err parts_open_columns(const struct source_spec *, const struct format_context *, bool is_stored,
                       struct dataset *ret);

/* Which files they are: their names without folders, bytes, and first 64 KiB, in their order; the
 * same wherever they lie. ERR_INPUT: rows of no file, or a pipe, which cannot be looked at twice.
 */
err parts_digest(const struct source_spec *, const struct format_context *, uint64_t *ret);

/* A digest of the first 64 KiB of one of them, unpacked; 0: it is behind a URL, where all tasks
 * find the same. */
err parts_head(const struct data_parts *, const struct format_context *, int part, uint64_t *ret);

/* The rows of all files themselves, behind those that skip leaves out (reader->passed), or all of a
 * generator. The parts are freed after the reader is closed, also on failure; source and context
 * stay until then. */
err parts_open_rows(const struct source_spec *, const struct format_context *,
                    struct data_parts **ret_parts, struct row_reader **ret);

/* The same, file by file: which there are, and a reader of the rows of one, of their cells or of
 * what is stored; NULL: it has none, where there are others. The reader that is opened first says
 * which cells, or columns, there are; ERR_INPUT: others have other ones. From then on any thread
 * may open more. */
err parts_find(const struct source_spec *, const struct format_context *, struct data_parts **ret);
int parts_count(const struct data_parts *);
err parts_read(struct data_parts *, const struct source_spec *, const struct format_context *,
               int part, bool is_stored, struct row_reader **ret);

/* Of a reader of broken rows alone, before any file has said which cells there are: all of them. */
err parts_pass_broken(struct row_reader *, struct bad_rows *);

/* The part has no row. When all were read, with this many rows: in the log, how many have none;
 * ERR_INPUT: all of several. */
void parts_note_empty(struct data_parts *, int part);
err parts_end(const struct data_parts *, int64_t rows);

/* Of the file that was opened first; they live as long as the parts. */
struct strings parts_feature_names(const struct data_parts *);

/* Of all files, unpacked: of packed ones a guess. */
err parts_bytes(const struct source_spec *, const struct format_context *, uint64_t *ret);

/* Where a row of a dataset is, among all that its file has. */
struct part_row {
    const char *name, *label_name; /* as a dataset has them */
    int64_t row;                   /* from 0; messages count from 1 */
};
struct part_row dataset_row_part(const struct dataset *, int64_t row);

void parts_free(struct data_parts *); /* NULL is fine */

#endif
