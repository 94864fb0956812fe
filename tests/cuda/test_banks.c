/* test_banks.c - shared memory is written and read without a lane waiting for another's bank. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "tests/cuda/banks.h" /* before cmocka, which makes a macro of fail */

#include <cmocka.h>

static void no_tile_is_written_or_read_with_conflicts(void **state)
{
    static const int widths[] = {32, 64, 128};
    for (int precision = PRECISION_FLOAT32; precision <= PRECISION_BF16; precision++)
        for (int i = 0; i < 3; i++)
            for (int along = 0; along < 2; along++) {
                const struct lines l = bank_lines((enum precision)precision, widths[i], along);
                if (l.written != 1 || l.read != 1)
                    fail_msg("precision %d, %d columns, along %d: %d lines written, %d read",
                             precision, widths[i], along, l.written, l.read);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_tile_is_written_or_read_with_conflicts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
