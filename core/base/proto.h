/* proto.h - reads bytes of files and messages from views, writes them to growing buffers, and does
 * so for protocol buffers.
 *
 * A field is a key (number and kind) and its content; fields are written in the order of the calls.
 */
#ifndef CORE_BASE_PROTO_H
#define CORE_BASE_PROTO_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Borrowed bytes, read from the front. The functions return false if the view ends too early; it
 * must not be used then. Numbers of a fixed size are little-endian. */
struct view {
    const uint8_t *at, *end;
};
static inline size_t view_bytes(struct view s)
{
    return (size_t)(s.end - s.at);
}

bool view_long_varint(struct view *, uint64_t *ret);

/* At most 10 bytes; most often one. Longer ones are read from a copy, so that the view's address
 * does not escape and it stays in registers. */
static inline bool view_varint(struct view *s, uint64_t *ret)
{
    if (s->at < s->end && *s->at < 0x80) {
        *ret = *s->at++;
        return true;
    }
    struct view rest = *s;
    uint64_t value = 0;
    const bool is_there = view_long_varint(&rest, &value);
    *s = rest;
    *ret = value;
    return is_there;
}

static inline bool view_fixed32(struct view *s, uint32_t *ret)
{
    if (view_bytes(*s) < sizeof *ret) return false;
    memcpy(ret, s->at, sizeof *ret);
    *ret = le32toh(*ret);
    s->at += sizeof *ret;
    return true;
}

static inline bool view_fixed64(struct view *s, uint64_t *ret)
{
    if (view_bytes(*s) < sizeof *ret) return false;
    memcpy(ret, s->at, sizeof *ret);
    *ret = le64toh(*ret);
    s->at += sizeof *ret;
    return true;
}

/* Takes the first `bytes` bytes as a view */
static inline bool view_cut(struct view *s, uint64_t bytes, struct view *ret)
{
    if (bytes > view_bytes(*s)) return false;
    *ret = (struct view){s->at, s->at + bytes};
    s->at += bytes;
    return true;
}

/* A growing buffer. Zeroed is empty. After memory has run out nothing more is added: check is_short
 * once, before the buffer is used. */
struct buffer {
    uint8_t *at;
    size_t used, room;
    bool is_short;
};
void buffer_clear(struct buffer *); /* empty and not short; keeps its memory */
void buffer_drop(struct buffer *);  /* frees its memory */
struct view buffer_view(const struct buffer *);
void buffer_put(struct buffer *, const void *, size_t bytes);
void buffer_byte(struct buffer *, int byte);
void buffer_varint(struct buffer *, uint64_t);
void buffer_fixed32(struct buffer *, uint32_t);
void buffer_fixed64(struct buffer *, uint64_t);

/* One field of a message: value holds varints and fixed-size numbers, bytes holds strings and
 * messages. */
enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };
struct proto_field {
    uint64_t number; /* of the field */
    enum wire wire;
    uint64_t value;
    struct view bytes;
};

/* Inline, because passing the struct through memory would take most of the time of a reader of many
 * small fields. */
static inline bool proto_next(struct view *s, struct proto_field *ret)
{
    uint64_t tag, bytes;
    uint32_t word = 0;
    bool is_there;
    if (!view_varint(s, &tag)) return false;
    *ret = (struct proto_field){.number = tag >> 3, .wire = (enum wire)(tag & 7)};
    switch (ret->wire) {
    case WIRE_VARINT:
        return view_varint(s, &ret->value);
    case WIRE_FIXED64:
        return view_fixed64(s, &ret->value);
    case WIRE_FIXED32:
        is_there = view_fixed32(s, &word);
        ret->value = word;
        return is_there;
    case WIRE_BYTES:
        return view_varint(s, &bytes) && view_cut(s, bytes, &ret->bytes);
    }
    return false; /* groups, which are deprecated, and unknown wire types */
}

/* These also write a 0, except proto_varint_unless_zero: proto3 omits defaults. */
void proto_varint(struct buffer *, int field, uint64_t value);
void proto_varint_unless_zero(struct buffer *, int field, uint64_t value);
void proto_fixed32(struct buffer *, int field, uint32_t value);
void proto_double(struct buffer *, int field, double value);
void proto_float(struct buffer *, int field, float value);
void proto_bytes(struct buffer *, int field, const void *data, size_t bytes);
/* Bytes that are not UTF-8 become question marks: a reader refuses the whole message for one bad
 * byte. */
void proto_string(struct buffer *, int field, const char *text);
void proto_packed_doubles(struct buffer *, int field, const double *values, int count);
void proto_packed_floats(struct buffer *, int field, const double *values, int count);
void proto_packed_varints(struct buffer *, int field, const int64_t *values, int count);

/* What is written between the two becomes a field: a message, or bytes. proto_open returns its
 * begin for proto_close. */
size_t proto_open(struct buffer *, int field);
void proto_close(struct buffer *, size_t begin);

#endif
