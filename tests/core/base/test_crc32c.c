/* CRC-32C: published values (RFC 3720 B.4), and both ways against each other. */
#include "core/base/crc32c.h"
#include "core/base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void the_published_values_are_met(void **state)
{
    uint8_t bytes[32] = {0};
    assert_int_equal(crc32c("123456789", 9), 0xe3069283u);
    assert_int_equal(crc32c(bytes, 32), 0x8a9136aau);
    memset(bytes, 0xff, 32);
    assert_int_equal(crc32c(bytes, 32), 0x62a8ab43u);
    for (int i = 0; i < 32; i++) bytes[i] = (uint8_t)i;
    assert_int_equal(crc32c(bytes, 32), 0x46dd794eu);
    for (int i = 0; i < 32; i++) bytes[i] = (uint8_t)(31 - i);
    assert_int_equal(crc32c(bytes, 32), 0x113fdb5cu);
    assert_int_equal(crc32c("", 0), 0);
}

static void extending_is_the_same_as_one_piece(void **state)
{
    static const char text[] = "what is written in pieces is read as one";
    const size_t bytes = sizeof text - 1;
    for (size_t cut = 0; cut <= bytes; cut++) {
        const uint32_t first = crc32c(text, cut);
        assert_int_equal(crc32c_extend(first, text + cut, bytes - cut), crc32c(text, bytes));
    }
}

static void hardware_and_software_agree_at_every_length_and_alignment(void **state)
{
    uint8_t bytes[300];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)random_u64(1, i);
    for (size_t start = 0; start < 9; start++) {
        for (size_t length = 0; length <= sizeof bytes - start; length++) {
            uint32_t soft = ~0u, hard = ~0u;
            crc32c_software(&soft, bytes + start, length);
            if (!crc32c_hardware(&hard, bytes + start, length)) skip();
            assert_int_equal(soft, hard);
        }
    }
}

static void software_alone_meets_the_published_value(void **state)
{
    uint32_t soft = ~0u;
    crc32c_software(&soft, "123456789", 9);
    assert_int_equal(~soft, 0xe3069283u);
}

/* The first 12 bytes of a TFRecord file that TensorFlow wrote: a length of 8 bytes, and its masked
 * checksum. */
static void masking_is_tensorflows(void **state)
{
    static const uint8_t length[8] = {0x64, 0x01};
    assert_int_equal(crc32c_mask(crc32c(length, 8)), 0x078c8f45u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_values_are_met),
        cmocka_unit_test(extending_is_the_same_as_one_piece),
        cmocka_unit_test(hardware_and_software_agree_at_every_length_and_alignment),
        cmocka_unit_test(software_alone_meets_the_published_value),
        cmocka_unit_test(masking_is_tensorflows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
