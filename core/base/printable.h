/* printable.h - text of a file, a flag or a peer, made safe to show.
 *
 * Control characters but the end of line (the two-byte ones of UTF-8, from U+0080, too) and bytes
 * that are no UTF-8 are written as \x1b: a terminal would act on them. All else stays as it is.
 */
#ifndef CORE_BASE_PRINTABLE_H
#define CORE_BASE_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>

enum { PRINTABLE_BEGUN = -1, PRINTABLE_BYTES_MAX = 4 }; /* of one character, escaped or not */

/* How many bytes the first character of UTF-8 has, 1 to 4: no overlong form, no surrogate, nothing
 * above U+10FFFF; 0: none begins there; PRINTABLE_BEGUN: the count bytes that are there begin one.
 * Nothing behind a NUL is looked at. */
int utf8_bytes(const char *at, size_t count);

/* How many of the bytes are whole characters of UTF-8 before the first that is none. */
size_t utf8_prefix(const char *at, size_t count);

/* How many bytes the first character has that may be shown as it is, 1 to 4; 0: its first byte may
 * not; PRINTABLE_BEGUN: more than the count bytes that are there are needed to tell. */
int printable_bytes(const char *at, size_t count);

/* Writes the first byte as \x1b; returns PRINTABLE_BYTES_MAX. */
int printable_escape(char byte, char to[PRINTABLE_BYTES_MAX]);

/* Copies text, made safe, and with characters that nobody sees (a byte order mark, a blank of
 * another width) written as bytes, too, to `to` and ends it with a NUL. false: it ends with the
 * last character that fits into size bytes (at least 1). */
bool printable_copy(char *to, size_t size, const char *text);

/* Copies what a reader sees of text: without such characters, and without control characters and
 * blanks. false: it ends with the last character that fits into size bytes (at least 1). */
bool printable_seen(char *to, size_t size, const char *text);

#endif
