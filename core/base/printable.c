/* printable.c - see printable.h. */
#include "core/base/printable.h"

#include <stdint.h>
#include <string.h>

/* The length of a character, from its first byte; 0: none begins so. */
static int bytes_of(unsigned char first)
{
    if (first < 0x80) return 1;
    if (first >= 0xc2 && first <= 0xdf) return 2;
    if (first >= 0xe0 && first <= 0xef) return 3;
    return first >= 0xf0 && first <= 0xf4 ? 4 : 0;
}

/* Not overlong, no surrogate, not above U+10FFFF. */
static bool is_character(uint32_t code, int bytes)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    return code >= least[bytes] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
}

static bool is_control(uint32_t code)
{
    return (code < 0x20 && code != '\n') || (code >= 0x7f && code <= 0x9f);
}

/* As utf8_bytes; ret_code: its code point. */
static int read_character(const char *at, size_t count, uint32_t *ret_code)
{
    if (count == 0) return PRINTABLE_BEGUN;
    const unsigned char first = (unsigned char)at[0];
    const int bytes = bytes_of(first);
    if (bytes == 0) return 0;
    uint32_t code = bytes == 1 ? first : first & (0xffu >> (bytes + 1));
    for (int i = 1; i < bytes; i++) {
        if ((size_t)i >= count) return PRINTABLE_BEGUN;
        if ((at[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (at[i] & 0x3f);
    }
    *ret_code = code;
    return is_character(code, bytes) ? bytes : 0;
}

int utf8_bytes(const char *at, size_t count)
{
    uint32_t code;
    return read_character(at, count, &code);
}

/* Most text is ASCII, which is skipped 8 bytes at a time. */
size_t utf8_prefix(const char *at, size_t count)
{
    size_t done = 0;
    while (done < count) {
        uint64_t word;
        if (done + sizeof word <= count) {
            memcpy(&word, at + done, sizeof word);
            if (!(word & UINT64_C(0x8080808080808080))) {
                done += sizeof word;
                continue;
            }
        }
        const int bytes = utf8_bytes(at + done, count - done);
        if (bytes <= 0) break;
        done += (size_t)bytes;
    }
    return done;
}

int printable_bytes(const char *at, size_t count)
{
    uint32_t code;
    const int bytes = read_character(at, count, &code);
    return bytes > 0 && is_control(code) ? 0 : bytes;
}

int printable_escape(char byte, char to[PRINTABLE_BYTES_MAX])
{
    static const char digits[] = "0123456789abcdef";
    to[0] = '\\';
    to[1] = 'x';
    to[2] = digits[(unsigned char)byte >> 4];
    to[3] = digits[byte & 0xf];
    return PRINTABLE_BYTES_MAX;
}

/* Invisible, and not a usual blank: byte order marks, joiners, spaces of other widths, changes of
 * direction. A name with one looks like another name. */
static bool is_hidden(const char *at, int bytes)
{
    static const struct {
        uint32_t from, to;
    } hidden[] = {
        {0xa0, 0xa0},     {0xad, 0xad},     {0x34f, 0x34f},   {0x61c, 0x61c},   {0x115f, 0x1160},
        {0x17b4, 0x17b5}, {0x180b, 0x180e}, {0x2000, 0x200f}, {0x2028, 0x202f}, {0x205f, 0x206f},
        {0x3164, 0x3164}, {0xfeff, 0xfeff}, {0xffa0, 0xffa0}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
    };
    uint32_t code = (unsigned char)at[0] & (0xffu >> (bytes + 1));
    for (int i = 1; i < bytes; i++) code = code << 6 | (at[i] & 0x3f);
    for (size_t i = 0; bytes > 1 && i < sizeof hidden / sizeof *hidden; i++)
        if (code >= hidden[i].from && code <= hidden[i].to) return true;
    return false;
}

/* Writes one character, or an escaped byte, to ret and returns its length; ret_taken: bytes of text
 * that this took. */
static int next_character(const char *text, size_t count, char ret[PRINTABLE_BYTES_MAX],
                          size_t *ret_taken)
{
    const int bytes = printable_bytes(text, count);
    const bool is_shown = bytes > 0 && !is_hidden(text, bytes);
    *ret_taken = is_shown ? (size_t)bytes : 1;
    if (!is_shown) return printable_escape(*text, ret);
    memcpy(ret, text, (size_t)bytes);
    return bytes;
}

bool printable_seen(char *to, size_t size, const char *text)
{
    size_t used = 0, left = strlen(text);
    while (left > 0) {
        const int known = printable_bytes(text, left);
        const size_t bytes = known > 0 ? (size_t)known : 1;
        if (used + bytes >= size) break;
        const bool is_seen = known > 0 && !is_hidden(text, known) && *text != ' ' && *text != '\n';
        memcpy(to + used, text, bytes);
        if (is_seen) used += bytes;
        text += bytes, left -= bytes;
    }
    to[used] = '\0';
    return left == 0;
}

bool printable_copy(char *to, size_t size, const char *text)
{
    size_t used = 0, left = strlen(text), taken;
    for (; left > 0; text += taken, left -= taken) {
        char character[PRINTABLE_BYTES_MAX];
        const int bytes = next_character(text, left, character, &taken);
        if (used + (size_t)bytes >= size) break;
        memcpy(to + used, character, (size_t)bytes);
        used += (size_t)bytes;
    }
    to[used] = '\0';
    return left == 0;
}
