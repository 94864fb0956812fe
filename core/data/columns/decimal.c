/* decimal.c - see decimal.h. */
#include "core/data/columns/decimal.h"

enum { DIGITS_MAX = 15 };

const double decimal_tens[DIGITS_MAX + 1] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                             1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};

static bool read_digits(const char *text, const char *end, double *ret)
{
    const char *const digits = text, *point = NULL;
    int64_t number = 0;
    for (; text < end; text++) {
        const unsigned digit = (unsigned char)*text - (unsigned)'0';
        if (digit > 9 && (*text != '.' || point)) return false;
        if (digit > 9)
            point = text;
        else
            number = number * 10 + digit;
    }
    const ptrdiff_t count = end - digits - (point != NULL);
    if (count < 1 || count > DIGITS_MAX) return false;
    *ret = point ? (double)number / decimal_tens[end - point - 1] : (double)number;
    return true;
}

bool decimal_long(const char *text, size_t length, double *ret)
{
    const bool is_negative = length > 0 && *text == '-';
    const size_t digits = length - is_negative;
    double size;
    text += is_negative;
    if (digits > DIGITS_MAX + 1) return false;
    if (!(digits <= DECIMAL_BYTES && decimal_short(text, digits, &size)) &&
        !read_digits(text, text + digits, &size))
        return false;
    *ret = is_negative ? -size : size;
    return true;
}
