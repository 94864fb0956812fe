/* sorted_read.c - reads a table of any origin: uses no data before their checksum was compared, and
 * no length before it was checked to fit. */
#include "core/train/checkpoint/bundle/sorted.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/crc32c.h"
#include "core/train/checkpoint/bundle/file.h"

enum { FOOTER_BYTES = TABLE_HANDLES_BYTES + 8 };

/* Keys of a block grow only by bytes stored in it, and within TABLE_RESTART entries there is a full
 * key, so that no writer produces more than this. */
static err count_key(struct sorted_reader *t)
{
    t->keys_bytes += t->data.key_bytes;
    if (t->keys_bytes <= (uint64_t)TABLE_RESTART * t->bytes) return OK;
    return fail(ERR_INPUT, "%s: the index is damaged: keys that are longer than it can hold",
                t->path);
}

static err damaged(const struct sorted_reader *t, const char *what, uint64_t at)
{
    return fail(ERR_INPUT, "%s: the index is damaged: %s at byte %llu", t->path, what,
                (unsigned long long)at);
}

/* The view of the entries of the block that the handle names. */
static err open_block(struct sorted_reader *t, struct view *handle, struct block_reader *ret)
{
    uint64_t at, bytes, restarts;
    uint32_t stored = 0, restart_count = 0;
    if (!view_varint(handle, &at) || !view_varint(handle, &bytes))
        return fail(ERR_INPUT, "%s: the index is damaged: no place of a block", t->path);
    const uint64_t end = t->bytes - FOOTER_BYTES - TABLE_TRAILER_BYTES;
    if (t->bytes < FOOTER_BYTES + TABLE_TRAILER_BYTES || at > end || bytes > end - at || bytes < 4)
        return damaged(t, "a block outside of the file", at);

    const uint8_t *block = t->file + at;
    struct view trailer = {block + bytes + 1, block + bytes + TABLE_TRAILER_BYTES};
    const uint8_t kind = block[bytes];
    if (!view_fixed32(&trailer, &stored) || stored != crc32c_mask(crc32c(block, bytes + 1)))
        return damaged(t, "the checksum differs of the block", at);
    if (kind == TABLE_SNAPPY)
        return fail(ERR_INPUT, "%s: the index is compressed with snappy, which is not read here",
                    t->path);
    if (kind != TABLE_PLAIN) return damaged(t, "an unknown kind of block", at);

    struct view count = {block + bytes - 4, block + bytes};
    restarts = view_fixed32(&count, &restart_count) ? (uint64_t)restart_count * 4 + 4 : UINT64_MAX;
    if (restarts > bytes) return damaged(t, "restarts that do not fit into the block", at);
    ret->left = (struct view){block, block + bytes - restarts};
    ret->is_at_start = true;
    return OK;
}

/* Whether the key that shares this many bytes with the one before comes after it. */
static bool comes_after(const struct block_reader *b, uint64_t shared, struct view fresh)
{
    const size_t before = b->key_bytes - shared, now = view_bytes(fresh);
    const int order = memcmp(fresh.at, b->key + shared, now < before ? now : before);
    return order ? order > 0 : now > before;
}

/* Assembles the key and advances the block past the value. */
static bool next_entry(struct block_reader *b, bool is_first_of_all, struct view *ret_value)
{
    uint64_t shared, fresh_bytes, value_bytes;
    struct view fresh;
    if (!view_varint(&b->left, &shared) || !view_varint(&b->left, &fresh_bytes) ||
        !view_varint(&b->left, &value_bytes) || !view_cut(&b->left, fresh_bytes, &fresh) ||
        !view_cut(&b->left, value_bytes, ret_value))
        return false;
    if (shared > (b->is_at_start ? 0 : b->key_bytes)) return false;
    if (fresh_bytes > TABLE_KEY_MAX - shared) return false;
    if (!is_first_of_all && !comes_after(b, shared, fresh)) return false;
    memcpy(b->key + shared, fresh.at, fresh_bytes);
    b->key_bytes = shared + fresh_bytes;
    b->is_at_start = false;
    return true;
}

/* The footer has a fixed place, at the end; everything else is found from there. */
static err open_footer(struct sorted_reader *t)
{
    if (t->bytes < FOOTER_BYTES)
        return fail(ERR_INPUT, "%s: not a checkpoint index: %zu bytes, and the footer alone has %d",
                    t->path, t->bytes, (int)FOOTER_BYTES);
    const uint8_t *footer = t->file + t->bytes - FOOTER_BYTES;
    struct view handles = {footer, footer + TABLE_HANDLES_BYTES};
    struct view end = {footer + TABLE_HANDLES_BYTES, footer + FOOTER_BYTES};
    uint64_t magic = 0;
    if (!view_fixed64(&end, &magic) || magic != TABLE_MAGIC)
        return fail(ERR_INPUT, "%s: not a checkpoint index, or truncated: its last bytes differ",
                    t->path);
    TRY(open_block(t, &handles, &t->data)); /* metadata: checked, not used */
    t->data.left.at = t->data.left.end;
    return open_block(t, &handles, &t->index);
}

err sorted_open(const char *path, struct sorted_reader *t)
{
    t->path = path;
    t->file = NULL;
    t->keys_bytes = 0;
    t->index.key_bytes = t->data.key_bytes = 0;
    t->index.left = t->data.left = (struct view){0};
    TRY(bundle_file_load(path, TABLE_BYTES_MAX, &t->file, &t->bytes));
    return open_footer(t);
}

void sorted_close(struct sorted_reader *t)
{
    free(t->file);
    t->file = NULL;
}

/* Blocks in the order of the index; skips empty ones. */
static err next_block(struct sorted_reader *t)
{
    struct view handle;
    while (t->data.left.at == t->data.left.end && t->index.left.at < t->index.left.end) {
        if (!next_entry(&t->index, t->index.key_bytes == 0, &handle))
            return damaged(t, "an entry of the block list", (uint64_t)(t->index.left.at - t->file));
        TRY(open_block(t, &handle, &t->data));
    }
    return OK;
}

err sorted_next(struct sorted_reader *t, struct sorted_item *ret)
{
    struct view value;
    TRY(next_block(t));
    *ret = (struct sorted_item){0};
    if (t->data.left.at == t->data.left.end) return OK;
    if (!next_entry(&t->data, t->keys_bytes == 0, &value))
        return damaged(t, "an entry that cannot be", (uint64_t)(t->data.left.at - t->file));
    TRY(count_key(t));
    *ret = (struct sorted_item){{t->data.key, t->data.key + t->data.key_bytes}, value};
    return OK;
}
