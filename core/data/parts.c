/* parts.c - see parts.h. */
#include "core/data/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/files/file_system.h"
#include "core/base/files/pipe.h"
#include "core/base/fingerprint.h"
#include "core/base/log.h"
#include "core/data/columns/column.h"
#include "core/data/files.h"
#include "core/data/formats/label.h"
#include "core/data/input.h"
#include "core/data/said_once.h"
#include "core/data/storage.h"

enum { FILE_NAMES_MAX = 1100 }; /* in messages */
enum { HEAD_BYTES = 64 << 10 };

/* The files of one part (one of each field), once opened. */
struct data_part {
    const char *name, *label_name;
    int64_t rows_before, left_before; /* in earlier parts: kept, and left out as broken */
};

struct data_parts {
    struct arena arena;
    struct strings files[FILES_OF_PART_MAX];
    int count, opened;
    struct data_part *at;   /* [count] */
    int empty, first_empty; /* how many parts have no rows; the first of them */
    bool is_read;           /* the first reader was opened, and what follows was copied from it */
    struct strings cell_names, feature_names;
    int label_cell;
    struct column stored[STORED_COLUMNS];
    struct label_seen labels;

    /* columns of joined datasets */
    struct block blocks[COLUMNS_MAX];
};

void parts_free(struct data_parts *parts)
{
    if (!parts) return;
    for (int i = 0; i < COLUMNS_MAX; i++) block_drop(&parts->blocks[i]);
    arena_free(&parts->arena);
    free(parts);
}

/* ---- finding ---- */

/* Field number `index` of type FILES; NULL: there are fewer. */
static const struct field *files_field(const struct format *format, int index)
{
    for (const struct field *f = format->object.fields; f && f->name; f++)
        if (f->type == FIELD_FILES && index-- == 0) return f;
    return NULL;
}

bool parts_are_files(const struct format *format)
{
    return files_field(format, 0) != NULL;
}

const struct strings *parts_given(const struct source_spec *source)
{
    const struct format *format = source->format.kind->descriptor;
    const struct field *field = files_field(format, 0);
    if (!field || files_field(format, 1)) return NULL;
    return (const struct strings *)((const char *)source->format.attributes + field->offset);
}

static err find_of_field(struct data_parts *parts, const struct source_spec *source,
                         const struct format_context *context, const struct field *field,
                         struct strings *ret)
{
    const char *attributes = source->format.attributes;
    if (!context->only_file)
        return files_find((const struct strings *)(attributes + field->offset), context,
                          &parts->arena, ret);
    *ret = (struct strings){arena_array(&parts->arena, 1, sizeof *ret->at), 1};
    ret->at[0] = arena_string(&parts->arena, context->only_file);
    return OK;
}

/* Files of labels are not looked for without_labels. */
static err find_files(struct data_parts *parts, const struct source_spec *source,
                      const struct format_context *context)
{
    const struct format *format = source->format.kind->descriptor;
    const struct field *field;
    const int fields = context->without_labels ? 1 : FILES_OF_PART_MAX;
    for (int i = 0; i < fields && (field = files_field(format, i)); i++) {
        const err e = find_of_field(parts, source, context, field, &parts->files[i]);
        if (e) return fail_prefix(e, "\"%s\"", field->name);
        if (i == 0) parts->count = parts->files[0].count;
        if (parts->files[i].count != parts->count)
            return fail(ERR_INPUT, "\"%s\": expected %d files, as \"%s\" has, got %d", field->name,
                        parts->count, files_field(format, 0)->name, parts->files[i].count);
    }
    parts->at = arena_array(&parts->arena, (size_t)parts->count, sizeof *parts->at);
    return OK;
}

err parts_find(const struct source_spec *source, const struct format_context *context,
               struct data_parts **ret)
{
    struct data_parts *parts = calloc(1, sizeof *parts);
    if (!parts) return fail(ERR_MEMORY, "no memory for names of files");
    const err e = find_files(parts, source, context);
    if (e)
        parts_free(parts);
    else
        *ret = parts;
    return e;
}

int parts_count(const struct data_parts *parts)
{
    return parts->count;
}

