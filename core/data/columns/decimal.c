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

/* ---- whole numbers ---- */

/* Multiplies by 10^count. False: overflow. */
static bool raise(uint64_t *number, int count)
{
    if (*number == 0) return true;
    for (; count > 0; count--) /* overflows after 20 at the latest */
        if (__builtin_mul_overflow(*number, UINT64_C(10), number)) return false;
    return true;
}

/* Reads the whole of "-3" */
static bool read_exponent(const char *at, const char *end, int *ret)
{
    const bool is_signed = at < end && (*at == '-' || *at == '+');
    const int sign = is_signed && *at == '-' ? -1 : 1;
    at += is_signed;
    if (at == end) return false;
    for (*ret = 0; at < end && *at >= '0' && *at <= '9' && *ret <= DECIMAL_EXPONENT_MAX; at++)
        *ret = *ret * 10 + (*at - '0');
    if (at < end || *ret > DECIMAL_EXPONENT_MAX) return false;
    *ret *= sign;
    return true;
}

/* Zeros are pending until another digit follows: trailing ones only change the exponent. */
struct digits {
    uint64_t number;
    int count, behind_point, zeros;
    bool has_point;
};

static bool add_digit(struct digits *d, int digit)
{
    d->count++;
    d->behind_point += d->has_point;
    d->zeros++;
    if (digit == 0) return true;
    if (!raise(&d->number, d->zeros)) return false;
    d->zeros = 0;
    return !__builtin_add_overflow(d->number, (uint64_t)digit, &d->number);
}

bool decimal_whole(const char *text, size_t length, bool *ret_is_negative, uint64_t *ret)
{
    const char *at = text, *const end = text + length;
    struct digits d = {0};
    int exponent = 0;
    *ret_is_negative = at < end && *at == '-';
    at += at < end && (*at == '-' || *at == '+');
    for (; at < end && (*at == '.' ? !d.has_point : *at >= '0' && *at <= '9'); at++)
        if (*at == '.')
            d.has_point = true;
        else if (!add_digit(&d, *at - '0'))
            return false;
    const bool has_exponent = at < end && (*at == 'e' || *at == 'E');
    if (has_exponent && !read_exponent(at + 1, end, &exponent)) return false;
    if (d.count == 0 || (at < end && !has_exponent)) return false;
    exponent += d.zeros - d.behind_point;
    *ret = d.number;
    return d.number == 0 || (exponent >= 0 && raise(ret, exponent));
}
