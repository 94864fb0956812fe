/* What arrives at standard error: through a pipe, and through a terminal. */
#include "core/base/log.h"
#include "core/base/log_kept.h"

#include <fcntl.h>
#include <pty.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { OUTPUT_MAX = 32768 };

/* Standard error goes to a pipe or to a terminal of our own while a test writes. */
struct capture {
    int reader, kept; /* descriptors; kept: the real standard error */
    char output[OUTPUT_MAX];
};

static void capture_with(struct capture *capture, int reader, int writer)
{
    fflush(stderr);
    capture->reader = reader;
    capture->kept = dup(STDERR_FILENO);
    assert_true(capture->kept >= 0);
    assert_int_equal(dup2(writer, STDERR_FILENO), STDERR_FILENO);
    close(writer);
    assert_int_equal(fcntl(reader, F_SETFL, O_NONBLOCK), 0);
}

static void capture_pipe(struct capture *capture)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    capture_with(capture, ends[0], ends[1]);
}

static void capture_terminal(struct capture *capture, int columns)
{
    int master, slave;
    const struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    if (openpty(&master, &slave, NULL, NULL, &size)) skip();
    setenv("TERM", "xterm", 1);
    capture_with(capture, master, slave);
}

/* All that was written, in one read per write. */
static const char *capture_end(struct capture *capture)
{
    size_t length = 0;
    ssize_t bytes;
    while ((bytes = read(capture->reader, capture->output + length, OUTPUT_MAX - 1 - length)) > 0)
        length += (size_t)bytes;
    capture->output[length] = '\0';
    dup2(capture->kept, STDERR_FILENO);
    close(capture->kept);
    close(capture->reader);
    return capture->output;
}

static void assert_matches(const char *text, const char *pattern)
{
    regex_t regex;
    assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    const int result = regexec(&regex, text, 0, NULL, 0);
    regfree(&regex);
    if (result) fail_msg("\"%s\" does not match \"%s\"", text, pattern);
}

static int reset(void **state)
{
    log_set_level(LOG_INFO);
    log_set_task("");
    return 0;
}

static void lines_have_time_task_and_text(void **state)
{
    struct capture capture;
    capture_pipe(&capture);
    log_line(LOG_INFO, "step %d", 100);
    log_set_task("worker/1");
    log_line(LOG_INFO, "ready");
    assert_matches(capture_end(&capture), "^[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\\.[0-9]{3} step 100\n"
                                          "[0-9:]{8}\\.[0-9]{3} worker/1: ready\n$");
}

static void only_warnings_and_errors_name_their_level(void **state)
{
    struct capture capture;
    capture_pipe(&capture);
    log_set_level(LOG_DEBUG);
    log_set_task("ps/0");
    log_line(LOG_ERROR, "a");
    log_line(LOG_WARNING, "b");
    log_line(LOG_INFO, "c");
    log_line(LOG_DEBUG, "d");
    assert_matches(capture_end(&capture), " ps/0: ERROR: a\n.* ps/0: WARNING: b\n.* ps/0: c\n.* "
                                          "ps/0: d\n$");
}

static void lines_below_the_level_are_not_written(void **state)
{
    struct capture capture;
    capture_pipe(&capture);
    log_line(LOG_DEBUG, "hidden");
    log_set_level(LOG_ERROR);
    log_line(LOG_WARNING, "hidden");
    log_line(LOG_ERROR, "shown");
    assert_matches(capture_end(&capture), "^[0-9:.]+ ERROR: shown\n$");
}

/* Whatever the words: they may be a stranger's. */
static void a_limited_line_is_said_now_and_then_with_a_count(void **state)
{
    struct capture capture;
    struct log_limit limit = {0}, other = {0};
    capture_pipe(&capture);
    log_limited(&limit, 5, LOG_WARNING, "refused %d", 1);
    for (int i = 0; i < 1000; i++)
        log_limited(&limit, 6 + (uint64_t)i, LOG_WARNING, "refused %d", i);
    log_limited(&limit, 5 + LOG_LIMITED_MS - 1, LOG_WARNING, "refused last");
    log_limited(&other, 7, LOG_WARNING, "another");
    log_limited(&limit, 5 + LOG_LIMITED_MS, LOG_WARNING, "refused again");
    log_limited(&limit, 5 + 2 * LOG_LIMITED_MS, LOG_WARNING, "refused late");
    assert_matches(capture_end(&capture),
                   "^[0-9:.]+ WARNING: refused 1\n[0-9:.]+ WARNING: another\n"
                   "[0-9:.]+ WARNING: refused again \\(and 1001 more like this since the last such "
                   "line\\)\n[0-9:.]+ WARNING: refused late\n$");
}