struct strings parts_feature_names(const struct data_parts *parts)
{
    return parts->feature_names;
}

static err check_regular(const struct format_context *context, const char *path)
{
    struct stat state;
    char *joined = path_join(context->directory, path);
    const bool is_pipe =
        !path_is_url(joined) && stat(joined, &state) == 0 && !S_ISREG(state.st_mode);
    free(joined);
    if (!is_pipe && strcmp(path, STANDARD_INPUT) != 0) return OK;
    return fail(ERR_INPUT, "%s: expected a file, which can be looked at twice", path);
}

/* Reads up to HEAD_BYTES unpacked bytes */
static err read_head(struct input *in, char head[HEAD_BYTES], size_t *ret_bytes)
{
    size_t got = 1;
    for (*ret_bytes = 0; got > 0 && *ret_bytes < HEAD_BYTES; *ret_bytes += got)
        TRY(input_some(in, head + *ret_bytes, HEAD_BYTES - *ret_bytes, &got));
    return OK;
}

err parts_head(const struct data_parts *parts, const struct format_context *context, int part,
               uint64_t *ret)
{
    struct input *in = NULL;
    size_t bytes = 0;
    *ret = 0;
    char *path = path_join(context->directory, parts->files[0].at[part]);
    const bool is_elsewhere = !path || path_is_url(path);
    free(path);
    if (is_elsewhere) return OK;
    TRY(input_open_any(context, parts->files[0].at[part], &in));
    char *head = malloc(HEAD_BYTES);
    const err e =
        head ? read_head(in, head, &bytes) : fail(ERR_MEMORY, "no memory to look at files");
    if (!e) *ret = fingerprint(head, bytes);
    free(head);
    input_close(in);
    return e;
}

static err add_digest(const struct format_context *context, const char *path, char *head,
                      uint64_t *digest)
{
    struct input *in = NULL;
    size_t bytes = 0;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    TRY(check_regular(context, path));
    TRY(input_open_any(context, path, &in));
    const uint64_t size = input_file_bytes(in);
    const err e = read_head(in, head, &bytes);
    input_close(in);
    *digest = fingerprint_join(*digest, fingerprint(name, strlen(name)));
    *digest = fingerprint_join(*digest, fingerprint_join(size, fingerprint(head, bytes)));
    return e;
}

static err add_digests(const struct data_parts *parts, const struct format_context *context,
                       char *head, uint64_t *digest)
{
    for (int i = 0; i < FILES_OF_PART_MAX; i++)
        for (int k = 0; k < parts->files[i].count; k++)
            TRY(add_digest(context, parts->files[i].at[k], head, digest));
    return OK;
}

err parts_digest(const struct source_spec *source, const struct format_context *context,
                 uint64_t *ret)
{
    struct data_parts *parts;
    *ret = 0;
    if (!parts_are_files(source->format.kind->descriptor))
        return fail(ERR_INPUT, "its rows come from no file");
    TRY(parts_find(source, context, &parts));
    char *head = malloc(HEAD_BYTES);
    const err e = head ? add_digests(parts, context, head, ret)
                       : fail(ERR_MEMORY, "no memory to look at files");
    free(head);
    parts_free(parts);
    return e;
}

static err add_bytes(const struct format_context *context, const char *path, uint64_t *sum)
{
    struct input *in = NULL;
    TRY(input_open_any(context, path, &in));
    *sum += input_file_bytes(in) * (input_is_packed(in) ? PACKED_RATIO : 1);
    input_close(in);
    return OK;
}

err parts_bytes(const struct source_spec *source, const struct format_context *context,
                uint64_t *ret)
{
    struct data_parts *parts;
    err e = parts_find(source, context, &parts);
    if (e) return e;
    for (int i = 0; !e && i < parts->count; i++) e = add_bytes(context, parts->files[0].at[i], ret);
    parts_free(parts);
    return e;
}

