/* json_words.c - see json_words.h. */
#include "cmd/json_words.h"

#include <math.h>
#include <string.h>

#include "core/base/number_text.h"
#include "core/base/printable.h"

static const float WITH_POWER = 1e9f; /* from here on whole numbers have an exponent: "1e+09" */

static void write_special(FILE *out, const char *at, int bytes)
{
    const unsigned char c = (unsigned char)*at;
    if (bytes <= 0)
        fputs("\\ufffd", out); /* not UTF-8 */
    else if (c == '"' || c == '\\')
        fprintf(out, "\\%c", c);
    else if (c < 0x20)
        fprintf(out, "\\u%04x", c);
    else
        fwrite(at, 1, (size_t)bytes, out);
}

/* Length of the prefix that needs no escaping */
static size_t plain_bytes(const char *text)
{
    size_t count = 0;
    while ((unsigned char)text[count] >= 0x20 && (unsigned char)text[count] < 0x80 &&
           text[count] != '"' && text[count] != '\\')
        count++;
    return count;
}

void json_write_text(FILE *out, const char *text)
{
    fputc('"', out);
    while (*text) {
        const size_t plain = plain_bytes(text);
        fwrite(text, 1, plain, out);
        text += plain;
        if (!*text) break;
        const int bytes = utf8_bytes(text, PRINTABLE_BYTES_MAX); /* none behind a NUL */
        write_special(out, text, bytes);
        text += bytes > 0 ? bytes : 1;
    }
    fputc('"', out);
}

void json_write_number(FILE *out, float number)
{
    char text[NUMBER_TEXT_BYTES];
    if (!isfinite(number)) {
        fputs("null", out);
        return;
    }
    const size_t length = number_text(number, text);
    fwrite(text, 1, length, out);
    if (number == truncf(number) && fabsf(number) < WITH_POWER) fputs(".0", out);
}

void json_write_class(FILE *out, const struct strings *words, int64_t class, bool as_text)
{
    char number[NUMBER_TEXT_BYTES];
    whole_text(class, number);
    if (class < words->count)
        json_write_text(out, words->at[class]);
    else if (words->count || as_text)
        json_write_text(out, number);
    else
        fputs(number, out);
}
