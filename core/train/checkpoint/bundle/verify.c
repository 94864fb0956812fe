/* verify.c - compares all data of a bundle with their checksums. For most types that is the
 * checksum of the stored bytes; for strings and variants it covers lengths in another encoding than
 * the stored one. */
#include <stdlib.h>

#include "core/base/crc32c.h"
#include "core/train/checkpoint/bundle/bundle_inside.h"

enum { DTYPE_STRING = 7, DTYPE_VARIANT = 21 };
enum { VERIFY_BYTES = 256 << 10 };

/* Reads the data of one record, a buffer at a time. About 256 KiB. */
struct record_stream {
    struct file_reader source;
    int64_t at, end; /* the range of the file not loaded yet */
    struct view loaded;
    uint32_t crc; /* checksum so far */
    uint8_t buffer[VERIFY_BYTES];
};

/* At least one byte, unless all were used. */
static err load(struct record_stream *s)
{
    if (s->loaded.at < s->loaded.end || s->at == s->end) return OK;
    const int64_t left = s->end - s->at;
    const size_t bytes = (size_t)(left < VERIFY_BYTES ? left : VERIFY_BYTES);
    TRY(file_reader_read(&s->source, s->at, s->buffer, bytes));
    s->at += (int64_t)bytes;
    s->loaded = (struct view){s->buffer, s->buffer + bytes};
    return OK;
}

static err ends_early(const struct record_stream *s)
{
    return fail(ERR_INPUT, "%s: the data end within an element", s->source.path);
}

static err add_bytes(struct record_stream *s, uint64_t bytes)
{
    while (bytes > 0) {
        TRY(load(s));
        const size_t there = view_bytes(s->loaded);
        const size_t now = bytes < there ? (size_t)bytes : there;
        if (now == 0) return ends_early(s);
        s->crc = crc32c_extend(s->crc, s->loaded.at, now);
        s->loaded.at += now;
        bytes -= now;
    }
    return OK;
}

/* Reads a varint or a fixed number, which the checksum covers in another encoding. */
static err next_bytes(struct record_stream *s, bool is_varint, uint8_t ret[16], size_t *ret_bytes)
{
    size_t count = 0;
    bool is_last = false;
    while (!is_last) {
        TRY(load(s));
        if (s->loaded.at == s->loaded.end || count == 16) return ends_early(s);
        ret[count] = *s->loaded.at++;
        is_last = is_varint ? !(ret[count] & 0x80) : count == 3;
        count++;
    }
    *ret_bytes = count;
    return OK;
}

static err next_length(struct record_stream *s, uint64_t *ret)
{
    uint8_t bytes[16];
    size_t count = 0;
    TRY(next_bytes(s, true, bytes, &count));
    struct view view = {bytes, bytes + count};
    return view_varint(&view, ret) ? OK : ends_early(s);
}

/* Reads four bytes that must equal the checksum so far, and are then part of the checksum. */
static err pass_checksum(struct record_stream *s, bool *is_equal)
{
    uint8_t bytes[16];
    size_t count = 0;
    uint32_t stored = 0;
    TRY(next_bytes(s, false, bytes, &count));
    struct view view = {bytes, bytes + count};
    *is_equal = view_fixed32(&view, &stored) && stored == crc32c_mask(s->crc);
    s->crc = crc32c_extend(s->crc, bytes, count);
    return OK;
}

/* All lengths, their checksum, all strings. A length counts as 4 bytes if it fits. */
static err sum_strings(struct record_stream *s, int64_t elements, bool *is_equal)
{
    uint64_t total = 0, length = 0;
    for (int64_t i = 0; i < elements; i++) {
        TRY(next_length(s, &length));
        s->crc = crc32c_extend(s->crc, &length, length > UINT32_MAX ? 8 : 4); /* little-endian */
        if (__builtin_add_overflow(total, length, &total)) return ends_early(s);
    }
    TRY(pass_checksum(s, is_equal));
    return *is_equal ? add_bytes(s, total) : OK;
}

/* Each has its length before it and a checksum after it. */
static err sum_variants(struct record_stream *s, int64_t elements, bool *is_equal)
{
    uint64_t length = 0;
    for (int64_t i = 0; i < elements && *is_equal; i++) {
        TRY(next_length(s, &length));
        s->crc = crc32c_extend(s->crc, &length, 8);
        TRY(add_bytes(s, length));
        TRY(pass_checksum(s, is_equal));
    }
    return OK;
}

static err sum_record(struct record_stream *s, const struct index_record *r)
{
    bool is_equal = true;
    err e = OK;
    if (r->dtype == DTYPE_STRING)
        e = sum_strings(s, bundle_count(&r->shape), &is_equal);
    else if (r->dtype == DTYPE_VARIANT)
        e = sum_variants(s, bundle_count(&r->shape), &is_equal);
    else
        e = add_bytes(s, (uint64_t)r->bytes);
    if (e) return e;
    const bool is_all = s->at == s->end && s->loaded.at == s->loaded.end;
    if (is_equal && is_all && crc32c_mask(s->crc) == r->crc) return OK;
    return bundle_crc_differs(s->source.path);
}

static err verify_record(const struct bundle *b, const struct index_record *r,
                         struct record_stream *s)
{
    char *path = NULL;
    TRY(bundle_open_data(b, r, &s->source, &path));
    s->at = r->offset;
    s->end = r->offset + r->bytes;
    s->loaded = (struct view){s->buffer, s->buffer};
    s->crc = 0;
    const err e = sum_record(s, r);
    file_reader_close(&s->source);
    free(path);
    return e;
}

err bundle_verify(struct bundle *b)
{
    struct record_stream *s = malloc(sizeof *s);
    if (!s) return fail(ERR_MEMORY, "%s: no memory to verify it", b->prefix);
    err e = OK;
    for (int i = 0; i < b->count && !e; i++) {
        const struct stored_list list = bundle_stored(b, &b->entries[i]);
        for (int j = 0; j < list.count && !e; j++) e = verify_record(b, list.at[j].record, s);
        if (e) e = fail_prefix(e, "%s", b->entries[i].name);
    }
    free(s);
    return e;
}
