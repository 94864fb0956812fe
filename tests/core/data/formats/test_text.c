/* text: characters and words as ids, windows and lanes, vocabularies */
#include "tests/core/data/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/data/stats/words.h"

#define SOURCE(more) "{'format': 'text', 'file': 'x', 'time': 2" more "}"

struct text_row {
    int64_t ids[2];
    int32_t labels[2];
};

static void assert_rows(const char *source, const struct text_row *rows, int64_t count,
                        int64_t buckets)
{
    struct dataset d;
    source_open_ok(source, &d);
    assert_int_equal(d.rows, count);
    assert_int_equal(d.columns[FEATURES].buckets, buckets);
    assert_int_equal(d.columns[LABELS].dtype, INT32);
    for (int64_t i = 0; i < count; i++) {
        assert_memory_equal((const int64_t *)d.columns[FEATURES].at + 2 * i, rows[i].ids,
                            sizeof rows[i].ids);
        assert_memory_equal((const int32_t *)d.columns[LABELS].at + 2 * i, rows[i].labels,
                            sizeof rows[i].labels);
    }
    dataset_close(&d);
}

/* By value: \n 0, a 1, b 2, c 3, \xc3 4 */
static void characters_are_ranked_by_their_value(void **state)
{
    static const struct text_row windows[] = {{{2, 1}, {1, 3}}, {{3, 2}, {2, 1}}, {{1, 4}, {4, 0}}};
    static const struct text_row close[] = {{{2, 1}, {1, 3}}, {{1, 3}, {3, 2}}};
    file_write_text("x", "bacba\xc3\n");
    assert_rows(SOURCE(""), windows, 3, 5);
    assert_rows(SOURCE(", 'stride': 1, 'take': 2"), close, 2, 5);
    assert_rows(SOURCE(", 'part': [0.25, 1], 'stride': 1, 'take': 1"), close + 1, 1, 5);
    assert_refused(SOURCE(", 'part': [0.5, 0.5]"), "part", NULL);
    assert_refused(SOURCE(", 'part': [0.5]"), "part", NULL);
    file_write_gzip("x", "bacba\xc3\n", 7);
    assert_rows(SOURCE(""), windows, 3, 5);
}

/* Stretches of 4 and what is left: of row r, row r + 2 continues. */
static void lanes_lie_side_by_side(void **state)
{
    static const struct text_row lanes[] = {
        {{0, 1}, {1, 2}}, {{4, 5}, {5, 6}}, {{2, 3}, {3, 4}}, {{6, 7}, {7, 8}}};
    static const struct text_row short_lanes[] = {{{0, 1}, {1, 2}}, {{4, 5}, {5, 6}}};
    struct dataset d;
    file_write_text("x", "abcdefghi");
    assert_rows(SOURCE(", 'order': 'lanes', 'lanes': 2"), lanes, 4, 9);
    source_open_ok(SOURCE(", 'order': 'lanes', 'lanes': 2"), &d);
    assert_int_equal(d.lanes, 2);
    dataset_close(&d);
    file_write_text("x", "abcdefgh"); /* the last of a lane has nothing behind it */
    assert_rows(SOURCE(", 'order': 'lanes', 'lanes': 2"), short_lanes, 2, 8);
}

/* The most frequent first, of equal ones by their bytes */
static void words_have_ids_by_how_often_they_come(void **state)
{
    static const struct text_row all[] = {{{1, 0}, {0, 2}}, {{2, 0}, {0, 3}}};
    static const struct text_row most[] = {{{0, 1}, {1, 0}}, {{0, 1}, {1, 0}}};
    static const struct text_row listed[] = {{{2, 1}, {1, 0}}, {{0, 1}, {1, 3}}};
    file_write_text("x", " b a\nc\t\ta  d\n");
    assert_rows(SOURCE(", 'unit': 'words'"), all, 2, 4);
    assert_rows(SOURCE(", 'unit': 'words', 'words': 1"), most, 2, 2);
    file_write_text("v", "c\na\nb\n<unk>\n");
    assert_rows(SOURCE(", 'unit': 'words', 'vocabulary': 'v'"), listed, 2, 4);
}

