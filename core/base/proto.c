/* proto.c - see proto.h. */
#include "core/base/proto.h"

#include "core/base/printable.h"

#include <stdlib.h>
#include <string.h>

enum { BUFFER_ROOM_MIN = 256, VARINT_BYTES_MAX = 10 };

/* The last of 10 bytes has one bit left: 9 x 7 + 1 = 64. */
bool view_long_varint(struct view *s, uint64_t *ret)
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

void buffer_clear(struct buffer *b)
{
    b->used = 0;
    b->is_short = false;
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
 * more is added, and is_short stays. */
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

/* 7 bits per byte, the low ones first; the top bit says that more bytes follow. */
static size_t encode_varint(uint64_t value, uint8_t ret[VARINT_BYTES_MAX])
{
    size_t count = 0;
    for (; value >= 0x80; value >>= 7) ret[count++] = (uint8_t)(value | 0x80);
    ret[count++] = (uint8_t)value;
    return count;
}

void buffer_varint(struct buffer *b, uint64_t value)
{
    uint8_t bytes[VARINT_BYTES_MAX];
    buffer_put(b, bytes, encode_varint(value, bytes));
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

/* ---- fields of messages ---- */

static void put_key(struct buffer *b, int field, enum wire wire)
{
    buffer_varint(b, (uint64_t)field << 3 | wire);
}

static void put_double(struct buffer *b, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    buffer_fixed64(b, bits);
}

static void put_float(struct buffer *b, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    buffer_fixed32(b, bits);
}

void proto_varint(struct buffer *b, int field, uint64_t value)
{
    put_key(b, field, WIRE_VARINT);
    buffer_varint(b, value);
}

void proto_varint_unless_zero(struct buffer *b, int field, uint64_t value)
{
    if (value) proto_varint(b, field, value);
}

void proto_fixed32(struct buffer *b, int field, uint32_t value)
{
    put_key(b, field, WIRE_FIXED32);
    buffer_fixed32(b, value);
}

void proto_double(struct buffer *b, int field, double value)
{
    put_key(b, field, WIRE_FIXED64);
    put_double(b, value);
}

void proto_float(struct buffer *b, int field, float value)
{
    put_key(b, field, WIRE_FIXED32);
    put_float(b, value);
}

void proto_bytes(struct buffer *b, int field, const void *data, size_t bytes)
{
    put_key(b, field, WIRE_BYTES);
    buffer_varint(b, bytes);
    buffer_put(b, data, bytes);
}

/* Skips one byte where no character begins: the next may begin right after it. */
void proto_string(struct buffer *b, int field, const char *text)
{
    const size_t begin = proto_open(b, field);
    while (*text) {
        const int bytes = utf8_bytes(text, PRINTABLE_BYTES_MAX);
        buffer_put(b, bytes > 0 ? text : "?", bytes > 0 ? (size_t)bytes : 1);
        text += bytes > 0 ? bytes : 1;
    }
    proto_close(b, begin);
}

void proto_packed_doubles(struct buffer *b, int field, const double *values, int count)
{
    put_key(b, field, WIRE_BYTES);
    buffer_varint(b, (uint64_t)count * sizeof(double));
    for (int i = 0; i < count; i++) put_double(b, values[i]);
}

void proto_packed_floats(struct buffer *b, int field, const double *values, int count)
{
    put_key(b, field, WIRE_BYTES);
    buffer_varint(b, (uint64_t)count * sizeof(float));
    for (int i = 0; i < count; i++) put_float(b, (float)values[i]);
}

void proto_packed_varints(struct buffer *b, int field, const int64_t *values, int count)
{
    const size_t begin = proto_open(b, field);
    for (int i = 0; i < count; i++) buffer_varint(b, (uint64_t)values[i]);
    proto_close(b, begin);
}

/* proto_close puts the length in front. */
size_t proto_open(struct buffer *b, int field)
{
    put_key(b, field, WIRE_BYTES);
    return b->used;
}

/* Only now is it known how many bytes the length takes: the content is moved back by these. */
void proto_close(struct buffer *b, size_t begin)
{
    uint8_t length[VARINT_BYTES_MAX];
    const size_t content = b->used - begin, bytes = encode_varint(content, length);
    if (!buffer_reserve(b, bytes)) return;
    memmove(b->at + begin + bytes, b->at + begin, content);
    memcpy(b->at + begin, length, bytes);
    b->used += bytes;
}
