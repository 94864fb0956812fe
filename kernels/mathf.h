/* mathf.h - exp, log, tanh and erf of floats without branches, tables or calls.
 *
 * The functions of libm cannot be vectorised (they set errno, and the compiler knows no vector
 * form of them). These can: both sides of every choice are computed and one is selected. They are
 * within 2 units in the last place of the true value (tests/kernels/test_mathf.c measures it) and
 * pass NaN on. The polynomials are Chebyshev fits on the interval named beside each.
 */
#ifndef KERNELS_MATHF_H
#define KERNELS_MATHF_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Declaration specifiers of each function; other languages than C define it before. */
#ifndef MATHF
#define MATHF static inline
#endif

MATHF uint32_t mathf_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

MATHF float mathf_from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* 2^n for n in [-126, 127] */
MATHF float mathf_power_of_two(int32_t n)
{
    return mathf_from_bits((uint32_t)(n + 127) << 23);
}

/* x = n ln 2 + r with |r| <= ln(2) / 2: returns e^r - 1. Adding 1.5 * 2^23 rounds to an integer and
 * leaves it in the low bits; ln 2 is subtracted in two parts, the first of which is exact. */
MATHF float mathf_expm1_reduced(float x, int32_t *ret_n)
{
    const float magic = 0x1.8p23f;
    float shifted = x * 1.44269504f + magic;
    float n = shifted - magic;
    float r = x - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    *ret_n = (int32_t)(mathf_bits(shifted) - mathf_bits(magic));

    float p = 0.0001989198131f; /* (e^r - 1 - r) / r^2 on |r| < 0.35, to 1.5e-9 */
    p = p * r + 0.001393454193f;
    p = p * r + 0.008333310024f;
    p = p * r + 0.04166645681f;
    p = p * r + 0.1666666668f;
    p = p * r + 0.5000000014f;
    return p * (r * r) + r;
}

MATHF float mathf_exp(float x)
{
    x = x > 89.0f ? 89.0f : x; /* beyond these the result is infinity or 0 */
    x = x < -104.0f ? -104.0f : x;
    int32_t n;
    float p = mathf_expm1_reduced(x, &n) + 1.0f;
    int32_t half = n >> 1; /* in two steps: 2^n alone may be too large or too small for a float */
    return p * mathf_power_of_two(half) * mathf_power_of_two(n - half);
}

/* e^x - 1 for x <= 0, without cancellation near 0 */
MATHF float mathf_expm1_negative(float x)
{
    x = x < -80.0f ? -80.0f : x;
    int32_t n;
    float p = mathf_expm1_reduced(x, &n);
    float scale = mathf_power_of_two(n);
    return p * scale + (scale - 1.0f);
}

/* ln(m) for m in [sqrt(1/2), sqrt(2)), plus n ln 2 */
MATHF float mathf_log_reduced(float m, float n)
{
    float f = m - 1.0f, s = f / (2.0f + f), z = s * s;
    float p = 0.2333057433f; /* (ln((1+s)/(1-s)) - 2s) / s^3 on z < 0.0295, to 1.2e-9 */
    p = p * z + 0.2855081688f;
    p = p * z + 0.4000012187f;
    p = p * z + 0.6666666655f;
    float half_square = 0.5f * f * f;
    float low = s * (half_square + p * z) - n * 2.12194440e-4f;
    return n * 0.693359375f - ((half_square - low) - f);
}

MATHF float mathf_log(float x)
{
    float scaled = x < 0x1p-126f ? x * 0x1p23f : x; /* a denormal has no leading 1 */
    float n = x < 0x1p-126f ? -23.0f : 0.0f;
    const uint32_t root_half = 0x3f3504f3;
    uint32_t bits = mathf_bits(scaled) + (0x3f800000 - root_half);
    n += (float)((int32_t)(bits >> 23) - 127);
    float m = mathf_from_bits((bits & 0x7fffff) + root_half);
    float result = mathf_log_reduced(m, n);
    float edge = x == 0.0f ? -INFINITY : NAN;
    result = x < INFINITY ? result : x;
    return x > 0.0f ? result : edge;
}

/* ln(1 + x) for x in [0, 1] */
MATHF float mathf_log1p(float x)
{
    float sum = 1.0f + x;
    return mathf_log(sum) + (x - (sum - 1.0f)) / sum; /* what the rounding of 1 + x lost */
}

/* x^y for x >= 0; 0^0 is 1. Off by a few units of the last place, more where |y ln x| is large. */
MATHF float mathf_power(float x, float y)
{
    float log = mathf_log(x);
    log = log < -1e30f ? -1e30f : log; /* 0 times infinity is not 0 */
    return mathf_exp(y * log);
}

MATHF float mathf_abs(float x)
{
    return mathf_from_bits(mathf_bits(x) & 0x7fffffff);
}

MATHF float mathf_copy_sign(float size, float sign)
{
    return mathf_from_bits((mathf_bits(size) & 0x7fffffff) | (mathf_bits(sign) & 0x80000000));
}

MATHF float mathf_tanh(float x)
{
    float size = mathf_abs(x), z = x * x;
    float p = 0.002269501684f; /* (tanh(x) - x) / x^3 on |x| < 0.63, to 1.8e-9 */
    p = p * z - 0.008323187058f;
    p = p * z + 0.02176250291f;
    p = p * z - 0.05395846163f;
    p = p * z + 0.1333330015f;
    p = p * z - 0.3333333315f;
    float small = x + x * z * p;
    float large = 1.0f - 2.0f / (mathf_exp(2.0f * size) + 1.0f);
    return size < 0.6f ? small : mathf_copy_sign(large, x);
}

MATHF float mathf_erf(float x)
{
    float size = mathf_abs(x), z = x * x;
    float p = 7.875875063e-5f; /* erf(x) / x - 1 on |x| < 1, to 1.3e-9 */
    p = p * z - 0.0008016864287f;
    p = p * z + 0.005189087423f;
    p = p * z - 0.02685421201f;
    p = p * z + 0.1128359472f;
    p = p * z - 0.3761262667f;
    p = p * z + 0.1283791658f;
    float small = x + x * p;

    size = size > 4.0f ? 4.0f : size;
    float q = -1.637151415e-6f; /* -ln(1 - erf(x)) on 1 <= x <= 4, to 1.7e-8 */
    q = q * size + 4.605804269e-5f;
    q = q * size - 0.0005968056257f;
    q = q * size + 0.004759596293f;
    q = q * size - 0.02642113601f;
    q = q * size + 0.1100800829f;
    q = q * size + 0.6318260516f;
    q = q * size + 1.130233435f;
    q = q * size - 0.0003201380497f;
    float large = mathf_copy_sign(1.0f - mathf_exp(-q), x);
    return size < 1.0f ? small : large;
}

/* 1 / (1 + e^-x), accurate at both ends */
MATHF float mathf_sigmoid(float x)
{
    float e = mathf_exp(-mathf_abs(x));
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

/* ln(1 + e^x) */
MATHF float mathf_softplus(float x)
{
    float positive = x < 0.0f ? 0.0f : x;
    return positive + mathf_log1p(mathf_exp(-mathf_abs(x)));
}

#endif
