/* test_mapped.c - files that are read by memory (core/base/files/mapped.h). */
#include "core/base/files/mapped.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { BYTES = 1 << 20, ROW = 64 };
static char path[] = "/tmp/test_mapped_XXXXXX";

static int begin(void **state)
{
    static uint8_t all[BYTES];
    for (int i = 0; i < BYTES; i++) all[i] = (uint8_t)(i / ROW);
    snprintf(path, sizeof path, "/tmp/test_mapped_XXXXXX");
    const int descriptor = mkstemp(path);
    if (descriptor < 0) return 1;
    const bool is_there = write(descriptor, all, BYTES) == BYTES;
    close(descriptor);
    return is_there ? 0 : 1;
}

static int end(void **state)
{
    return unlink(path);
}

static void bytes_are_those_of_the_file(void **state)
{
    uint8_t row[ROW];
    struct mapped_file file = mapped_open(path);
    assert_int_equal(file.bytes, BYTES);
    for (int at = 0; at < BYTES; at += 1000 * ROW) {
        assert_int_equal(mapped_read(&file, (uint64_t)at, row, ROW), OK);
        for (int i = 0; i < ROW; i++) assert_int_equal(row[i], (uint8_t)(at / ROW));
    }
    mapped_close(&file);
    assert_null(file.at);
}

static void what_is_no_file_is_not_mapped(void **state)
{
    assert_null(mapped_open("/tmp").at);
    assert_null(mapped_open("/tmp/test_mapped_of_nobody").at);
    assert_int_equal(truncate(path, 0), 0);
    assert_null(mapped_open(path).at);
}

static void a_file_that_is_cut_is_an_error(void **state)
{
    uint8_t row[ROW];
    struct mapped_file file = mapped_open(path);
    assert_int_equal(truncate(path, BYTES / 2), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(mapped_read(&file, BYTES - ROW, row, ROW), ERR_IO);
        assert_non_null(strstr(error_text(), "cannot be read at byte 1048512: it was cut"));
        assert_int_equal(mapped_read(&file, ROW, row, ROW), OK);
        assert_int_equal(row[0], 1);
    }
    mapped_close(&file);
}

/* The rest of its last page is zeros, which are no rows. */
static void a_cut_within_a_page_is_seen_too(void **state)
{
    enum { END = BYTES / 2 + 10 * ROW };
    uint8_t row[ROW];
    struct mapped_file file = mapped_open(path);
    assert_int_equal(truncate(path, END), 0);
    assert_int_equal(mapped_read(&file, END - ROW, row, ROW), OK);
    assert_int_equal(mapped_read(&file, END - ROW / 2, row, ROW), ERR_IO);
    assert_int_equal(mapped_read(&file, END, row, ROW), ERR_IO);
    mapped_close(&file);
}

/* Who touches a file that was cut in another way ends by the signal, as before. */
static void another_fault_is_none_of_its_reading(void **state)
{
    int status;
    uint8_t row[ROW];
    signal(SIGBUS, SIG_DFL);
    struct mapped_file file = mapped_open(path);
    assert_int_equal(mapped_read(&file, 0, row, ROW), OK);
    assert_int_equal(truncate(path, 0), 0);
    const pid_t child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0});
        _exit(*(const volatile uint8_t *)file.at);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGBUS);
    mapped_close(&file);
}

static void a_signal_that_is_sent_ends_the_program(void **state)
{
    int status;
    signal(SIGBUS, SIG_DFL);
    struct mapped_file file = mapped_open(path);
    const pid_t child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0});
        kill(getpid(), SIGBUS);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    mapped_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bytes_are_those_of_the_file, begin, end),
        cmocka_unit_test_setup_teardown(what_is_no_file_is_not_mapped, begin, end),
        cmocka_unit_test_setup_teardown(a_file_that_is_cut_is_an_error, begin, end),
        cmocka_unit_test_setup_teardown(a_cut_within_a_page_is_seen_too, begin, end),
        cmocka_unit_test_setup_teardown(another_fault_is_none_of_its_reading, begin, end),
        cmocka_unit_test_setup_teardown(a_signal_that_is_sent_ends_the_program, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
