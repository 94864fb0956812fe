/* row_files.c - see row_files.h. */
#include "core/data/stream/row_files.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/fingerprint.h"
#include "core/base/log.h"

enum { LOOK_ROWS = 64 };

/* ---- one reader ---- */

static err open_reader(struct row_files *f, int file, struct row_reader **ret)
{
    TRY(parts_read(f->parts, f->source, &f->context, file, f->is_stored, ret));
    if (!*ret || (*ret)->calls->skip) return OK;
    (*ret)->calls->close(*ret);
    return fail(ERR_INPUT, "\"stream\": its rows come from no file");
}

static void new_rows(const struct columns *columns, int64_t rows, struct arena *arena, void **to)
{
    int count;
    const struct column *made = columns_made(columns, &count);
    for (int i = 0; i < count; i++)
        to[i] = arena_new(arena, (size_t)rows * column_row_bytes(&made[i]));
}

/* ---- indexes ---- */

/* Equal in all tasks that read this file with the same settings. */
static uint64_t index_key(const struct row_files *f, const struct row_reader *reader)
{
    const char *format = f->source->format.kind->object->name;
    char *path = path_is_url(reader->name) ? NULL : realpath(reader->name, NULL);
    const char *name = path ? path : reader->name;
    uint64_t key = fingerprint_join(fingerprint(name, strlen(name)), reader->cut);
    key = fingerprint_join(key, fingerprint(format, strlen(format)));
    free(path);
    return key;
}

/* Which rows are broken depends on the columns: such an index is never saved. */
static err leave_out(struct row_files *f, struct indexed_file *file, struct row_reader *reader)
{
    void *to[COLUMNS_MAX];
    struct arena arena = {0};
    new_rows(f->columns, 1, &arena, to);
    const err e = row_index_leave_out(&file->index, reader, f->columns, to, &f->bad_rows);
    arena_free(&arena);
    return e;
}

static err index_rows(struct row_files *f, struct indexed_file *file, struct row_reader *reader)
{
    const char *folder = f->context.index_folder;
    file->key = index_key(f, reader);
    if (!folder || !row_index_load(folder, file->key, reader, &file->index)) {
        TRY(row_index_make(reader, &file->index));
        file->is_fresh = folder && file->index.rows > 0;
        f->has_fresh |= file->is_fresh;
    }
    return OK;
}

static err name_files(struct row_files *f, const struct row_reader *first, int number)
{
    f->first_file = number;
    const int more = parts_count(f->parts) - 1;
    f->name = more ? arena_format(&f->arena, "%s and %d more", first->name, more)
                   : arena_string(&f->arena, first->name);
    f->use = arena_string(&f->arena, first->use ? first->use : "");
    TRY(columns_new(first, &f->context, &f->columns));
    int count;
    const struct column *made = columns_made(f->columns, &count);
    return format_context_tell(&f->context, made, count);
}

/* Sets the name of the source until a file with good rows sets it. */
static err pass_broken(struct row_files *f, struct row_reader *reader)
{
    f->name = arena_string(&f->arena, reader->name);
    const err e = parts_pass_broken(reader, &f->bad_rows);
    reader->calls->close(reader);
    return e;
}

static err index_file(struct row_files *f, int number)
{
    struct indexed_file *file = &f->files[number];
    struct row_reader *reader = NULL;
    TRY(open_reader(f, number, &reader));
    f->file_count++;
    if (!reader) return OK;
    if (reader->is_all_broken) return pass_broken(f, reader);
    err e = f->columns ? OK : name_files(f, reader, number);
    if (!e) e = index_rows(f, file, reader);
    if (!e) e = parts_head(f->parts, &f->context, number, &file->head);
    if (!e && file->index.rows > 0 && bad_rows_are_allowed(&f->bad_rows))
        e = leave_out(f, file, reader);
    reader->calls->close(reader);
    return e;
}

/* Whether these rows are all that skip and take need. */
static bool has_enough(const struct row_files *f, int64_t rows)
{
    const struct source_spec *s = f->source;
    return s->take > 0 && s->bad_rows == 0 && rows >= s->skip + s->take;
}

static err index_files(struct row_files *f, int64_t *ret_rows)
{
    const int count = parts_count(f->parts);
    f->files = arena_array(&f->arena, (size_t)count, sizeof *f->files);
    *ret_rows = 0;
    for (int i = 0; i < count && !has_enough(f, *ret_rows); i++) {
        TRY(index_file(f, i));
        if (f->files[i].index.rows == 0) parts_note_empty(f->parts, i);
        *ret_rows += f->files[i].index.rows;
    }
    TRY(parts_end(f->parts, *ret_rows));
    if (f->name) TRY(bad_rows_end(&f->bad_rows, f->name, *ret_rows));
    return *ret_rows || f->context.has_other_parts
               ? OK
               : fail(ERR_INPUT, "%s: the file has no row of data", f->name);
}

