/* not_numbers.c - see not_numbers.h. */
#include "cmd/serve/not_numbers.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Whether NaN is at `at`, outside of a string; left: bytes until the end of the text */
static bool is_nan(const char *at, size_t left)
{
    return left >= 3 && memcmp(at, "NaN", 3) == 0;
}

/* Bytes of a string from after its first quote to after its last one, or to the end of the text */
static size_t string_bytes(const char *at, size_t left)
{
    size_t count = 0;
    while (count < left && at[count] != '"') count += 1 + (at[count] == '\\');
    return count < left ? count + 1 : left;
}

/* Copies to `to` (NULL: nowhere) with null for NaN; *ret: number of NaN. Returns the length. */
static size_t copy(const char *text, size_t bytes, char *to, size_t *ret)
{
    size_t length = 0;
    *ret = 0;
    for (size_t i = 0; i < bytes;) {
        const bool is_one = is_nan(text + i, bytes - i);
        const size_t taken = is_one           ? 3
                             : text[i] == '"' ? 1 + string_bytes(text + i + 1, bytes - i - 1)
                                              : 1;
        const size_t given = is_one ? 4 : taken;
        if (to) memcpy(to + length, is_one ? "null" : text + i, given);
        *ret += is_one;
        length += given;
        i += taken;
    }
    return length;
}

char *not_numbers_as_null(const char *text, size_t bytes, size_t *ret_bytes)
{
    size_t count;
    *ret_bytes = copy(text, bytes, NULL, &count);
    char *to = count ? malloc(*ret_bytes + 1) : NULL;
    if (!to) return NULL;
    copy(text, bytes, to, &count);
    to[*ret_bytes] = '\0';
    return to;
}
