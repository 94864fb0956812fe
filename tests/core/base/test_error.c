/* The text of a failure: kept per thread, prefixed on the way up, bounded. */
#include "core/base/error.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#undef fail /* cmocka has a macro of this name */

static err inner(void)
{
    return fail(ERR_PEER, "lost %s", "ps/1");
}

static err outer(void)
{
    err e = inner();
    if (e) return fail_prefix(e, "step %d", 7);
    return OK;
}

static void prefixes_are_put_in_front_and_the_kind_is_kept(void **state)
{
    assert_int_equal(outer(), ERR_PEER);
    assert_string_equal(error_text(), "step 7: lost ps/1");
}

static err tries(err first, int *calls)
{
    TRY(first);
    ++*calls;
    return OK;
}

static void try_returns_at_once_only_on_failure(void **state)
{
    int calls = 0;
    assert_int_equal(tries(ERR_IO, &calls), ERR_IO);
    assert_int_equal(calls, 0);
    assert_int_equal(tries(OK, &calls), OK);
    assert_int_equal(calls, 1);
}

static void the_old_text_may_be_an_argument_of_the_new(void **state)
{
    assert_int_equal(fail(ERR_INPUT, "bad value"), ERR_INPUT);
    assert_int_equal(fail(ERR_IO, "once more: %s, %s", error_text(), error_text()), ERR_IO);
    assert_string_equal(error_text(), "once more: bad value, bad value");
    assert_int_equal(fail_prefix(ERR_IO, "<%s>", error_text()), ERR_IO);
    assert_string_equal(error_text(), "<once more: bad value, bad value>: once more: bad value, "
                                      "bad value");
}

static void what_is_quoted_cannot_talk_to_the_terminal(void **state)
{
    assert_int_equal(fail(ERR_INPUT, "%s: no such file", "\x1b]0;mine\x07.json"), ERR_INPUT);
    assert_string_equal(error_text(), "\\x1b]0;mine\\x07.json: no such file");
    assert_int_equal(fail_prefix(ERR_INPUT, "\xc2\x9b"
                                            "2J"),
                     ERR_INPUT);
    assert_string_equal(error_text(), "\\xc2\\x9b2J: \\x1b]0;mine\\x07.json: no such file");

    char word[ERROR_TEXT_MAX];
    memset(word, '\x1b', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    assert_int_equal(fail(ERR_INPUT, "%s", word), ERR_INPUT);
    assert_true(strlen(error_text()) < ERROR_TEXT_MAX);
    assert_string_equal(error_text() + strlen(error_text()) - 3, "...");
}

static void a_long_text_is_cut_and_says_so(void **state)
{
    char word[ERROR_TEXT_MAX * 2];
    memset(word, 'x', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    assert_int_equal(fail(ERR_INPUT, "%s", word), ERR_INPUT);
    assert_int_equal(strlen(error_text()), ERROR_TEXT_MAX - 1);
    assert_non_null(strstr(error_text(), "x...x"));
    for (int i = 0; i < 300; i++) assert_int_equal(fail_prefix(ERR_INPUT, "level%d", i), ERR_INPUT);
    assert_in_range(strlen(error_text()), ERROR_TEXT_MAX - 4, ERROR_TEXT_MAX - 1);
    assert_memory_equal(error_text(), "level299: level298: ", 20);
}

/* Cutting never leaves half a character: "é" is two bytes. */
static void cutting_leaves_whole_characters(void **state)
{
    for (int shift = 0; shift < 2; shift++) {
        char word[ERROR_TEXT_MAX];
        size_t length = 0;
        while (length + 3 < sizeof word) {
            memcpy(word + length, "\xc3\xa9", 2);
            length += 2;
        }
        word[length] = '\0';
        assert_int_equal(fail(ERR_INPUT, "%s", word), ERR_INPUT);
        assert_int_equal(fail_prefix(ERR_INPUT, "%s", shift ? "ab" : "a"), ERR_INPUT);
        const char *text = error_text(), *cut = strstr(text, "...");
        assert_non_null(cut);
        assert_int_equal((unsigned char)cut[-1], 0xa9);
        assert_int_equal((unsigned char)cut[3], 0xc3);
    }
}

/* However long names are, what is wrong with them is said. */
static void long_paths_do_not_cut_the_reason(void **state)
{
    char path[4096];
    memset(path, 'd', sizeof path - 1);
    for (size_t i = 0; i < sizeof path; i += 200) path[i] = '/';
    path[sizeof path - 1] = '\0';
    assert_int_equal(fail(ERR_INPUT, "%s: line 7: expected a number, got \"x\"", path), ERR_INPUT);
    assert_int_equal(fail_prefix(ERR_INPUT, "%s and %s", path, path), ERR_INPUT);
    assert_int_equal(fail_prefix(ERR_INPUT, "data.train"), ERR_INPUT);
    assert_true(strlen(error_text()) < ERROR_TEXT_MAX);
    assert_memory_equal(error_text(), "data.train: /ddd", 16);
    assert_non_null(strstr(error_text(), ": line 7: expected a number, got \"x\""));
}

static void *fail_elsewhere(void *text_before)
{
    strcpy(text_before, error_text());
    (void)!fail(ERR_DEVICE, "in the other thread");
    return NULL;
}

static void each_thread_has_a_text_of_its_own(void **state)
{
    char text_before[ERROR_TEXT_MAX] = "unset";
    pthread_t thread;
    assert_int_equal(fail(ERR_IO, "here"), ERR_IO);
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, text_before), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_string_equal(text_before, "");
    assert_string_equal(error_text(), "here");
}

static void every_kind_has_a_name_of_its_own(void **state)
{
    for (int a = OK; a <= ERR_STOPPED; a++) {
        assert_string_not_equal(error_kind_name(a), "unknown error");
        for (int b = OK; b < a; b++)
            assert_string_not_equal(error_kind_name(a), error_kind_name(b));
    }
    assert_string_equal(error_kind_name(1000), "unknown error");
    assert_string_equal(error_kind_name(-1), "unknown error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefixes_are_put_in_front_and_the_kind_is_kept),
        cmocka_unit_test(try_returns_at_once_only_on_failure),
        cmocka_unit_test(the_old_text_may_be_an_argument_of_the_new),
        cmocka_unit_test(what_is_quoted_cannot_talk_to_the_terminal),
        cmocka_unit_test(a_long_text_is_cut_and_says_so),
        cmocka_unit_test(long_paths_do_not_cut_the_reason),
        cmocka_unit_test(cutting_leaves_whole_characters),
        cmocka_unit_test(each_thread_has_a_text_of_its_own),
        cmocka_unit_test(every_kind_has_a_name_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
