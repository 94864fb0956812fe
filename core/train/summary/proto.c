/* proto.c - see proto.h. */
#include "core/train/summary/proto.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

/* The kinds of content, which a reader must know to pass over a field. */
enum wire { WIRE_VARINT = 0, WIRE_64_BITS = 1, WIRE_LENGTH = 2, WIRE_32_BITS = 5 };

enum { VARINT_BYTES_MAX = 10, CAPACITY_FIRST = 256 };

void proto_clear(struct proto *p)
{
    p->bytes = 0;
    p->failed = false;
}

void proto_free(struct proto *p)
{
    free(p->at);
    *p = (struct proto){0};
}

/* Room for so many bytes more; false: there is none, or it failed before. */
static bool reserve(struct proto *p, size_t more)
{
    if (p->failed) return false;
    if (more <= p->capacity - p->bytes) return true;

    size_t capacity = p->capacity ? p->capacity : CAPACITY_FIRST;
    const bool fits = more <= PROTO_BYTES_MAX - p->bytes;
    while (fits && capacity - p->bytes < more) capacity *= 2;
    unsigned char *larger = fits ? realloc(p->at, capacity) : NULL;
    p->failed = !larger;
    if (!larger) return false;
    p->at = larger;
    p->capacity = capacity;
    return true;
}

/* Everything goes through here: what failed once is not written to again. */
void proto_raw(struct proto *p, const void *data, size_t bytes)
{
    if (bytes == 0 || !reserve(p, bytes)) return;
    memcpy(p->at + p->bytes, data, bytes);
    p->bytes += bytes;
}

/* Seven bits a byte, the lowest first; the top bit says that more follow. */
static size_t encode_varint(uint64_t value, unsigned char ret[VARINT_BYTES_MAX])
{
    size_t bytes = 0;
    for (; value >= 0x80; value >>= 7) ret[bytes++] = (unsigned char)(value | 0x80);
    ret[bytes++] = (unsigned char)value;
    return bytes;
}

static void add_varint(struct proto *p, uint64_t value)
{
    unsigned char encoded[VARINT_BYTES_MAX];
    const size_t bytes = encode_varint(value, encoded);
    proto_raw(p, encoded, bytes);
}

/* The lower three bits tell the kind. */
static void add_key(struct proto *p, int field, enum wire wire)
{
    add_varint(p, (uint64_t)field << 3 | wire);
}

/* Numbers of a fixed size are little-endian, whatever this machine is. */
static void add_double(struct proto *p, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = htole64(bits);
    proto_raw(p, &bits, sizeof bits);
}

static void add_float(struct proto *p, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = htole32(bits);
    proto_raw(p, &bits, sizeof bits);
}

void proto_varint(struct proto *p, int field, uint64_t value)
{
    add_key(p, field, WIRE_VARINT);
    add_varint(p, value);
}

void proto_double(struct proto *p, int field, double value)
{
    add_key(p, field, WIRE_64_BITS);
    add_double(p, value);
}

void proto_float(struct proto *p, int field, float value)
{
    add_key(p, field, WIRE_32_BITS);
    add_float(p, value);
}

void proto_bytes(struct proto *p, int field, const void *data, size_t bytes)
{
    add_key(p, field, WIRE_LENGTH);
    add_varint(p, bytes);
    proto_raw(p, data, bytes);
}

/* Bytes of the character that begins here, 0 where none does: no overlong form, no surrogate,
 * nothing above U+10FFFF. The NUL at the end continues nothing, so it is never passed. */
static size_t character_bytes(const unsigned char *s)
{
    if (s[0] < 0x80) return 1;
    if (s[0] < 0xc2 || s[0] > 0xf4) return 0;
    const size_t bytes = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    for (size_t i = 1; i < bytes; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    const unsigned second_min = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80;
    const unsigned second_max = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : 0xbf;
    return s[1] >= second_min && s[1] <= second_max ? bytes : 0;
}

/* One byte is passed where no character begins: the next may begin right there. */
void proto_string(struct proto *p, int field, const char *text)
{
    const size_t begin = proto_open(p, field);
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        const size_t bytes = character_bytes(s);
        proto_raw(p, bytes ? (const void *)s : "?", bytes ? bytes : 1);
        s += bytes ? bytes : 1;
    }
    proto_close(p, begin);
}

void proto_packed_doubles(struct proto *p, int field, const double *values, int count)
{
    add_key(p, field, WIRE_LENGTH);
    add_varint(p, (uint64_t)count * sizeof(double));
    for (int i = 0; i < count; i++) add_double(p, values[i]);
}

void proto_packed_floats(struct proto *p, int field, const double *values, int count)
{
    add_key(p, field, WIRE_LENGTH);
    add_varint(p, (uint64_t)count * sizeof(float));
    for (int i = 0; i < count; i++) add_float(p, (float)values[i]);
}

void proto_packed_varints(struct proto *p, int field, const int64_t *values, int count)
{
    const size_t begin = proto_open(p, field);
    for (int i = 0; i < count; i++) add_varint(p, (uint64_t)values[i]);
    proto_close(p, begin);
}

/* The length comes in between when it is known. */
size_t proto_open(struct proto *p, int field)
{
    add_key(p, field, WIRE_LENGTH);
    return p->bytes;
}

/* How many bytes the length takes is known only now: the content moves on by so many. */
void proto_close(struct proto *p, size_t begin)
{
    unsigned char length[VARINT_BYTES_MAX];
    const size_t content = p->bytes - begin, bytes = encode_varint(content, length);
    if (!reserve(p, bytes)) return;
    memmove(p->at + begin + bytes, p->at + begin, content);
    memcpy(p->at + begin, length, bytes);
    p->bytes += bytes;
}
