/* Paths and URLs: whose they are, how they are put together, and what of them is shown. */
#include "core/base/files/file_system.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#undef fail /* cmocka has a macro of this name */

static void a_scheme_makes_a_url(void **state)
{
    assert_true(path_is_url("s3://bucket/key"));
    assert_true(path_is_url("http://"));
    assert_false(path_is_url("/s3://"));
    assert_false(path_is_url("C://x"));
    assert_false(path_is_url("a b://x"));
    assert_false(path_is_url("://x"));
    assert_false(path_is_url("s3:/x"));
    assert_true(path_is_relative("a/b"));
    assert_false(path_is_relative("/a"));
    assert_false(path_is_relative("s3://a/b"));
}

static void assert_joined(const char *directory, const char *path, const char *expected)
{
    char *joined = path_join(directory, path);
    assert_string_equal(joined, expected);
    free(joined);
}

static void relative_paths_follow_their_directory(void **state)
{
    assert_joined(NULL, "a", "a");
    assert_joined("", "a", "a");
    assert_joined(".", "a", "a");
    assert_joined("d", "a", "d/a");
    assert_joined("d", "/a", "/a");
    assert_joined("d", "s3://b/a", "s3://b/a");
    assert_joined("s3://b/d", "a", "s3://b/d/a");
    assert_joined("s3://b/d/", "a", "s3://b/d/a");
    assert_joined("s3://b/d", "/a", "/a");
}

static void what_others_find_is_told_from_the_root(void **state)
{
    static const char *const as_they_are[] = {"/a", "s3://b/a", "-"};
    char *here = getcwd(NULL, 0), *joined = path_join(here, "a"), *whole = path_from_here("a");
    assert_string_equal(whole, joined);
    assert_int_equal(whole[0], '/');
    free(here);
    free(joined);
    free(whole);
    for (int i = 0; i < 3; i++) {
        whole = path_from_here(as_they_are[i]);
        assert_string_equal(whole, as_they_are[i]);
        free(whole);
    }
}

static void assert_shown(const char *path, const char *expected)
{
    char shown[PATH_BYTES_MAX];
    assert_string_equal(path_shown(path, shown), expected);
}

static void secrets_are_not_shown(void **state)
{
    assert_shown("a@b?token=1", "a@b?token=1"); /* no URL */
    assert_shown("http://h/a@b", "http://h/a@b");
    assert_shown("http://h:80/a@b", "http://h:80/a@b");
    assert_shown("http://[::1]:80/a@b", "http://[::1]:80/a@b");
    assert_shown("http://u:p@h/a", "http://h/a");
    assert_shown("http://u@h/a", "http://h/a");
    assert_shown("http://u:p@q@h/a", "http://h/a");
    assert_shown("http://u:p/q@h/a", "http://h/a");
    assert_shown("http://h/a?", "http://h/a?");
    assert_shown("http://h/a?x=1&y=2", "http://h/a?x=1&y=2");
    assert_shown("http://h/a?sig=1234", "http://h/a?sig=***");
    assert_shown("http://h/a?x=1&X-Amz-Credential=2222&y", "http://h/a?x=1&X-Amz-Credential=***&y");
    assert_shown("http://h/a?AWSAccessKeyId=111&Signature=2222",
                 "http://h/a?AWSAccessKeyId=***&Signature=***");
    assert_shown("hdfs://h/a?delegation=1234", "hdfs://h/a?delegation=***");
    static char path[3 * PATH_BYTES_MAX], shown[PATH_BYTES_MAX];
    memset(path, 'a', sizeof path - 1);
    memcpy(path, "http://h/?", strlen("http://h/?"));
    assert_int_equal(strlen(path_shown(path, shown)), PATH_BYTES_MAX - 1);
}

static void assert_hidden(const char *text, const char *expected, const char *last)
{
    char copy[256];
    snprintf(copy, sizeof copy, "%s", text);
    const char *begin = urls_hide(copy);
    assert_string_equal(copy, expected);
    if (last)
        assert_string_equal(begin, last);
    else
        assert_null(begin);
}

static void secrets_of_a_text_are_hidden(void **state)
{
    assert_hidden("no URL: a@b", "no URL: a@b", NULL);
    assert_hidden("\"a\": \"http://u:p@h/a\"", "\"a\": \"http://h/a\"", NULL);
    assert_hidden("\"http://u:p\\\"q@h/a\", 1@2", "\"http://h/a\", 1@2", NULL);
    assert_hidden("@http://u:p@h/a: gone, and s3://k:s@b/c", "@http://h/a: gone, and s3://b/c",
                  "s3://b/c");
    assert_hidden("--set data.train.file=http://u:p@h/a?sig=12&x=y -v",
                  "--set data.train.file=http://h/a?sig=**&x=y -v", NULL);
    assert_hidden("expected hdfs://host:port/path, a@b", "expected hdfs://host:port/path, a@b",
                  NULL);
    assert_hidden("://u:p@h HTTP://u:p@h x://", "://u:p@h HTTP://u:p@h x://", "x://");
}

/* Wherever a text ends: the words before the URL lose nothing in their middle. */
static void a_message_has_no_secret_where_it_is_cut(void **state)
{
    static char words[16 * ERROR_TEXT_MAX];
    memset(words, 'x', sizeof words);
    for (size_t i = 9; i < sizeof words; i += 10) words[i] = ' ';
    for (int length = 1; length < (int)sizeof words; length += 1 + length % 7) {
        (void)!fail(ERR_IO, "%.*s http://u:password@h/a", length, words);
        assert_null(strstr(error_text(), "pass"));
        assert_true(strlen(error_text()) < ERROR_TEXT_MAX);
    }
    const char *text = error_text();
    assert_string_equal(text + strlen(text) - 3, "...");
    (void)!fail(ERR_IO, "http://u:password@h/a");
    assert_string_equal(error_text(), "http://h/a");
}

static void a_pattern_means_itself_where_it_is_plain(void **state)
{
    char *escaped = pattern_escape("d[1]/*.csv", 5);
    assert_true(pattern_fits(escaped, "d[1]/a.csv"));
    assert_false(pattern_fits(escaped, "d1/a.csv"));
    assert_false(pattern_fits(escaped, "d[1]/b/a.csv"));
    assert_false(pattern_fits(escaped, "d[1]/.csv"));
    free(escaped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scheme_makes_a_url),
        cmocka_unit_test(relative_paths_follow_their_directory),
        cmocka_unit_test(what_others_find_is_told_from_the_root),
        cmocka_unit_test(secrets_are_not_shown),
        cmocka_unit_test(secrets_of_a_text_are_hidden),
        cmocka_unit_test(a_message_has_no_secret_where_it_is_cut),
        cmocka_unit_test(a_pattern_means_itself_where_it_is_plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
