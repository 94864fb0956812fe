/* sorted_write.c - writes a table, with the same bytes as TensorFlow. */
#include "core/base/crc32c.h"
#include "core/train/checkpoint/bundle/sorted.h"

static size_t common_prefix(struct view a, struct view b)
{
    size_t bytes = 0;
    while (bytes < view_bytes(a) && bytes < view_bytes(b) && a.at[bytes] == b.at[bytes]) bytes++;
    return bytes;
}

/* A key is written without the prefix that it shares with the one before, except at every
 * interval-th entry, where readers may start. */
static void block_add(struct block_writer *b, struct view key, struct view value)
{
    size_t shared = 0;
    if (b->entries % b->interval == 0)
        buffer_fixed32(&b->restarts, (uint32_t)b->bytes.used);
    else
        shared = common_prefix(buffer_view(&b->last_key), key);
    const size_t fresh = view_bytes(key) - shared;
    const uint8_t *from = shared ? key.at + shared : key.at; /* an empty key may be at NULL */
    buffer_varint(&b->bytes, shared);
    buffer_varint(&b->bytes, fresh);
    buffer_varint(&b->bytes, view_bytes(value));
    buffer_put(&b->bytes, from, fresh);
    buffer_put(&b->bytes, value.at, view_bytes(value));
    b->last_key.used = shared;
    buffer_put(&b->last_key, from, fresh);
    b->entries++;
}

/* Moves the block to the end of the file; its handle is appended to ret_handle. */
static void block_end(struct block_writer *b, struct buffer *file, struct buffer *ret_handle)
{
    if (b->entries == 0) buffer_fixed32(&b->restarts, 0);
    buffer_put(&b->bytes, b->restarts.at, b->restarts.used);
    buffer_fixed32(&b->bytes, (uint32_t)(b->restarts.used / 4));
    buffer_varint(ret_handle, file->used);
    buffer_varint(ret_handle, b->bytes.used);
    buffer_byte(&b->bytes, TABLE_PLAIN);
    buffer_fixed32(&b->bytes, crc32c_mask(crc32c(b->bytes.at, b->bytes.used)));
    buffer_put(file, b->bytes.at, b->bytes.used);
    file->is_short |= b->bytes.is_short || b->restarts.is_short || b->last_key.is_short;
    b->bytes.used = b->restarts.used = 0;
    b->entries = 0;
}

static void block_drop(struct block_writer *b)
{
    buffer_drop(&b->bytes);
    buffer_drop(&b->restarts);
    buffer_drop(&b->last_key);
}

/* Finds a short key that is not before `last` and, if there is a next one, before that. */
static void separate(struct buffer *last, const struct view *next)
{
    if (next) {
        const size_t i = common_prefix(buffer_view(last), *next);
        if (i >= last->used || i >= view_bytes(*next)) return;
        if (last->at[i] == 0xff || last->at[i] + 1 >= next->at[i]) return;
        last->at[i]++;
        last->used = i + 1;
        return;
    }
    for (size_t i = 0; i < last->used; i++) {
        if (last->at[i] == 0xff) continue;
        last->at[i]++;
        last->used = i + 1;
        return;
    }
}

/* Adds the finished block to the index, which needs the key that follows the block. */
static void index_block(struct sorted_writer *t, const struct view *next)
{
    struct buffer *last = &t->data.last_key; /* the next block begins without it */
    separate(last, next);
    block_add(&t->index, buffer_view(last), buffer_view(&t->handle));
    t->handle.used = 0;
}

void sorted_begin(struct sorted_writer *t)
{
    *t = (struct sorted_writer){.data.interval = TABLE_RESTART, .index.interval = 1};
}

void sorted_add(struct sorted_writer *t, const struct sorted_item *item)
{
    if (t->handle.used > 0) index_block(t, &item->key);
    block_add(&t->data, item->key, item->value);
    if (t->data.bytes.used + t->data.restarts.used + 4 >= TABLE_BLOCK_BYTES)
        block_end(&t->data, &t->file, &t->handle);
}

/* The handles of the metadata block, which is always empty, and of the index. */
static void add_footer(struct sorted_writer *t)
{
    struct buffer handles = {0};
    block_end(&t->data, &t->file, &handles);
    block_end(&t->index, &t->file, &handles);
    while (!handles.is_short && handles.used < TABLE_HANDLES_BYTES) buffer_byte(&handles, 0);
    buffer_fixed64(&handles, TABLE_MAGIC);
    buffer_put(&t->file, handles.at, handles.used);
    t->file.is_short |= handles.is_short;
    buffer_drop(&handles);
}

err sorted_end(struct sorted_writer *t, struct buffer *ret)
{
    if (t->data.entries > 0) block_end(&t->data, &t->file, &t->handle);
    if (t->handle.used > 0) index_block(t, NULL);
    add_footer(t);
    const bool is_short = t->file.is_short || t->handle.is_short;
    if (is_short) buffer_drop(&t->file);
    if (!is_short) *ret = t->file;
    block_drop(&t->data);
    block_drop(&t->index);
    buffer_drop(&t->handle);
    return is_short ? fail(ERR_MEMORY, "no memory for the index of a checkpoint") : OK;
}
