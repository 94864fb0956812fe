/* index.c - see index.h. */
#include "core/train/checkpoint/bundle/bundle_inside.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/train/checkpoint/bundle/ordered.h"
#include "core/train/checkpoint/bundle/sorted.h"

/* Limits, because a record takes far more memory than the bytes of the file that it comes from. */
enum { RECORDS_ROOM_MIN = 64, RECORDS_MAX = 1 << 21 };

static err no_memory(void)
{
    return fail(ERR_MEMORY, "no memory for the index of a checkpoint");
}

void index_drop(struct index *index)
{
    buffer_drop(&index->keys);
    free(index->records);
    free(index->slices);
    *index = (struct index){0};
}

const char *index_key(const struct index *index, const struct index_record *r)
{
    return (const char *)index->keys.at + r->key;
}

bool index_is_slice(const struct index *index, const struct index_record *r)
{
    return index_key(index, r)[0] == '\0';
}

const char *index_key_text(const struct index *index, const struct index_record *r,
                           char ret[KEY_TEXT_MAX])
{
    const bool is_slice = index_is_slice(index, r);
    snprintf(ret, KEY_TEXT_MAX, "%s%s", is_slice ? "a slice of " : "",
             index_key(index, r) + is_slice); /* in a key, the name ends with a zero byte */
    return ret;
}

/* Doubles the room; an entry of a file cannot demand more, because each slice takes bytes of the
 * file. */
err index_add_slice(struct index *index, const struct bundle_box *box)
{
    if (index->slice_count == index->slice_room) {
        const size_t room = index->slice_room ? index->slice_room * 2 : RECORDS_ROOM_MIN;
        struct bundle_box *slices = reallocarray(index->slices, room, sizeof *slices);
        if (!slices) return no_memory();
        index->slices = slices;
        index->slice_room = room;
    }
    index->slices[index->slice_count++] = *box;
    return OK;
}

static err make_room(struct index *index)
{
    if (index->count < index->room) return OK;
    if (index->room >= RECORDS_MAX)
        return fail(ERR_INPUT, "more than %d tensors and slices of tensors", (int)RECORDS_MAX);
    const int room = index->room ? index->room * 2 : RECORDS_ROOM_MIN;
    struct index_record *records = reallocarray(index->records, (size_t)room, sizeof *records);
    if (!records) return no_memory();
    index->records = records;
    index->room = room;
    return OK;
}

err index_add(struct index *index, struct view key, const struct index_record *record,
              const struct bundle_box *slices)
{
    TRY(make_room(index));
    struct index_record r = *record;
    r.key = index->keys.used;
    r.key_bytes = view_bytes(key);
    r.order = index->count;
    buffer_put(&index->keys, key.at, r.key_bytes);
    buffer_byte(&index->keys, 0);
    if (index->keys.is_short) return no_memory();
    if (slices) r.first_slice = index->slice_count;
    for (int i = 0; slices && i < r.slice_count; i++) TRY(index_add_slice(index, &slices[i]));
    index->records[index->count++] = r;
    return OK;
}

/* The key begins with a zero, which no name has, so that slices sort before names. */
void index_slice_key(struct buffer *b, const char *name, int rank, const struct bundle_box *box)
{
    buffer_ordered_unsigned(b, 0);
    buffer_ordered_text(b, name);
    buffer_ordered_unsigned(b, (uint64_t)rank);
    for (int i = 0; i < rank; i++) {
        buffer_ordered_signed(b, box->start[i]);
        buffer_ordered_signed(b, box->length[i]);
    }
}

/* Valid until the next record is added: keys move when they grow. */
static struct view key_of(const struct index *index, const struct index_record *r)
{
    const uint8_t *at = index->keys.at + r->key;
    return (struct view){at, at + r->key_bytes};
}

static int compare(struct view a, struct view b)
{
    const size_t shorter = view_bytes(a) < view_bytes(b) ? view_bytes(a) : view_bytes(b);
    const int order = memcmp(a.at, b.at, shorter);
    return order ? order : (view_bytes(a) > view_bytes(b)) - (view_bytes(a) < view_bytes(b));
}