static void of_lines_of_many_kinds_so_many_are_said(void **state)
{
    struct capture capture;
    struct log_budget budget = {0};
    capture_pipe(&capture);
    for (uint64_t i = 0; i < 1000; i++) log_budgeted(&budget, 2, 100000 + i, LOG_INFO, "back");
    log_budgeted(&budget, 2, 100000 + LOG_LIMITED_MS, LOG_INFO, "lost");
    assert_matches(capture_end(&capture),
                   "^[0-9:.]+ back\n[0-9:.]+ back\n[0-9:.]+ 998 more lines were left out\n"
                   "[0-9:.]+ lost\n$");
}

static uint64_t test_ms;

static uint64_t test_clock(void)
{
    return test_ms;
}

static int count_lines(const char *output)
{
    int lines = 0;
    for (const char *c = output; *c; c++) lines += *c == '\n';
    return lines;
}

/* A hundred a millisecond, as a loop that goes wrong does. */
static void a_loop_that_logs_is_silenced_and_counted(void **state)
{
    enum { LOOPS = 60000 };
    struct capture capture;
    capture_pipe(&capture);
    log_set_clock(test_clock);
    for (int i = 0; i < LOOPS; i++) {
        test_ms = (uint64_t)i / 100;
        log_line(i % 2 ? LOG_WARNING : LOG_INFO, "%d", i % 10);
    }
    log_line(LOG_INFO, "another place");
    test_ms = LOG_LIMITED_MS;
    log_line(LOG_INFO, "later");
    log_line(LOG_INFO, "more");
    const char *output = capture_end(&capture);
    log_set_clock(NULL);
    assert_int_equal(count_lines(output), LOG_PLACE_LINES + 4);
    assert_matches(output, "another place\n[0-9:.]+ later\n"
                           "[0-9:.]+ 59500 more lines of this kind in the last 10 s: \"0\"\n"
                           "[0-9:.]+ more\n$");
}

static void a_place_that_was_silenced_speaks_again(void **state)
{
    struct capture capture;
    capture_pipe(&capture);
    log_set_clock(test_clock);
    for (int i = 0; i < 2 * LOG_PLACE_LINES; i++) {
        test_ms = i == 2 * LOG_PLACE_LINES - 1 ? 3 * LOG_LIMITED_MS : LOG_LIMITED_MS;
        log_line(LOG_INFO, "line %d", i);
    }
    log_tell_left_out();
    const char *output = capture_end(&capture);
    log_set_clock(NULL);
    assert_int_equal(count_lines(output), LOG_PLACE_LINES + 2);
    assert_matches(output,
                   " 499 more lines of this kind in the last 20 s: \"line 500\"\n.* line 999\n$");
}

static void what_was_asked_for_and_debug_lines_have_no_limit(void **state)
{
    struct capture capture;
    capture_pipe(&capture);
    log_set_level(LOG_DEBUG);
    for (int i = 0; i <= LOG_PLACE_LINES; i++) {
        log_asked("s");
        log_line(LOG_DEBUG, "d");
    }
    assert_int_equal(count_lines(capture_end(&capture)), 2 * (LOG_PLACE_LINES + 1));
}

/* ---- what is kept ---- */

static json_int_t number_at(json_t *kept, size_t i)
{
    return json_integer_value(
        json_object_get(json_array_get(json_object_get(kept, "lines"), i), "number"));
}

