/* decimal.h - parses decimal numbers, eight digits at a time.
 *
 * Most numbers in most files are short. Up to eight bytes of text are loaded into one 64-bit word,
 * the first into the lowest byte; unused bytes are 0.
 */
#ifndef CORE_DATA_COLUMNS_DECIMAL_H
#define CORE_DATA_COLUMNS_DECIMAL_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { DECIMAL_BYTES = 8 };
#define DECIMAL_EACH(byte) (UINT64_C(0x0101010101010101) * (unsigned char)(byte))

static inline uint64_t decimal_load_8(const char *text)
{
    uint64_t word;
    memcpy(&word, text, sizeof word);
    return le64toh(word);
}

static inline uint64_t decimal_load_4(const char *text)
{
    uint32_t word;
    memcpy(&word, text, sizeof word);
    return le32toh(word);
}

/* Reads no bytes outside the text: more than four by two overlapping loads */
static inline uint64_t decimal_load(const char *text, size_t length)
{
    if (length >= DECIMAL_BYTES) return decimal_load_8(text);
    if (length >= 4)
        return decimal_load_4(text) | decimal_load_4(text + length - 4) << 8 * (length - 4);
    uint64_t word = 0;
    for (size_t i = 0; i < length; i++) word |= (uint64_t)(unsigned char)text[i] << 8 * i;
    return word;
}

/* Index of the first byte that is c; DECIMAL_BYTES: none. */
static inline size_t decimal_find(uint64_t word, char c)
{
    const uint64_t low = DECIMAL_EACH(0x7f), other = word ^ DECIMAL_EACH(c);
    const uint64_t found = ~(((other & low) + low) | other | low);
    return found ? (size_t)__builtin_ctzll(found) / 8 : DECIMAL_BYTES;
}

/* Parses the first `count` bytes, 1 to 8. False: not all are digits. */
static inline bool decimal_digits(uint64_t word, size_t count, uint64_t *ret)
{
    const int unused = (int)(DECIMAL_BYTES - count) * 8;
    word = (word ^ DECIMAL_EACH('0')) << unused; /* zeros in front */
    if (((word + DECIMAL_EACH(0x76)) | word) & DECIMAL_EACH(0x80)) return false;
    word = word * 10 + (word >> 8); /* two digits in every other byte */
    word = (word & UINT64_C(0x00ff00ff00ff00ff)) * (1 + (100 << 16)) >> 16;
    *ret = (word & UINT64_C(0x0000ffff0000ffff)) * (1 + (UINT64_C(10000) << 32)) >> 32;
    return true;
}

/* 1, 10, 100 to 10^15, all exact: so dividing by one rounds only once. */
extern const double decimal_tens[];

/* Parses at most 8 bytes: digits with at most one point, which is removed from the word. */
static inline bool decimal_short(const char *text, size_t length, double *ret)
{
    uint64_t word = decimal_load(text, length), number;
    const size_t point = decimal_find(word, '.');
    const bool has_point = point < DECIMAL_BYTES;
    const uint64_t before = has_point ? (UINT64_C(1) << 8 * point) - 1 : UINT64_MAX;
    word = (word & before) | (word >> 8 & ~before);
    if (length == has_point || !decimal_digits(word, length - has_point, &number)) return false;
    *ret = (double)number / decimal_tens[has_point ? length - 1 - point : 0];
    return true;
}

bool decimal_long(const char *text, size_t length, double *ret);

/* Parses an optional minus and at most 15 digits with at most one point, correctly rounded. False:
 * not a number, or written in another way. */
static inline bool decimal_plain(const char *text, size_t length, double *ret)
{
    const bool is_short = length <= DECIMAL_BYTES && decimal_short(text, length, ret);
    return is_short || decimal_long(text, length, ret);
}

/* Parses a whole number up to 2^64 - 1, exactly, in any notation: "-7", "12.0", "1e3", "0.5e1".
 * False: not a number, not whole, or larger. Exponents above DECIMAL_EXPONENT_MAX are not accepted.
 */
enum { DECIMAL_EXPONENT_MAX = 9999 };
bool decimal_whole(const char *text, size_t length, bool *ret_is_negative, uint64_t *ret);

#endif