static struct format_context context_of_part(const struct data_parts *parts,
                                             const struct format_context *context, int part)
{
    struct format_context result = *context;
    result.has_other_parts = context->has_other_parts || parts->count > 1;
    for (int i = 0; i < FILES_OF_PART_MAX; i++)
        result.files[i] = parts->files[i].count ? parts->files[i].at[part] : NULL;
    result.cell_names = parts->cell_names;
    if (parts->feature_names.count) result.feature_names = parts->feature_names;
    return result;
}

static int64_t count_left(const struct format_context *context)
{
    return context->bad_rows ? context->bad_rows->count : 0;
}

static void set_opened(struct data_parts *parts, const char *name, const char *label_name,
                       int64_t rows, int64_t left)
{
    parts->at[parts->opened++] = (struct data_part){
        .name = arena_string(&parts->arena, name),
        .label_name = arena_string(&parts->arena, label_name),
        .rows_before = rows,
        .left_before = left,
    };
}

/* ---- files without rows ---- */

void parts_note_empty(struct data_parts *parts, int part)
{
    if (parts->empty++ == 0) parts->first_empty = part;
}

/* Whether a file that failed to open is just empty; keeps the error's text. */
static bool is_empty(const struct data_parts *parts, const struct format_context *context, int part)
{
    char text[ERROR_TEXT_MAX];
    if (!context->has_other_parts && parts->count == 1) return false;
    snprintf(text, sizeof text, "%s", error_text());
    const bool is_so = input_is_empty(context, parts->files[0].at[part]);
    return is_so || fail(ERR_INPUT, "%s", text) == OK;
}

/* Logged once, however many passes over the files there are. */
static void say_empty(const struct data_parts *parts)
{
    char shown[PATH_BYTES_MAX];
    const char *first = path_shown(parts->files[0].at[parts->first_empty], shown);
    const uint64_t which = fingerprint(first, strlen(first));
    if (!said_first(SAID_WITHOUT_ROWS, fingerprint_join(which, (uint64_t)parts->empty))) return;
    log_line(LOG_INFO, "%d of %d files have no row of data: %s%s", parts->empty, parts->count,
             first, parts->empty > 1 ? " and others" : "");
}

/* Some of many files may have no rows; if none has any, it is a mistake. */
err parts_end(const struct data_parts *parts, int64_t rows)
{
    char shown[PATH_BYTES_MAX];
    if (rows == 0 && parts->count > 1)
        return fail(ERR_INPUT, "%s and %d more: no file has a row of data",
                    path_shown(parts->files[0].at[0], shown), parts->count - 1);
    if (rows > 0 && parts->empty > 0) say_empty(parts);
    return OK;
}

/* Several files are named by the first and how many there are. */
static void name_dataset(struct data_parts *parts, struct dataset *d)
{
    const int more = parts->count - 1;
    d->name = arena_format(&parts->arena, "%s and %d more", parts->at[0].name, more);
    d->label_name = arena_format(&parts->arena, "%s and %d more", parts->at[0].label_name, more);
    d->parts = parts;
}

struct part_row dataset_row_part(const struct dataset *d, int64_t row)
{
    int i = 0;
    row += d->first_row;
    const int64_t number = left_out_number(&d->left_out, row);
    if (!d->parts) return (struct part_row){d->name, d->label_name, number};
    while (i + 1 < d->parts->opened && d->parts->at[i + 1].rows_before <= row) i++;
    const struct data_part *part = &d->parts->at[i];
    return (struct part_row){part->name, part->label_name,
                             number - part->rows_before - part->left_before};
}

/* Whether these rows are all that skip and take need, so that the rest need not be read; false if
 * broken rows may still be left out. */
static bool has_enough(const struct source_spec *source, int64_t rows)
{
    return source->take > 0 && source->bad_rows == 0 && rows >= source->skip + source->take;
}

/* ---- datasets put together ---- */

static err check_column(const struct column *a, const struct column *b, const char *file)
{
    char wanted[SHAPE_TEXT_MAX], got[SHAPE_TEXT_MAX];
    if (a->dtype == b->dtype && shape_equal(&a->shape, &b->shape)) return OK;
    return fail(ERR_INPUT, "%s: expected %s %s %s, as the files before have, got %s %s", file,
                a->name, dtype_name(a->dtype), shape_text(&a->shape, wanted), dtype_name(b->dtype),
                shape_text(&b->shape, got));
}

