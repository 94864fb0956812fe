/* ordered.c - see ordered.h. */
#include "core/train/checkpoint/bundle/ordered.h"

enum { ORDERED_BYTES_MAX = 10 };

/* The number of bytes, then the number, most significant byte first. */
void buffer_ordered_unsigned(struct buffer *b, uint64_t value)
{
    int count = 0;
    while (count < 8 && value >> (8 * count)) count++;
    buffer_byte(b, count);
    for (int i = count - 1; i >= 0; i--) buffer_byte(b, (int)(value >> (8 * i) & 0xff));
}

/* LevelDB's ordered varint: the number of leading one bits (zero bits of a negative number) is the
 * number of bytes, so that encodings sort as the numbers do. The first byte carries 6 bits, each
 * further byte adds 7. */
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

/* 0 and 255 are written as two bytes, because the text ends with the bytes 0 1. */
void buffer_ordered_text(struct buffer *b, const char *text)
{
    for (; *text; text++) {
        buffer_byte(b, (uint8_t)*text);
        if ((uint8_t)*text == 0xff) buffer_byte(b, 0);
    }
    buffer_put(b, (const uint8_t[]){0, 1}, 2);
}