const struct index_record *index_find(const struct index *index, struct view key)
{
    int low = 0, high = index->count;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        const int order = compare(key_of(index, &index->records[middle]), key);
        if (order == 0) return &index->records[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Equal keys stay in order of arrival, so that slices are listed in that order. */
static int compare_records(const void *a, const void *b, void *index)
{
    const struct index_record *x = a, *y = b;
    const int order = compare(key_of(index, x), key_of(index, y));
    return order ? order : x->order - y->order;
}

static bool has_same_shape(const struct index_record *a, const struct index_record *b)
{
    return a->shape.rank == b->shape.rank &&
           memcmp(a->shape.dim, b->shape.dim, (size_t)a->shape.rank * sizeof *a->shape.dim) == 0;
}

/* For two records of one key: ERR_INPUT unless both are slices of one tensor. */
static err check_same(const struct index *index, const struct index_record *a,
                      const struct index_record *b)
{
    char text[KEY_TEXT_MAX];
    index_key_text(index, a, text);
    if (a->slice_count == 0 || b->slice_count == 0)
        return fail(ERR_INPUT, "%s is there twice", text);
    if (a->dtype != b->dtype || !has_same_shape(a, b))
        return fail(ERR_INPUT, "%s has slices of tensors that differ in shape or type", text);
    return OK;
}

/* Rebuilds the list of slices for the sorted records, so that those of one record are contiguous.
 */
static err fold(struct index *index, struct bundle_box *slices)
{
    int count = 0;
    size_t slice_count = 0;
    for (int i = 0; i < index->count; i++) {
        struct index_record *r = &index->records[i];
        struct index_record *last = count > 0 ? &index->records[count - 1] : NULL;
        const bool is_same = last && compare(key_of(index, last), key_of(index, r)) == 0;
        if (is_same) TRY(check_same(index, last, r));
        if (r->slice_count > 0)
            memcpy(slices + slice_count, index->slices + r->first_slice,
                   (size_t)r->slice_count * sizeof *slices);
        r->first_slice = slice_count;
        slice_count += (size_t)r->slice_count;
        if (is_same)
            last->slice_count += r->slice_count;
        else
            index->records[count++] = *r;
    }
    index->count = count;
    return OK;
}

err index_join(struct index *index, const char *where)
{
    struct bundle_box *slices = calloc(index->slice_count + 1, sizeof *slices);
    if (!slices) return no_memory();
    if (index->count > 0)
        qsort_r(index->records, (size_t)index->count, sizeof *index->records, compare_records,
                index);
    const err e = fold(index, slices);
    if (e) {
        free(slices);
        return fail_prefix(e, "%s", where);
    }
    free(index->slices);
    index->slices = slices;
    index->slice_room = index->slice_count + 1;
    return OK;
}

err index_write(const struct index *index, struct buffer *ret)
{
    static const uint8_t nothing[1];
    struct sorted_writer table;
    struct buffer value = {0};
    sorted_begin(&table);
    index_put_header(&value, index->shards);
    sorted_add(&table, &(struct sorted_item){{nothing, nothing}, buffer_view(&value)});
    for (int i = 0; i < index->count; i++) {
        const struct index_record *r = &index->records[i];
        value.used = 0;
        index_put_record(&value, index, r);
        sorted_add(&table, &(struct sorted_item){key_of(index, r), buffer_view(&value)});
    }
    table.file.is_short |= value.is_short;
    buffer_drop(&value);
    return sorted_end(&table, ret);
}

err index_save(const struct index *index, const char *path, const char *beside, struct output *ret)
{
    struct buffer bytes = {0};
    struct output output = {0};
    TRY(index_write(index, &bytes));
    err e = output_open(path, beside, &output);
    if (!e) e = output_write(&output, bytes.at, bytes.used);
    if (!e) e = output_sync(&output);
    buffer_drop(&bytes);
    if (e) output_drop(&output);
    if (!e) *ret = output;
    return e;
}

/* A name must be text; of a slice's key only the name is checked, because the whole key is compared
 * with the one that its tensor implies. */
static err check_key(const struct index *index, struct view key)
{
    const bool is_slice = key.at[0] == 0;
    if (!is_slice && view_bytes(key) > BUNDLE_NAME_MAX)
        return fail(ERR_INPUT, "a name of %zu bytes, at most %d are possible", view_bytes(key),
                    (int)BUNDLE_NAME_MAX);
    if (!is_slice && memchr(key.at, 0, view_bytes(key)))
        return fail(ERR_INPUT, "a name with a zero byte");
    return OK;
}

static err read_record(const struct sorted_item *item, struct index *index)
{
    struct index_record r;
    if (item->key.at == item->key.end) return fail(ERR_INPUT, "an entry without a name");
    TRY(check_key(index, item->key));
    const err e = index_get_record(item->value, index, &r);
    if (e) {
        const char *name = (const char *)item->key.at + (item->key.at[0] == 0);
        const int bytes = (int)strnlen(name, (size_t)((const char *)item->key.end - name));
        return fail_prefix(e, "%.*s", bytes < KEY_TEXT_MAX ? bytes : KEY_TEXT_MAX, name);
    }
    return index_add(index, item->key, &r, NULL);
}

/* The header's key is empty and so always the first. */
static err read_all(struct sorted_reader *table, struct index *index)
{
    struct sorted_item item;
    TRY(sorted_next(table, &item));
    if (!item.key.at || item.key.at != item.key.end)
        return fail(ERR_INPUT, "%s: not a checkpoint index: it has no header", table->path);
    err e = index_get_header(item.value, &index->shards);
    while (!e) {
        TRY(sorted_next(table, &item));
        if (!item.key.at) return OK;
        e = read_record(&item, index);
    }
    return fail_prefix(e, "%s", table->path);
}

err index_read(const char *path, struct index *ret)
{
    struct sorted_reader table;
    struct index index = {0};
    err e = sorted_open(path, &table);
    if (!e) e = read_all(&table, &index);
    sorted_close(&table);
    if (e) {
        index_drop(&index);
        return e;
    }
    *ret = index;
    return OK;
}
