/* pick.c - reads single rows of a matrix, from whatever slices hold them. */
#include <stdatomic.h>
#include <stdlib.h>

#include "core/base/ascending.h"
#include "core/base/files/mapped.h"
#include "core/base/files/url.h"
#include "core/train/checkpoint/bundle/bundle_inside.h"

enum { MAPPED_BYTES_MAX = 16 << 10 };

struct picking {
    const struct bundle_entry *entry;
    const int64_t *rows;
    int64_t size; /* of an element */
    uint8_t *ret;
};

/* How many rows from `at` on are consecutive in the file and in ret. */
static int64_t run_of(const struct picking *p, const struct bundle_box *box, int64_t at,
                      int64_t end)
{
    int64_t count = 1;
    if (box->length[1] != p->entry->shape.dim[1]) return count;
    while (at + count < end && p->rows[at + count] == p->rows[at] + count) count++;
    return count;
}

/* A file that rows are picked from */
struct picked_file {
    struct file_reader reader;
    struct mapped_file mapped; /* if it can be mapped */
    char *path;                /* the reader's */
};

/* Long ranges are read by system calls, which read ahead. */
static err read_picked(const struct picked_file *file, const struct index_record *r, int64_t offset,
                       void *to, size_t bytes)
{
    struct file_reader source = file->reader;
    const uint64_t until = (uint64_t)offset + bytes;
    if (until <= file->mapped.bytes && bytes < MAPPED_BYTES_MAX) {
        const err e = mapped_read(&file->mapped, (uint64_t)offset, to, bytes);
        return e ? fail_prefix(e, "%s", file->path) : OK;
    }
    source.until = r->offset + r->bytes;
    return file_reader_read(&source, offset, to, bytes);
}

/* Copies rows `at` .. end - 1, which the slice has, as far as its columns go. */
static err pick_stored(const struct picking *p, const struct stored *stored, int64_t at,
                       int64_t end, const struct picked_file *file)
{
    const struct bundle_box *box = &stored->box;
    const int64_t own = box->length[1] * p->size, all = p->entry->shape.dim[1] * p->size;
    for (int64_t count; at < end; at += count) {
        const int64_t from = stored->record->offset + (p->rows[at] - box->start[0]) * own;
        count = run_of(p, box, at, end);
        TRY(read_picked(file, stored->record, from, p->ret + at * all + box->start[1] * p->size,
                        (size_t)(count * own)));
    }
    return OK;
}

/* ---- files ---- */

static void close_picked(struct picked_file *file)
{
    if (!file) return;
    file_reader_close(&file->reader);
    mapped_close(&file->mapped);
    free(file->path);
    free(file);
}

void bundle_close_picked(struct bundle *b)
{
    for (int i = 0; i < PICKED_FILES_MAX; i++) close_picked(atomic_load(&b->picked[i]));
}

static err open_picked(const struct bundle *b, const struct index_record *r,
                       struct picked_file **ret)
{
    struct picked_file *file = calloc(1, sizeof *file);
    const err e = file ? bundle_open_data(b, r, &file->reader, &file->path)
                       : fail(ERR_MEMORY, "%s: no memory for a file", b->prefix);
    if (e) {
        free(file);
        return e;
    }
    if (!path_is_url(b->prefix)) file->mapped = mapped_open(file->path);
    *ret = file;
    return OK;
}

/* If two threads open the same file, the first one's is kept. Behind a URL two threads must not
 * share an open file. */
static err find_picked(struct bundle *b, const struct index_record *r, struct picked_file **ret,
                       bool *ret_is_kept)
{
    struct picked_file *before = NULL;
    *ret_is_kept = r->shard < PICKED_FILES_MAX && !path_is_url(b->prefix);
    if (*ret_is_kept && (*ret = atomic_load(&b->picked[r->shard]))) return OK;
    TRY(open_picked(b, r, ret));
    if (!*ret_is_kept || atomic_compare_exchange_strong(&b->picked[r->shard], &before, *ret))
        return OK;
    close_picked(*ret);
    *ret = before;
    return OK;
}

static err pick_part(struct bundle *b, const struct picking *p, int64_t count,
                     const struct stored *stored)
{
    const int64_t start = stored->box.start[0];
    const int64_t first = ascending_place(p->rows, count, start);
    const int64_t end = ascending_place(p->rows, count, start + stored->box.length[0]);
    struct picked_file *file;
    bool is_kept;
    if (first == end) return OK;
    TRY(find_picked(b, stored->record, &file, &is_kept));
    const err e = pick_stored(p, stored, first, end, file);
    if (!is_kept) close_picked(file);
    return e;
}

err bundle_pick_rows(struct bundle *b, const struct bundle_entry *entry, const int64_t *rows,
                     int64_t count, void *ret)
{
    const struct stored_list list = bundle_stored(b, entry);
    const struct picking p = {entry, rows, (int64_t)bundle_dtype_size(entry->dtype), ret};
    const bool is_inside = count == 0 || (rows[0] >= 0 && rows[count - 1] < entry->shape.dim[0]);
    if (entry->shape.rank != 2 || p.size == 0 || !is_inside)
        return fail(ERR_INPUT, "%s: %s: rows that are wanted are not inside of it", b->prefix,
                    entry->name);
    for (int i = 0; i < list.count; i++) {
        const err e = pick_part(b, &p, count, &list.at[i]);
        if (e) return fail_prefix(e, "%s", entry->name);
    }
    return OK;
}

static err take_nothing(void *context, int64_t first_row, int64_t rows, const void *elements)
{
    (void)context, (void)first_row, (void)rows, (void)elements;
    return OK;
}

err bundle_check(struct bundle *b, const struct bundle_entry *entry)
{
    return bundle_read_rows(b, entry, NULL, &(struct bundle_taker){NULL, take_nothing});
}