static err check_alike(const struct dataset *all, const struct dataset *more)
{
    for (int i = 0; i < all->column_count; i++)
        TRY(check_column(&all->columns[i], &more->columns[i],
                         i == LABELS ? more->label_name : more->name));
    if (!more->use || strcmp(all->use, more->use) == 0) return OK;
    return fail(ERR_INPUT, "%s: expected, as in the files before, %s; got %s", more->name, all->use,
                more->use);
}

static err append(struct data_parts *parts, struct dataset *all, const struct dataset *more)
{
    for (int i = 0; i < all->column_count; i++) {
        struct column *to = &all->columns[i];
        const size_t row_bytes = column_row_bytes(to);
        if (!more->columns[i].at) continue;
        TRY(block_grow(&parts->blocks[i], row_bytes * (uint64_t)(all->rows + more->rows)));
        memcpy((char *)parts->blocks[i].at + row_bytes * (size_t)all->rows, more->columns[i].at,
               row_bytes * (size_t)more->rows);
        to->at = parts->blocks[i].at;
    }
    all->rows += more->rows;
    return OK;
}

/* Columns and `use` of the first file hold for all. */
static err append_part(struct data_parts *parts, struct dataset *all, const struct dataset *more,
                       int64_t left)
{
    if (all->column_count == 0) {
        const size_t count = (size_t)more->column_count;
        *all = (struct dataset){.columns = arena_array(&parts->arena, count, sizeof *all->columns),
                                .column_count = more->column_count};
        memcpy(all->columns, more->columns, count * sizeof *all->columns);
        for (int i = 0; i < all->column_count; i++) {
            all->columns[i].at = NULL;
            all->columns[i].name = arena_string(&parts->arena, more->columns[i].name);
        }
        all->use = arena_string(&parts->arena, more->use ? more->use : "");
    }
    TRY(check_alike(all, more));
    set_opened(parts, more->name, more->label_name, all->rows, left);
    return append(parts, all, more);
}

static void pass_part(struct data_parts *parts, int part, int64_t rows, int64_t left)
{
    const char *name = parts->files[0].at[part];
    parts_note_empty(parts, part);
    set_opened(parts, name, name, rows, left);
}

static err open_part(struct data_parts *parts, const struct source_spec *source,
                     const struct format_context *context, int part, struct dataset *ret)
{
    const struct format *format = source->format.kind->descriptor;
    const struct format_context own = context_of_part(parts, context, part);
    return format->open(source->format.attributes, &own, ret);
}

static err open_all(struct data_parts *parts, const struct source_spec *source,
                    const struct format_context *context, struct dataset *all)
{
    for (int i = 0; i < parts->count && !has_enough(source, all->rows); i++) {
        struct dataset more = {0};
        const int64_t left = count_left(context);
        err e = open_part(parts, source, context, i, &more);
        if (e == ERR_INPUT && is_empty(parts, context, i)) e = OK;
        if (!e && more.rows == 0)
            pass_part(parts, i, all->rows, left);
        else if (!e)
            e = append_part(parts, all, &more, left);
        dataset_close(&more);
        TRY(e);
    }
    TRY(parts_end(parts, all->rows));
    name_dataset(parts, all);
    return OK;
}

/* A single file's dataset is returned as it is, without copying. */
err parts_open(const struct source_spec *source, const struct format_context *context,
               struct dataset *ret)
{
    struct dataset all = {0};
    struct data_parts *parts;
    TRY(parts_find(source, context, &parts));
    const bool is_one = parts->count == 1;
    err e = is_one ? open_part(parts, source, context, 0, &all)
                   : open_all(parts, source, context, &all);
    if (e || is_one) parts_free(parts);
    if (!e) *ret = all;
    return e;
}

/* ---- rows of cells ---- */