static void the_last_lines_are_kept_and_come_in_pages(void **state)
{
    struct capture capture;
    capture_pipe(&capture);
    log_set_task("ps/1");
    for (int i = 0; i < 2 * LOG_KEPT_LINES; i++) log_keep(LOG_WARNING, "a \xff\n");
    capture_end(&capture);
    json_t *all = log_kept_json(0, 0);
    const json_int_t first = number_at(all, 0), next = first + LOG_KEPT_LINES;
    assert_int_equal(json_array_size(json_object_get(all, "lines")), LOG_KEPT_PAGE_MAX);
    assert_int_equal(json_integer_value(json_object_get(all, "next")), first + LOG_KEPT_PAGE_MAX);
    json_t *line = json_array_get(json_object_get(all, "lines"), 0);
    assert_string_equal(json_string_value(json_object_get(line, "task")), "ps/1");
    assert_string_equal(json_string_value(json_object_get(line, "level")), "warning");
    assert_string_equal(json_string_value(json_object_get(line, "text")), "a \\xff\n");
    json_decref(all);
    json_t *last = log_kept_json(0, 3);
    assert_int_equal(json_array_size(json_object_get(last, "lines")), 3);
    assert_int_equal(number_at(last, 2), next - 1);
    json_decref(last);
    json_t *none = log_kept_json((uint64_t)next + 1000, 0); /* of who has seen more than there is */
    assert_int_equal(json_array_size(json_object_get(none, "lines")), 0);
    assert_int_equal(json_integer_value(json_object_get(none, "next")), next);
    json_decref(none);
}

static int due_in(struct log_pace *pace, uint64_t from_ms, uint64_t to_ms)
{
    int due = 0;
    for (uint64_t ms = from_ms; ms < to_ms; ms++) due += log_is_due(pace, ms * 1000000);
    return due;
}

static void a_wait_is_told_ever_more_seldom(void **state)
{
    static const unsigned told_s[] = {10, 20, 30, 45, 68};
    const uint64_t since_ms = 77000, hours_ms = 10 * 3600000;
    uint64_t said_ms = 5, last_ms = since_ms; /* of an earlier wait */
    size_t count = 0;
    (void)state;
    for (uint64_t now_ms = since_ms; now_ms < since_ms + hours_ms; now_ms += 1000) {
        if (!log_wait_is_due(since_ms, said_ms, now_ms)) continue;
        said_ms = now_ms;
        if (count < sizeof told_s / sizeof *told_s)
            assert_int_equal((now_ms - since_ms) / 1000, told_s[count]);
        assert_true(now_ms - last_ms <= LOG_WAIT_SELDOM_MS);
        last_ms = now_ms;
        count++;
    }
    assert_in_range(count, 60, 70);
}

static void lines_about_steps_come_at_a_pace(void **state)
{
    struct log_pace by_itself = {0}, told = {0}, all = {0};
    assert_int_equal(due_in(&by_itself, 1000, 11000), LOG_PACED_FREE + 9);
    log_set_pace(2);
    assert_int_equal(due_in(&told, 5000, 15000), 5);
    log_set_pace(0);
    assert_int_equal(due_in(&all, 5000, 15000), 10000);
    log_set_pace(-1);
}

static void what_a_limit_leaves_out_is_for_debug(void **state)
{
    struct capture capture;
    struct log_limit limit = {0};
    capture_pipe(&capture);
    log_set_level(LOG_DEBUG);
    log_limited(&limit, 0, LOG_WARNING, "one");
    log_limited(&limit, 0, LOG_WARNING, "two");
    assert_matches(capture_end(&capture), "^[0-9:.]+ WARNING: one\n[0-9:.]+ two\n$");
}

/* Text of a peer cannot end a line, nor talk to the terminal. */
static void control_characters_are_spelled_out(void **state)
{
    struct capture capture;
    capture_pipe(&capture);
    log_line(LOG_INFO, "%s", "one\ntwo\r\x1b[2J\x7f\xc3\xa9");
    assert_matches(capture_end(&capture), "^[0-9:.]+ one two\\\\x0d\\\\x1b\\[2J\\\\x7f\xc3\xa9\n$");
}

static void long_lines_are_cut_and_still_end(void **state)
{
    struct capture capture;
    static char word[10000];
    memset(word, 'x', sizeof word - 1);
    capture_pipe(&capture);
    log_line(LOG_INFO, "%s", word);
    const char *output = capture_end(&capture);
    assert_in_range(strlen(output), 4000, 4096);
    assert_string_equal(output + strlen(output) - 2, "x\n");
}