/* "a b . b c . . a": the last line has no end, and the most frequent is . */
static void ends_of_lines_may_count_as_a_word(void **state)
{
    static const struct text_row rows[] = {{{1, 2}, {2, 0}}, {{0, 2}, {2, 3}}, {{3, 0}, {0, 0}}};
    file_write_text("x", " a b \nb c\n \n a");
    assert_rows(SOURCE(", 'unit': 'words', 'line_end': '.'"), rows, 3, 4);
    file_write_text("v", "a\nb\nc\n");
    assert_refused(SOURCE(", 'unit': 'words', 'line_end': '.', 'vocabulary': 'v'"),
                   "offset 5:", "\".\"", NULL);
    assert_refused(SOURCE(", 'line_end': '.'"), "line_end: only of", NULL);
    assert_refused(SOURCE(", 'unit': 'words', 'line_end': 'a b'"), "line_end: expected a word",
                   NULL);
    assert_refused(SOURCE(", 'unit': 'words', 'line_end': ''"), "line_end: expected a word", NULL);
}

/* Of characters it is any text that has them. */
static void a_vocabulary_says_the_ids_of_several_files(void **state)
{
    static const struct text_row rows[] = {{{3, 1}, {1, 3}}};
    struct dataset one, other;
    file_write_text("v", "abcd");
    file_write_text("x", "dbd");
    assert_rows(SOURCE(", 'vocabulary': 'v'"), rows, 1, 4);
    source_open_ok(SOURCE(", 'vocabulary': 'v'"), &one);
    source_open_ok(SOURCE(""), &other);
    assert_true(one.meanings != 0 && other.meanings != 0 && one.meanings != other.meanings);
    dataset_close(&one);
    dataset_close(&other);
    file_write_text("x", "dcba");
    source_open_ok(SOURCE(", 'vocabulary': 'v'"), &one);
    source_open_ok(SOURCE(""), &other);
    assert_true(one.meanings == other.meanings);
    dataset_close(&one);
    dataset_close(&other);
}

/* Opens pairs of a text of one-letter words, and writes them: "ab ba " */
static void open_pairs(const char *more, char *ret_pairs, struct dataset *d)
{
    char source[256];
    snprintf(source, sizeof source,
             "{'format': 'text', 'file': 'x', 'vocabulary': 'v', 'unit': 'words', "
             "'order': 'skip_gram', %s}",
             more);
    source_open_ok(source, d);
    assert_int_equal(d->columns[LABELS].shape.rank, 0);
    for (int64_t i = 0; i < d->rows; i++) {
        const int64_t word = ((const int64_t *)d->columns[FEATURES].at)[i];
        const int32_t label = ((const int32_t *)d->columns[LABELS].at)[i];
        *ret_pairs++ = (char)('a' + word);
        *ret_pairs++ = (char)('a' + label);
        *ret_pairs++ = ' ';
    }
    *ret_pairs = 0;
}

static void words_are_paired_with_their_neighbours(void **state)
{
    struct dataset d;
    char pairs[256];
    file_write_text("v", "a\nb\nc\nd\n");
    file_write_text("x", "c a b a");
    open_pairs("'window': 1", pairs, &d);
    assert_string_equal(pairs, "ca ac ab ba ba ab ");
    assert_int_equal(d.columns[FEATURES].buckets, 4);
    const struct occurrences *counted = d.columns[LABELS].occurrences;
    assert_int_equal(counted->count, 4);
    assert_memory_equal(counted->at, ((double[]){2, 1, 1, 0}), 4 * sizeof(double));
    dataset_close(&d);
    open_pairs("'window': 9, 'part': [0.25, 1]", pairs, &d);
    assert_string_equal(pairs, "ab aa ba ba aa ab ");
    dataset_close(&d);
}

/* Of words that are more frequent than s the share (sqrt(f / s) + 1) s / f stays, others all; with
 * a window of one word of the text, each word that is kept has its neighbours among these. Windows
 * that are drawn are of each size equally often. */
