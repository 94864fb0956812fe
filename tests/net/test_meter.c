/* test_meter.c - a meter measures, and bears whoever comes. */
#include "net/meter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <arpa/inet.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/clock.h"

enum { LIMIT_MS = 300000, CALLERS = 8 };

static int call(const char *address)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)atoi(strchr(address, ':') + 1)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void it_measures(void **state)
{
    struct meter *meter;
    struct metered found;
    char address[ADDRESS_MAX];
    assert_int_equal(meter_open("127.0.0.1:0", address, &meter), OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(meter_measure(address, LIMIT_MS, clock_ms() + LIMIT_MS, &found), OK);
        assert_true(found.round_trip_s > 0);
        assert_true(found.bytes_s > 0);
    }
    meter_close(meter);
}

/* Whatever is said is read, and who says what none does is hung up on. */
static void strangers_are_hung_up_on(void **state)
{
    static const unsigned char said[][16] = {
        "GET / HTTP/1.1\r",
        {'d', 't', 'm', 'e', 't', 'e', 'r', '1', 0, 0, 0, 0, 0, 0, 0, 1},
        {'d', 't', 'm', 'e', 't', 'e', 'r', '1', 255, 255, 255, 255, 255, 255, 255, 255},
    };
    struct meter *meter;
    struct metered found;
    char address[ADDRESS_MAX], byte;
    assert_int_equal(meter_open("127.0.0.1:0", address, &meter), OK);
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        const int fd = call(address);
        assert_int_equal(send(fd, said[i], sizeof said[i], 0), sizeof said[i]);
        assert_true(recv(fd, &byte, 1, 0) <= 0);
        close(fd);
    }
    int callers[CALLERS];
    for (int i = 0; i < CALLERS; i++) { /* amid a word, who stay */
        callers[i] = call(address);
        assert_int_equal(send(callers[i], "dtme", 4, 0), 4);
    }
    assert_int_equal(meter_measure(address, LIMIT_MS, clock_ms() + LIMIT_MS, &found), OK);
    meter_close(meter);
    for (int i = 0; i < CALLERS; i++) close(callers[i]);
}

static void who_is_no_meter_and_who_is_not_there(void **state)
{
    struct metered found;
    char address[ADDRESS_MAX];
    int fd;
    assert_int_equal(meter_measure("127.0.0.1:1", 0, clock_ms() + LIMIT_MS, &found), ERR_TIMEOUT);
    assert_int_equal(meter_measure("nothing", 0, clock_ms() + LIMIT_MS, &found), ERR_INPUT);
    assert_int_equal(address_reserve("127.0.0.1:0", address, &fd), OK);
    const uint64_t soon_ms = clock_ms() + 50;
    assert_int_equal(meter_measure(address, LIMIT_MS, soon_ms, &found),
                     ERR_TIMEOUT); /* nobody accepts */
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_measures),
        cmocka_unit_test(strangers_are_hung_up_on),
        cmocka_unit_test(who_is_no_meter_and_who_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