static void keep_first(struct data_parts *parts, const struct row_reader *first)
{
    parts->is_read = true;
    parts->label_cell = first->label_cell;
    if (first->stored) memcpy(parts->stored, first->stored, sizeof parts->stored);
    for (int i = 0; first->stored && i < STORED_COLUMNS; i++)
        parts->stored[i].name = arena_string(&parts->arena, first->stored[i].name);
    parts->cell_names = (struct strings){
        arena_strings(&parts->arena, first->cell_names, first->cell_count), first->cell_count};
    parts->feature_names =
        (struct strings){arena_strings(&parts->arena, first->feature_names, first->feature_count),
                         first->feature_count};
}

static err refuse_width(const struct strings *expected, const struct row_reader *reader)
{
    const int count = reader->cell_count;
    int lacking = 0;
    while (lacking < expected->count && row_reader_cell(reader, expected->at[lacking]) >= 0)
        lacking++;
    const char *named = count == 1                  ? reader->cell_names[0]
                        : lacking < expected->count ? expected->at[lacking]
                                                    : NULL;
    const char *before = !named ? "" : count == 1 ? ", \"" : ": no \"";
    return fail(ERR_INPUT, "%s: expected %d cells as in the files before, got %d%s%.64s%s",
                reader->name, expected->count, count, before, named ? named : "",
                named ? "\"" : "");
}

static err check_rows(const struct data_parts *parts, const struct row_reader *reader)
{
    const struct strings *expected = &parts->cell_names;
    for (int i = 0; reader->stored && i < STORED_COLUMNS; i++)
        TRY(check_column(&parts->stored[i], &reader->stored[i], reader->name));
    if (reader->feature_count > 0) return OK; /* features are matched by name */
    if (reader->cell_count != expected->count) return refuse_width(expected, reader);
    for (int i = 0; i < expected->count; i++)
        if (strcmp(expected->at[i], reader->cell_names[i]) != 0)
            return fail(ERR_INPUT,
                        "%s: cell %d: expected \"%s\" as in the files before, got \"%s\"; where "
                        "no file has a header, say \"header\": false, or without a spec "
                        "--header=false",
                        reader->name, i, expected->at[i], reader->cell_names[i]);
    if (reader->label_cell == parts->label_cell || reader->label_cell < 0) return OK;
    return fail(ERR_INPUT, "%s: its label is \"%s\", that of the files before is another cell",
                reader->name, reader->cell_names[reader->label_cell]);
}

err parts_read(struct data_parts *parts, const struct source_spec *source,
               const struct format_context *context, int part, bool is_stored,
               struct row_reader **ret)
{
    const struct format *format = source->format.kind->descriptor;
    const struct format_context own = context_of_part(parts, context, part);
    struct row_reader *reader = NULL;
    *ret = NULL;
    err e =
        (is_stored ? format->read_stored : format->read)(source->format.attributes, &own, &reader);
    if (e == ERR_INPUT && is_empty(parts, context, part)) return OK;
    TRY(e);
    if (reader->is_empty && own.has_other_parts) {
        reader->calls->close(reader);
        return OK;
    }
    const bool knows_cells = parts->is_read || !reader->is_all_broken;
    if (!parts->is_read && knows_cells) keep_first(parts, reader);
    e = knows_cells ? check_rows(parts, reader) : OK;
    if (e)
        reader->calls->close(reader);
    else
        *ret = reader;
    return e;
}

err parts_pass_broken(struct row_reader *reader, struct bad_rows *bad_rows)
{
    struct row row;
    bool found = true;
    while (found) {
        const err e = reader->calls->next(reader, &row, &found);
        if (e && !reader->is_row_broken) return e;
        if (e) TRY(bad_rows_leave_out(bad_rows, e));
        if (!e && found) return fail(ERR_INPUT, "%s: changed while it is read", reader->name);
    }
    return OK;
}

/* ---- one file after the other ---- */

struct chain {
    struct row_reader reader; /* first: the public part */
    struct data_parts *parts;
    const struct source_spec *source;
    struct format_context context;
    bool is_stored; /* the files' readers make columns themselves */
    struct row_reader *now;
    const int *wanted; /* [wanted_count] indices of cells; NULL: all */
    int wanted_count;
    bool has_row; /* of the open file */
    int64_t rows; /* including those skipped */
};

