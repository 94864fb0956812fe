/* printable.h - makes text of a file, a flag or a peer safe to print.
 *
 * Control characters other than the end of line (also the two-byte ones of UTF-8, from U+0080) and
 * bytes that are not UTF-8 are written like \x1b: a terminal would act on them. All else stays as
 * it is.
 */
#ifndef CORE_BASE_PRINTABLE_H
#define CORE_BASE_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>

enum { PRINTABLE_BEGUN = -1, PRINTABLE_BYTES_MAX = 4 }; /* of one character, escaped or not */

/* The length of the first UTF-8 character in bytes, 1 to 4; 0: not valid (also overlong forms,
 * surrogates, and above U+10FFFF); PRINTABLE_BEGUN: the count bytes are the beginning of one. Does
 * not read beyond a NUL. */
int utf8_bytes(const char *at, size_t count);

/* The number of bytes before the first that does not belong to a whole UTF-8 character. */
size_t utf8_prefix(const char *at, size_t count);

/* The length of the first character in bytes, 1 to 4, if it may be printed as it is; 0: its first
 * byte must be escaped; PRINTABLE_BEGUN: more than count bytes are needed to tell. */
int printable_bytes(const char *at, size_t count);

/* Writes the first byte as \x1b; returns PRINTABLE_BYTES_MAX. */
int printable_escape(char byte, char to[PRINTABLE_BYTES_MAX]);

/* Copies text, made safe, to `to`, with a NUL; invisible characters (a byte order mark, a blank of
 * another width) are escaped, too. false: cut after the last character that fits into size bytes
 * (at least 1). */
bool printable_copy(char *to, size_t size, const char *text);

/* Copies only the visible characters of text: no invisible ones, control characters or blanks.
 * false: cut as above. */
bool printable_seen(char *to, size_t size, const char *text);

#endif
