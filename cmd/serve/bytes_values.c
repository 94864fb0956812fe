/* bytes_values.c - see bytes_values.h. */
#include "cmd/serve/bytes_values.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* -1: no base64 digit */
static int digit_of(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes four digits to three bytes; only the last two of the text may be '='. */
static int decode_four(const char *from, bool is_last, char *to)
{
    const int pads = is_last && from[3] == '=' ? 1 + (from[2] == '=') : 0;
    uint32_t bits = 0;
    for (int i = 0; i < 4; i++) {
        const int digit = i >= 4 - pads ? 0 : digit_of(from[i]);
        if (digit < 0) return -1;
        bits = bits << 6 | (uint32_t)digit;
    }
    for (int i = 0; i < 3 - pads; i++) to[i] = (char)(bits >> (16 - 8 * i));
    return 3 - pads;
}

/* NULL: invalid base64, or no memory */
static json_t *decoded(const char *text, size_t length)
{
    char *bytes = length % 4 ? NULL : malloc(length / 4 * 3 + 1);
    size_t count = 0;
    int more = 0;
    for (size_t i = 0; bytes && more >= 0 && i < length; i += 4) {
        more = decode_four(text + i, i + 4 == length, bytes + count);
        if (more > 0) count += (size_t)more;
    }
    json_t *value = bytes && more >= 0 ? json_stringn_nocheck(bytes, count) : NULL;
    free(bytes);
    return value;
}

/* The text of {"b64": "..."}; NULL: another value */
static const json_t *text_of(const json_t *value)
{
    return json_object_size(value) == 1 ? json_object_get(value, "b64") : NULL;
}

/* What replaces the value; NULL: nothing */
static json_t *bytes_of(const json_t *value)
{
    const json_t *text = text_of(value);
    return json_is_string(text) ? decoded(json_string_value(text), json_string_length(text)) : NULL;
}

static err text_fault(const json_t *text)
{
    enum { SHOWN = 32 };
    if (!json_is_string(text))
        return fail(ERR_INPUT, "{\"b64\": ...}: expected base64 in a string");
    return fail(ERR_INPUT,
                "{\"b64\": \"%.*s\"}: no base64, which has four of A-Z, a-z, 0-9, + and / for each "
                "three bytes, the last four filled up with =",
                SHOWN, json_string_value(text));
}

err bytes_values_fault(const char *name, const json_t *value, err e)
{
    const json_t *text = text_of(value);
    for (size_t i = 0; !text && i < json_array_size(value); i++)
        text = text_of(json_array_get(value, i));
    if (!text) return e;
    return name ? fail_prefix(text_fault(text), "\"%.64s\"", name) : text_fault(text);
}

void bytes_values_decode(json_t *in)
{
    const char *name;
    json_t *value, *bytes;
    void *next;
    size_t i;
    json_array_foreach(in, i, value)
    {
        bytes = bytes_of(value);
        if (bytes)
            json_array_set_new(in, i, bytes);
        else
            bytes_values_decode(value);
    }
    json_object_foreach_safe(in, next, name, value)
    {
        bytes = bytes_of(value);
        if (bytes)
            json_object_set_new_nocheck(in, name, bytes);
        else
            bytes_values_decode(value);
    }
}