void row_files_keep(struct row_files *f)
{
    const char *folder = f->context.index_folder;
    if (!f->has_fresh || !folder || access(folder, W_OK)) return;
    f->has_fresh = false;
    for (int i = 0; i < f->file_count; i++) {
        struct indexed_file *file = &f->files[i];
        if (file->is_fresh && !bad_rows_are_allowed(&f->bad_rows))
            row_index_save(folder, file->key, &file->index);
        file->is_fresh = false;
    }
}

/* ---- units ---- */

static void add_unit(struct row_files *f, struct unit unit, int64_t skip, int64_t before)
{
    const int64_t end = before + unit.rows, last = skip + f->rows;
    const int64_t from = before > skip ? before : skip, to = end < last ? end : last;
    if (from >= to) return;
    f->units[f->unit_count++] = (struct unit){unit.file, unit.first + from - before, to - from};
}

static int64_t units_of(const struct row_index *x)
{
    return x->is_packed ? 1 : x->count;
}

static struct unit unit_of(const struct row_files *f, int file, int64_t unit)
{
    const struct row_index *x = &f->files[file].index;
    if (x->is_packed) return (struct unit){file, 0, x->rows};
    const int64_t first = x->blocks[unit].first;
    const int64_t end = unit + 1 < x->count ? x->blocks[unit + 1].first : x->rows;
    return (struct unit){file, first, end - first};
}

static void make_units(struct row_files *f)
{
    int64_t count = 0, before = 0;
    for (int i = 0; i < f->file_count; i++) count += units_of(&f->files[i].index);
    f->units = arena_array(&f->arena, (size_t)count, sizeof *f->units);
    for (int i = 0; i < f->file_count; i++) {
        for (int64_t u = 0; u < units_of(&f->files[i].index); u++) {
            const struct unit unit = unit_of(f, i, u);
            add_unit(f, unit, f->source->skip, before);
            before += unit.rows;
        }
    }
}

/* ---- values that some row must have ---- */

/* Reads rows of one unit until no column awaits anything. */
static err look_in_unit(struct row_cursor *c, const struct unit *unit, void *const *to,
                        int64_t *rows)
{
    for (int64_t i = 0; i < unit->rows && columns_await(c->columns); i += LOOK_ROWS) {
        const int64_t left = unit->rows - i, count = left < LOOK_ROWS ? left : LOOK_ROWS;
        const struct passage passage = {
            .file = unit->file, .first = unit->first + i, .rows = count};
        TRY(row_cursor_read(c, &passage, to));
        *rows += count;
    }
    return OK;
}

/* The same check as for rows in memory. Mostly the first row suffices: all rows are read only if
 * none has what is awaited. */
static err look_for_awaited(struct row_files *f, struct row_cursor *c)
{
    struct arena arena = {0};
    void *to[COLUMNS_MAX];
    int64_t rows = 0;
    err e = OK;
    new_rows(c->columns, LOOK_ROWS, &arena, to);
    for (int64_t i = 0; i < f->unit_count && !e; i++) e = look_in_unit(c, &f->units[i], to, &rows);
    arena_free(&arena);
    return e ? e : columns_check_awaited(c->columns, f->name, c->reader, rows);
}

static err check_awaited(struct row_files *f)
{
    struct row_cursor cursor = {.files = f};
    struct columns *const kept = f->columns; /* may have counted rows already */
    if (f->context.without_labels || f->context.has_other_parts) return OK;
    if (!columns_await(kept)) return OK;
    f->columns = NULL;
    err e = row_cursor_open(&cursor);
    if (!e) e = look_for_awaited(f, &cursor);
    row_cursor_close(&cursor);
    f->columns = kept;
    return e;
}

err row_files_open(struct row_files *f, const struct source_spec *source,
                   const struct format_context *context)
{
    int64_t rows;
    *f = (struct row_files){
        .source = source, .context = *context, .is_stored = !format_context_has_columns(context)};
    TRY(bad_rows_begin(source->bad_rows, &f->bad_rows));
    f->context.bad_rows = &f->bad_rows;
    TRY(parts_find(source, &f->context, &f->parts));
    f->context.only_file = NULL; /* already used, and owned by the caller */
    TRY(index_files(f, &rows));
    f->context.bad_rows = NULL; /* already counted */
    if (rows == 0) return OK;
    TRY(source_narrow(source, f->name, rows, &f->rows));
    make_units(f);
    return check_awaited(f);
}

