/* number_text.c - see number_text.h. A float is scaled to nine digits before the point, in double,
 * whose error is less than 1e-6 of the last digit; numbers so near to the middle between two that
 * this could matter are left to printf. */
#include "core/base/number_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DIGITS = 9, LEAST_POINT = -4, POWERS = 54 };

static const double NEAR_MIDDLE = 1e-3;
static const double powers[POWERS] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11, 1e12, 1e13,
    1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22, 1e23, 1e24, 1e25, 1e26, 1e27,
    1e28, 1e29, 1e30, 1e31, 1e32, 1e33, 1e34, 1e35, 1e36, 1e37, 1e38, 1e39, 1e40, 1e41,
    1e42, 1e43, 1e44, 1e45, 1e46, 1e47, 1e48, 1e49, 1e50, 1e51, 1e52, 1e53};

static double scaled(double x, int by)
{
    return by >= 0 ? x * powers[by] : x / powers[-by];
}

/* x = 0.d1d2d3... times 10 to the power of exponent + 1. Returns the number of digits; 0: too near
 * to the middle between two numbers of nine digits. */
static int find_digits(double x, char digits[DIGITS], int *ret_exponent)
{
    int two;
    frexp(x, &two);
    int exponent = (int)floor((two - 1) * 0.30102999566398120); /* or one more */
    double whole = scaled(x, DIGITS - 1 - exponent);
    if (whole >= 1e9) whole = scaled(x, DIGITS - 1 - ++exponent);
    if (fabs(whole - floor(whole) - 0.5) < NEAR_MIDDLE) return 0;
    uint32_t number = (uint32_t)(whole + 0.5);
    if (number == 1000000000) {
        number /= 10;
        exponent++;
    }
    for (int i = DIGITS - 1; i >= 0; i--, number /= 10) digits[i] = (char)('0' + number % 10);
    *ret_exponent = exponent;
    int count = DIGITS;
    while (count > 1 && digits[count - 1] == '0') count--;
    return count;
}

/* "1.25e-07" */
static char *write_power(char *to, const char *digits, int count, int exponent)
{
    *to++ = digits[0];
    if (count > 1) *to++ = '.';
    to = (char *)mempcpy(to, digits + 1, (size_t)(count - 1));
    const int size = exponent < 0 ? -exponent : exponent;
    *to++ = 'e';
    *to++ = exponent < 0 ? '-' : '+';
    *to++ = (char)('0' + size / 10);
    *to++ = (char)('0' + size % 10);
    return to;
}

/* "0.000125", "125", "12.5", "1250" */
static char *write_point(char *to, const char *digits, int count, int exponent)
{
    if (exponent < 0) {
        *to++ = '0';
        *to++ = '.';
        for (int i = -1; i > exponent; i--) *to++ = '0';
        return (char *)mempcpy(to, digits, (size_t)count);
    }
    for (int i = 0; i <= exponent; i++) *to++ = i < count ? digits[i] : '0';
    if (count <= exponent + 1) return to;
    *to++ = '.';
    return (char *)mempcpy(to, digits + exponent + 1, (size_t)(count - exponent - 1));
}

size_t number_text(float number, char ret[NUMBER_TEXT_BYTES])
{
    char digits[DIGITS], *to = ret;
    int exponent = 0;
    const double x = fabs((double)number);
    const int count = isfinite(number) && x > 0 ? find_digits(x, digits, &exponent) : 0;
    if (count == 0) return (size_t)snprintf(ret, NUMBER_TEXT_BYTES, "%.9g", (double)number);
    if (number < 0) *to++ = '-';
    to = exponent < LEAST_POINT || exponent >= DIGITS ? write_power(to, digits, count, exponent)
                                                      : write_point(to, digits, count, exponent);
    *to = '\0';
    return (size_t)(to - ret);
}

size_t whole_text(int64_t number, char ret[NUMBER_TEXT_BYTES])
{
    char digits[NUMBER_TEXT_BYTES], *at = digits + sizeof digits;
    uint64_t size = number < 0 ? -(uint64_t)number : (uint64_t)number;
    do *--at = (char)('0' + size % 10);
    while (size /= 10);
    if (number < 0) *--at = '-';
    const size_t length = (size_t)(digits + sizeof digits - at);
    memcpy(ret, at, length);
    ret[length] = '\0';
    return length;
}