static void long_task_names_are_cut(void **state)
{
    struct capture capture;
    static char task[1000];
    memset(task, 't', sizeof task - 1);
    capture_pipe(&capture);
    log_set_task(task);
    log_line(LOG_INFO, "ready");
    assert_matches(capture_end(&capture), " t{60}: ready\n$");
}

static void a_status_is_not_shown_without_a_terminal(void **state)
{
    struct capture capture;
    capture_pipe(&capture);
    assert_false(log_is_terminal());
    log_status("50 %%");
    assert_string_equal(capture_end(&capture), "");
}

static void a_status_is_redrawn_and_the_next_line_replaces_it(void **state)
{
    struct capture capture;
    capture_terminal(&capture, 80);
    assert_true(log_is_terminal());
    log_status("step %d", 1);
    log_status("step %d", 2);
    log_line(LOG_INFO, "saved");
    log_line(LOG_INFO, "next");
    assert_matches(capture_end(&capture), "^\r\x1b\\[Kstep 1\r\x1b\\[Kstep 2\r\x1b\\[K[0-9:.]+ "
                                          "saved\r?\n[0-9:.]+ next\r?\n$");
}

static void a_status_never_wraps(void **state)
{
    struct capture capture;
    capture_terminal(&capture, 20);
    log_status("%s", "\xc3\xa9t\xc3\xa9 abcdefghijklmnopqrstuvwxyz");
    assert_string_equal(capture_end(&capture), "\r\x1b[K\xc3\xa9t\xc3\xa9 abcdefghijklmno");
    log_clear_status();
}

/* Emacs, build servers and `TERM=dumb` show escape sequences as they are. */
static void a_terminal_that_cannot_redraw_gets_no_status(void **state)
{
    static const char *const kinds[] = {"dumb", "", NULL};
    for (int i = 0; i < 3; i++) {
        struct capture capture;
        capture_terminal(&capture, 80);
        if (kinds[i])
            setenv("TERM", kinds[i], 1);
        else
            unsetenv("TERM");
        assert_false(log_is_terminal());
        log_status("50 %%");
        log_line(LOG_INFO, "saved");
        log_clear_status();
        assert_matches(capture_end(&capture), "^[0-9:.]+ saved\r?\n$");
    }
}

static void a_status_is_cleared_once(void **state)
{
    struct capture capture;
    capture_terminal(&capture, 80);
    log_status("step 1");
    log_clear_status();
    log_clear_status();
    log_line(LOG_INFO, "next");
    assert_matches(capture_end(&capture), "^\r\x1b\\[Kstep 1\r\x1b\\[K[0-9:.]+ next\r?\n$");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(lines_have_time_task_and_text, reset),
        cmocka_unit_test_setup(only_warnings_and_errors_name_their_level, reset),
        cmocka_unit_test_setup(lines_below_the_level_are_not_written, reset),
        cmocka_unit_test_setup(a_limited_line_is_said_now_and_then_with_a_count, reset),
        cmocka_unit_test_setup(a_loop_that_logs_is_silenced_and_counted, reset),
        cmocka_unit_test_setup(a_place_that_was_silenced_speaks_again, reset),
        cmocka_unit_test_setup(what_was_asked_for_and_debug_lines_have_no_limit, reset),
        cmocka_unit_test_setup(the_last_lines_are_kept_and_come_in_pages, reset),
        cmocka_unit_test_setup(of_lines_of_many_kinds_so_many_are_said, reset),
        cmocka_unit_test(a_wait_is_told_ever_more_seldom),
        cmocka_unit_test_setup(lines_about_steps_come_at_a_pace, reset),
        cmocka_unit_test_setup(what_a_limit_leaves_out_is_for_debug, reset),
        cmocka_unit_test_setup(control_characters_are_spelled_out, reset),
        cmocka_unit_test_setup(long_lines_are_cut_and_still_end, reset),
        cmocka_unit_test_setup(long_task_names_are_cut, reset),
        cmocka_unit_test_setup(a_status_is_not_shown_without_a_terminal, reset),
        cmocka_unit_test_setup(a_status_is_redrawn_and_the_next_line_replaces_it, reset),
        cmocka_unit_test_setup(a_status_never_wraps, reset),
        cmocka_unit_test_setup(a_terminal_that_cannot_redraw_gets_no_status, reset),
        cmocka_unit_test_setup(a_status_is_cleared_once, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