void row_files_close(struct row_files *f)
{
    for (int i = 0; i < f->file_count; i++) row_index_free(&f->files[i].index);
    columns_free(f->columns);
    parts_free(f->parts);
    left_out_free(&f->bad_rows.left_out);
    arena_free(&f->arena);
    *f = (struct row_files){0};
}

/* ---- reading ---- */

err row_cursor_open(struct row_cursor *c)
{
    struct row_files *f = c->files;
    struct row_reader *reader = NULL;
    c->columns = f->columns;
    f->columns = NULL;
    if (c->columns) return OK;
    TRY(open_reader(f, f->first_file, &reader));
    if (!reader)
        return fail(ERR_INPUT, "%s: changed while it is read: has no row any more", f->name);
    const err e = columns_new(reader, &f->context, &c->columns);
    reader->calls->close(reader);
    return e;
}

static void close_reader(struct row_cursor *c)
{
    if (c->reader) c->reader->calls->close(c->reader);
    c->reader = NULL;
}

void row_cursor_close(struct row_cursor *c)
{
    close_reader(c);
    columns_free(c->columns);
    *c = (struct row_cursor){0};
}

static const struct row_index *index_of(const struct row_cursor *c)
{
    return &c->files->files[c->file].index;
}

/* If the file has changed, that is reported as the reason of any error. */
static err find_reason(const struct row_cursor *c, err e)
{
    const err change = c->reader ? row_index_check(index_of(c), c->reader) : OK;
    return change ? change : e;
}

/* Reads one row; skips broken ones if they may be left out, which have been counted before. */
static err read_row(struct row_cursor *c, void *const *to, int64_t at)
{
    struct row row;
    err e;
    do {
        bool found = true;
        e = c->reader->calls->next(c->reader, &row, &found);
        const bool is_broken = e == ERR_INPUT && c->reader->is_row_broken;
        if (e && !is_broken) return e;
        if (!e && !found)
            return fail(ERR_INPUT, "%s: had %lld rows and ends after %lld", c->reader->name,
                        (long long)index_of(c)->rows, (long long)c->row);
        if (!e) e = columns_make(c->columns, c->reader, &row, to, at);
    } while (e == ERR_INPUT && bad_rows_are_allowed(&c->files->bad_rows));
    c->row += !e;
    return e;
}

/* If broken rows may be left out, rows must be made to notice which are broken. */
static err pass_row(struct row_cursor *c, void *const *to, int64_t at)
{
    struct row_place place;
    bool found;
    if (bad_rows_are_allowed(&c->files->bad_rows)) return read_row(c, to, at);
    TRY(c->reader->calls->skip(c->reader, &place, &found));
    c->row++;
    return OK;
}

static err open_file(struct row_cursor *c, int file)
{
    if (c->reader && c->file == file) return OK;
    close_reader(c);
    c->file = file;
    c->row = INT64_MAX; /* no position yet */
    TRY(open_reader(c->files, file, &c->reader));
    if (!c->reader)
        return fail(ERR_INPUT, "%s: a file changed while it is read: has no row any more",
                    c->files->name);
    return row_index_check(index_of(c), c->reader);
}

/* Seeks to the row's block, unless the cursor is in that block before the row, or anywhere before
 * it in a packed file. */
static err go_to_block(struct row_cursor *c, int64_t row)
{
    const struct row_index *x = index_of(c);
    const struct row_block *block = &x->blocks[row_index_block(x, row)];
    const bool is_before = c->row <= row;
    if (is_before && (c->row >= block->first || x->is_packed)) return OK;
    TRY(c->reader->calls->seek(c->reader, &block->place));
    c->row = block->first;
    return OK;
}

/* Reading ahead ends with the passage's last block. */
static void set_end(struct row_cursor *c, int64_t last)
{
    const struct row_index *x = index_of(c);
    const int64_t next = row_index_block(x, last) + 1;
    if (!x->is_packed)
        input_pause_at(c->reader->input, next < x->count ? x->blocks[next].place.byte : 0);
}

static err read_passage(struct row_cursor *c, const struct passage *passage, void *const *to)
{
    TRY(open_file(c, passage->file));
    TRY(go_to_block(c, passage->first));
    set_end(c, passage->first + passage->rows - 1);
    while (c->row < passage->first) TRY(pass_row(c, to, passage->to));
    for (int64_t i = 0; i < passage->rows; i++) TRY(read_row(c, to, passage->to + i));
    return row_index_check(index_of(c), c->reader);
}

err row_cursor_read(struct row_cursor *c, const struct passage *passage, void *const *to)
{
    const err e = read_passage(c, passage, to);
    if (!e) return OK;
    const err reason = find_reason(c, e);
    close_reader(c);
    return reason;
}