static void close_now(struct chain *c)
{
    if (c->now) c->now->calls->close(c->now);
    c->now = NULL;
}

/* Skips a file of broken rows only, if cells are not known from any file yet. */
static err pass_broken(struct chain *c)
{
    if (!c->now || c->parts->is_read) return OK;
    TRY(parts_pass_broken(c->now, c->context.bad_rows));
    parts_note_empty(c->parts, c->parts->opened - 1);
    close_now(c);
    return OK;
}

static err narrow_now(struct chain *c)
{
    if (!c->now || !c->wanted || !c->now->calls->narrow) return OK;
    return c->now->calls->narrow(c->now, c->wanted, c->wanted_count);
}

/* Opens the next file that has rows; none: c->now stays NULL. */
static err open_next(struct chain *c)
{
    struct data_parts *parts = c->parts;
    while (!c->now && parts->opened < parts->count) {
        const int part = parts->opened;
        TRY(parts_read(parts, c->source, &c->context, part, c->is_stored, &c->now));
        const char *name = c->now ? c->now->name : parts->files[0].at[part];
        const struct bad_rows *bad_rows = c->context.bad_rows;
        if (!c->now) parts_note_empty(parts, part);
        set_opened(parts, name, name, bad_rows ? bad_rows->left_out.kept : c->rows,
                   count_left(&c->context));
        c->reader.name = parts->at[part].name;
        TRY(pass_broken(c));
        TRY(narrow_now(c));
    }
    return OK;
}

static err next_reader(struct chain *c)
{
    close_now(c);
    c->has_row = false;
    return open_next(c);
}

/* Skips a row before the first wanted one, but counts it for row numbers. */
static err pass_row(struct chain *c, bool *ret_found)
{
    struct row_place place;
    TRY(c->now->calls->skip(c->now, &place, ret_found));
    if (*ret_found) bad_rows_keep(c->context.bad_rows);
    return OK;
}

/* The next good row of the open file */
static err next_good(struct chain *c, struct row *ret, bool *ret_found)
{
    *ret_found = false;
    if (c->now && c->rows < c->reader.passed) return pass_row(c, ret_found);
    while (c->now) {
        const err e = c->now->calls->next(c->now, ret, ret_found);
        if (!e || !c->now->is_row_broken) return e;
        TRY(bad_rows_leave_out(c->context.bad_rows, e));
    }
    return OK;
}

static void note_if_empty(const struct chain *c)
{
    if (c->now && !c->has_row) parts_note_empty(c->parts, c->parts->opened - 1);
}

/* The next good row of all files */
static err next_of_all(struct chain *c, struct row *ret, bool *ret_found)
{
    TRY(next_good(c, ret, ret_found));
    while (!*ret_found && c->parts->opened < c->parts->count) {
        note_if_empty(c);
        TRY(next_reader(c));
        TRY(next_good(c, ret, ret_found));
    }
    c->rows += *ret_found;
    c->has_row |= *ret_found;
    return OK;
}

/* After the last file: checks the labels of all */
static err check_labels(const struct chain *c)
{
    const struct data_parts *parts = c->parts;
    const size_t form = ((const struct format *)c->source->format.kind->descriptor)->label_form;
    char name[FILE_NAMES_MAX];
    if (!form || !c->context.labels) return OK;
    const int used = snprintf(name, sizeof name, "%.1000s", parts->at[0].name);
    if (parts->count > 1)
        snprintf(name + used, sizeof name - (size_t)used, " and %d more", parts->count - 1);
    return label_check_seen((void *)((char *)c->source->format.attributes + form), &parts->labels,
                            name);
}

/* Labels are checked only if no rows were skipped. */
static err end_rows(const struct chain *c)
{
    int64_t left;
    note_if_empty(c);
    TRY(parts_end(c->parts, c->rows));
    if (c->reader.passed == 0) return check_labels(c);
    return c->rows == 0 ? OK : source_narrow(c->source, c->reader.name, c->rows, &left);
}

