/* coding.c - see coding.h. */
#include "core/train/checkpoint/bundle/coding.h"

#include <stdlib.h>
#include <string.h>

enum { BUFFER_ROOM_MIN = 256, VARINT_BYTES_MAX = 10, ORDERED_BYTES_MAX = 10 };

size_t view_bytes(struct view s)
{
    return (size_t)(s.end - s.at);
}

/* The last of 10 bytes has one bit left: 9 x 7 + 1 = 64. */
bool view_varint(struct view *s, uint64_t *ret)
{
    uint64_t value = 0;
    for (int i = 0; i < VARINT_BYTES_MAX && s->at < s->end; i++) {
        const uint8_t byte = *s->at++;
        if (i == VARINT_BYTES_MAX - 1 && byte > 1) return false; /* more than 64 bits */
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte & 0x80) continue;
        *ret = value;
        return true;
    }
    return false;
}

static bool view_little_endian(struct view *s, size_t bytes, uint64_t *ret)
{
    if (view_bytes(*s) < bytes) return false;
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) value |= (uint64_t)s->at[i] << (8 * i);
    s->at += bytes;
    *ret = value;
    return true;
}

bool view_fixed32(struct view *s, uint32_t *ret)
{
    uint64_t value;
    if (!view_little_endian(s, 4, &value)) return false;
    *ret = (uint32_t)value;
    return true;
}

bool view_fixed64(struct view *s, uint64_t *ret)
{
    return view_little_endian(s, 8, ret);
}

bool view_cut(struct view *s, uint64_t bytes, struct view *ret)
{
    if (bytes > view_bytes(*s)) return false;
    *ret = (struct view){s->at, s->at + bytes};
    s->at += bytes;
    return true;
}

bool proto_next(struct view *s, struct proto_field *ret)
{
    uint64_t tag, bytes;
    if (!view_varint(s, &tag)) return false;
    *ret = (struct proto_field){.number = tag >> 3, .wire = (enum wire)(tag & 7)};
    switch (ret->wire) {
    case WIRE_VARINT:
        return view_varint(s, &ret->value);
    case WIRE_FIXED64:
        return view_little_endian(s, 8, &ret->value);
    case WIRE_FIXED32:
        return view_little_endian(s, 4, &ret->value);
    case WIRE_BYTES:
        return view_varint(s, &bytes) && view_cut(s, bytes, &ret->bytes);
    }
    return false; /* groups, which nobody writes any more, and what is no kind at all */
}

void buffer_drop(struct buffer *b)
{
    free(b->at);
    *b = (struct buffer){0};
}

struct view buffer_view(const struct buffer *b)
{
    return (struct view){b->at, b->at ? b->at + b->used : NULL};
}

/* Doubles, so that a buffer filled byte by byte is copied a few times only. After a failure nothing
 * is put any more, and is_short stays. */
static bool buffer_reserve(struct buffer *b, size_t bytes)
{
    if (b->is_short) return false;
    if (b->at && bytes <= b->room - b->used) return true;
    size_t room = b->room < BUFFER_ROOM_MIN ? BUFFER_ROOM_MIN : b->room * 2;
    if (room - b->used < bytes) room = b->used + bytes;
    uint8_t *at = room <= PTRDIFF_MAX ? realloc(b->at, room) : NULL;
    b->is_short = !at;
    if (!at) return false;
    b->at = at;
    b->room = room;
    return true;
}

void buffer_put(struct buffer *b, const void *from, size_t bytes)
{
    if (bytes == 0 || !buffer_reserve(b, bytes)) return;
    memcpy(b->at + b->used, from, bytes);
    b->used += bytes;
}

void buffer_byte(struct buffer *b, int byte)
{
    buffer_put(b, &(uint8_t){(uint8_t)byte}, 1);
}

/* 7 bits at a time, the low ones first; the top bit says that more follow. */
void buffer_varint(struct buffer *b, uint64_t value)
{
    uint8_t bytes[VARINT_BYTES_MAX];
    size_t count = 0;
    for (; value >= 0x80; value >>= 7) bytes[count++] = (uint8_t)(value | 0x80);
    bytes[count++] = (uint8_t)value;
    buffer_put(b, bytes, count);
}

static void buffer_little_endian(struct buffer *b, uint64_t value, size_t count)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < count; i++) bytes[i] = (uint8_t)(value >> (8 * i));
    buffer_put(b, bytes, count);
}

void buffer_fixed32(struct buffer *b, uint32_t value)
{
    buffer_little_endian(b, value, 4);
}

void buffer_fixed64(struct buffer *b, uint64_t value)
{
    buffer_little_endian(b, value, 8);
}

void buffer_number(struct buffer *b, int field, uint64_t value)
{
    if (value == 0) return;
    buffer_varint(b, (uint64_t)field << 3 | WIRE_VARINT);
    buffer_varint(b, value);
}

void buffer_bytes(struct buffer *b, int field, struct view bytes)
{
    buffer_varint(b, (uint64_t)field << 3 | WIRE_BYTES);
    buffer_varint(b, view_bytes(bytes));
    buffer_put(b, bytes.at, view_bytes(bytes));
}

/* How many bytes follow, then the number, its first byte first. */
void buffer_ordered_unsigned(struct buffer *b, uint64_t value)
{
    int count = 0;
    while (count < 8 && value >> (8 * count)) count++;
    buffer_byte(b, count);
    for (int i = count - 1; i >= 0; i--) buffer_byte(b, (int)(value >> (8 * i) & 0xff));
}

/* As many leading bits as bytes are used are turned over, so that longer numbers sort further out;
 * 6 bits remain in the first byte and 7 more for every byte that follows. */
void buffer_ordered_signed(struct buffer *b, int64_t value)
{
    static const uint8_t headers[ORDERED_BYTES_MAX + 1][2] = {
        {0, 0},    {0x80, 0}, {0xc0, 0}, {0xe0, 0},    {0xf0, 0},    {0xf8, 0},
        {0xfc, 0}, {0xfe, 0}, {0xff, 0}, {0xff, 0x80}, {0xff, 0xc0},
    };
    const uint64_t magnitude = (uint64_t)(value < 0 ? ~value : value);
    const int bits = magnitude ? 64 - __builtin_clzll(magnitude) : 0, count = bits / 7 + 1;
    uint8_t bytes[ORDERED_BYTES_MAX];
    for (int i = 0; i < count; i++) {
        const int shift = 8 * (count - 1 - i);
        bytes[i] = shift < 64 ? (uint8_t)(value >> shift) : value < 0 ? 0xff : 0;
    }
    bytes[0] ^= headers[count][0];
    if (count > 1) bytes[1] ^= headers[count][1];
    buffer_put(b, bytes, (size_t)count);
}

/* 0 and 255 would not sort with the mark 0 1 at the end, so they are two bytes. */
void buffer_ordered_text(struct buffer *b, const char *text)
{
    for (; *text; text++) {
        buffer_byte(b, (uint8_t)*text);
        if ((uint8_t)*text == 0xff) buffer_byte(b, 0);
    }
    buffer_put(b, (const uint8_t[]){0, 1}, 2);
}