static void frequent_words_are_left_out_by_the_seed(void **state)
{
    enum { WORDS = 40000 };
    static char text[2 * WORDS + 1], pairs[12 * WORDS];
    struct dataset d;
    for (int i = 0; i < WORDS; i++) {
        text[2 * i] = i % 100 == 7 ? 'b' : 'a';
        text[2 * i + 1] = ' ';
    }
    file_write_text("v", "a\nb\n");
    file_write_text("x", text);
    open_pairs("'window': 1, 'subsample': 0.05", pairs, &d);
    int64_t times[2] = {0};
    for (int64_t i = 0; i < d.rows; i++) times[((const int64_t *)d.columns[FEATURES].at)[i]]++;
    const double share = (sqrt(0.99 / 0.05) + 1) * 0.05 / 0.99, kept = 0.99 * WORDS * share;
    assert_true(fabs((double)times[0] / 2 - kept) < 5 * sqrt(kept));
    assert_true(times[1] / 2 >= WORDS / 100 - 1 && times[1] / 2 <= WORDS / 100);
    dataset_close(&d);
    open_pairs("'window': 2, 'random_window': true", pairs, &d);
    assert_true(fabs((double)d.rows - 3.0 * WORDS) < 5 * sqrt(WORDS));
    dataset_close(&d);
}

static void what_does_not_fit_is_refused(void **state)
{
    char long_word[WORD_BYTES_MAX + 2] = "";
    file_write_text("x", "ab");
    assert_refused(SOURCE(""), "2 characters are too few for a row of 2", NULL);
    assert_refused(SOURCE(", 'order': 'lanes', 'lanes': 2"), "in each lane", NULL);
    assert_refused(SOURCE(", 'order': 'lanes'"), "lanes: expected how many", NULL);
    assert_refused(SOURCE(", 'lanes': 2"), "lanes", NULL);
    assert_refused(SOURCE(", 'window': 3"), "window: only of", NULL);
    assert_refused(SOURCE(", 'order': 'skip_gram', 'window': 3"), "time: not of", NULL);
    assert_refused("{'format': 'text', 'file': 'x', 'order': 'skip_gram'}", "window: expected",
                   NULL);
    assert_refused("{'format': 'text', 'file': 'x'}", "time: expected", NULL);
    assert_refused(SOURCE(", 'words': 3"), "words: only of", NULL);
    assert_refused(SOURCE(", 'vocabulary': 'absent'"), "absent", NULL);
    file_write_text("v", "a");
    assert_refused(SOURCE(", 'vocabulary': 'v'"), "offset 1", "0x62", NULL);
    assert_refused(SOURCE(", 'unit': 'words', 'vocabulary': 'v'"), "offset 0", "\"ab\"", "<unk>",
                   NULL);
    file_write_text("v", "ab\nab\n");
    assert_refused(SOURCE(", 'unit': 'words', 'vocabulary': 'v'"), "twice", NULL);
    assert_refused(SOURCE(", 'unit': 'words', 'vocabulary': 'v', 'words': 2"), "one of the two",
                   NULL);
    file_write("x", "a\0b", 3);
    assert_refused(SOURCE(""), "offset 1 is a byte 0", NULL);
    assert_refused(SOURCE(", 'unit': 'words'"), "offset 1 is a byte 0", NULL);
    memset(long_word, 'y', WORD_BYTES_MAX + 1);
    file_write_text("x", long_word);
    assert_refused(SOURCE(", 'unit': 'words'"), "1 words have more than 1024 bytes", NULL);
    file_write_text("x", " \n ");
    assert_refused(SOURCE(", 'unit': 'words'"), "there are none", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_are_ranked_by_their_value),
        cmocka_unit_test(lanes_lie_side_by_side),
        cmocka_unit_test(words_have_ids_by_how_often_they_come),
        cmocka_unit_test(ends_of_lines_may_count_as_a_word),
        cmocka_unit_test(a_vocabulary_says_the_ids_of_several_files),
        cmocka_unit_test(words_are_paired_with_their_neighbours),
        cmocka_unit_test(frequent_words_are_left_out_by_the_seed),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