static err next_row(struct row_reader *reader, struct row *ret, bool *ret_found)
{
    struct chain *c = (struct chain *)reader;
    *ret_found = !has_enough(c->source, c->rows);
    if (!*ret_found) return OK;
    do {
        TRY(next_of_all(c, ret, ret_found));
    } while (*ret_found && c->rows <= c->reader.passed);
    return *ret_found ? OK : end_rows(c);
}

static err narrow(struct row_reader *reader, const int *cells, int count)
{
    struct chain *c = (struct chain *)reader;
    c->wanted = cells;
    c->wanted_count = count;
    return narrow_now(c);
}

static err make_stored(const struct row_reader *reader, const struct row *row, void *labels,
                       void *features)
{
    const struct chain *c = (const struct chain *)reader;
    return c->now->calls->make(c->now, row, labels, features);
}

/* Does not free the parts: the dataset may need them. */
static void close_chain(struct row_reader *reader)
{
    struct chain *c = (struct chain *)reader;
    close_now(c);
    free(c);
}

/* If broken rows may be left out, `skip` counts good rows, so all must be read: 0. */
static int64_t rows_to_pass(const struct chain *c)
{
    return bad_rows_are_allowed(c->context.bad_rows) ? 0 : c->source->skip;
}

/* Describes the chain by its first reader; names are copies in the parts, since readers are closed
 * as files end. */
static err open_chain(struct chain *c)
{
    static const struct row_calls calls = {
        .next = next_row, .close = close_chain, .narrow = narrow, .make = make_stored};
    TRY(open_next(c));
    const char *name = c->reader.name;
    if (!c->now) TRY(parts_end(c->parts, 0));
    if (!c->now && !c->context.has_other_parts)
        return fail(ERR_INPUT, "%s: the file has no row of data", name);
    c->reader = c->now ? *c->now : (struct row_reader){.is_empty = true};
    c->reader.calls = &calls;
    c->reader.name = name;
    c->reader.cell_names = c->parts->cell_names.at;
    c->reader.feature_names = c->parts->feature_names.at;
    if (c->reader.stored) c->reader.stored = c->parts->stored;
    if (c->reader.use) c->reader.use = arena_string(&c->parts->arena, c->reader.use);
    c->reader.input = NULL;
    c->reader.passed = rows_to_pass(c);
    return OK;
}

static err open_rows(struct data_parts *parts, const struct source_spec *source,
                     const struct format_context *context, bool is_stored, struct row_reader **ret)
{
    struct chain *c = calloc(1, sizeof *c);
    if (!c) return fail(ERR_MEMORY, "no memory to read rows");
    *c = (struct chain){
        .parts = parts, .source = source, .context = *context, .is_stored = is_stored};
    if (!context->has_other_parts) c->context.labels = &parts->labels;
    const err e = open_chain(c);
    if (e)
        close_chain(&c->reader);
    else
        *ret = &c->reader;
    return e;
}

static err read_columns(struct data_parts *parts, const struct source_spec *source,
                        const struct format_context *context, bool is_stored, struct dataset *ret)
{
    struct row_reader *reader = NULL;
    TRY(open_rows(parts, source, context, is_stored, &reader));
    const int64_t passed = reader->passed;
    TRY(columns_open(reader, context, ret));
    ret->first_row = passed;
    return OK;
}

err parts_open_columns(const struct source_spec *source, const struct format_context *context,
                       bool is_stored, struct dataset *ret)
{
    struct data_parts *parts;
    TRY(parts_find(source, context, &parts));
    const err e = read_columns(parts, source, context, is_stored, ret);
    if (!e && parts->count > 1)
        name_dataset(parts, ret);
    else
        parts_free(parts);
    return e;
}

err parts_open_rows(const struct source_spec *source, const struct format_context *context,
                    struct data_parts **ret_parts, struct row_reader **ret)
{
    const struct format *format = source->format.kind->descriptor;
    *ret_parts = NULL;
    if (!format->read) return fail(ERR_INPUT, "its rows have no cells with names");
    if (!parts_are_files(format)) return format->read(source->format.attributes, context, ret);
    TRY(parts_find(source, context, ret_parts));
    return open_rows(*ret_parts, source, context, false, ret);
}
