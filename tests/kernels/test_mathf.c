/* test_mathf.c - the functions of mathf.h against libm in double, over the whole range of floats.
 */
#include "tests/kernels/support.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

#include "kernels/elements.h"

/* Every float whose bits are a multiple of this is tried: 4 million of them. */
enum { STRIDE = 1009 };

struct function {
    const char *name;
    float (*ours)(float);
    double (*theirs)(double);
    float low, high;
    double ulps; /* allowed distance in units of the last place of the true value */
};

static double expm1_of(double x)
{
    return expm1(x);
}

static double sigmoid_of(double x)
{
    return 1 / (1 + exp(-x));
}

static double softplus_of(double x)
{
    return x > 40 ? x : log1p(exp(x));
}

static const struct function functions[] = {
    {"exp", mathf_exp, exp, -INFINITY, INFINITY, 1.6},
    {"expm1", mathf_expm1_negative, expm1_of, -INFINITY, 0, 2.0},
    {"log", mathf_log, log, 0, INFINITY, 1.5},
    {"log1p", mathf_log1p, log1p, 0, 1, 2.0},
    {"tanh", mathf_tanh, tanh, -INFINITY, INFINITY, 2.0},
    {"erf", mathf_erf, erf, -INFINITY, INFINITY, 2.0},
    {"sigmoid", mathf_sigmoid, sigmoid_of, -INFINITY, INFINITY, 3.0},
    {"softplus", mathf_softplus, softplus_of, -INFINITY, INFINITY, 3.0},
};

static double last_place(double x)
{
    if (fabs(x) < FLT_MIN) return 0x1p-149;
    int exponent;
    frexp(x, &exponent);
    return ldexp(1, exponent - 24);
}

static double distance(const struct function *f, float x)
{
    double want = f->theirs(x), got = f->ours(x);
    if (got == (float)want || (isnan(got) && isnan(want))) return 0;
    if (isinf(got) && fabs(want) > FLT_MAX * (1 - 1e-7)) return 0;
    return fabs(got - want) / last_place(want);
}

static void check_function(const struct function *f)
{
    double worst = 0;
    float worst_at = 0;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += STRIDE) {
        float x = mathf_from_bits((uint32_t)bits);
        if (!(x >= f->low && x <= f->high)) continue;
        double d = distance(f, x);
        if (!(d <= worst)) worst = d, worst_at = x;
    }
    print_message("%-8s within %.2f units of the last place (worst at %g)\n", f->name, worst,
                  worst_at);
    if (!(worst <= f->ulps)) fail_msg("%s: %.2f at %a", f->name, worst, worst_at);
}

static void functions_are_within_units_of_the_last_place(void **state)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) check_function(&functions[i]);
}

static void powers_are_near(void **state)
{
    static const float powers[] = {0, 0.25f, 0.5f, 0.6f, 0.75f, 1, 2};
    for (size_t p = 0; p < sizeof powers / sizeof *powers; p++)
        for (float x = 1e-6f; x < 1e6f; x *= 1.01f) {
            const double want = pow((double)x, (double)powers[p]);
            if (fabs(mathf_power(x, powers[p]) / want - 1) > 4e-6) fail_msg("%a", x);
        }
    assert_true(mathf_power(0, 0) == 1 && mathf_power(0, 0.1f) == 0 && mathf_power(0, 2) == 0);
}

static void functions_pass_nan_on(void **state)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!isnan(functions[i].ours(NAN))) fail_msg("%s", functions[i].name);
    for (int kind = 0; kind < ACTIVATION_COUNT; kind++)
        if (!isnan(element_activate((enum activation)kind, 0.2f, NAN))) fail_msg("kind %d", kind);
}

static void functions_are_right_at_the_edges(void **state)
{
    assert_true(mathf_exp(INFINITY) == INFINITY && mathf_exp(-INFINITY) == 0);
    assert_true(mathf_exp(88.8f) == INFINITY && mathf_exp(-104.0f) == 0 && mathf_exp(0) == 1);
    assert_true(mathf_log(0) == -INFINITY && isnan(mathf_log(-1)) && mathf_log(1) == 0);
    assert_true(mathf_log(INFINITY) == INFINITY);
    assert_true(mathf_tanh(INFINITY) == 1 && mathf_tanh(-INFINITY) == -1 && mathf_tanh(0) == 0);
    assert_true(mathf_erf(INFINITY) == 1 && mathf_erf(-INFINITY) == -1);
    assert_true(mathf_sigmoid(-INFINITY) == 0 && mathf_sigmoid(INFINITY) == 1);
    assert_true(mathf_softplus(INFINITY) == INFINITY && mathf_softplus(-INFINITY) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_within_units_of_the_last_place),
        cmocka_unit_test(powers_are_near),
        cmocka_unit_test(functions_pass_nan_on),
        cmocka_unit_test(functions_are_right_at_the_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
