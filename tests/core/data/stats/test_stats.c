/* stats: quantiles are as near as they say, rare words are forgotten and it is said by how much. */
#include "core/data/stats/quantiles.h"
#include "core/data/stats/words.h"
#include "tests/core/data/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { FRACTIONS = 5 };
static const double fractions[FRACTIONS] = {0, 0.25, 0.5, 0.99, 1};

/* The numbers 0 .. count - 1 in an order that is a permutation where step and count have no common
 * divisor, so that a number is its own rank. */
static void add_all(struct quantiles *q, int64_t count, int64_t step)
{
    for (int64_t i = 0; i < count; i++)
        assert_int_equal(quantiles_add(q, (double)(i * step % count)), OK);
}

static void few_numbers_have_exact_quantiles(void **state)
{
    struct quantiles q = {0};
    double found[FRACTIONS];
    add_all(&q, QUANTILES_EXACT, 1237);
    assert_int_equal(quantiles_find(&q, fractions, FRACTIONS, found), OK);
    assert_int_equal(q.error, 0);
    for (int i = 0; i < FRACTIONS; i++)
        assert_true(found[i] == floor(fractions[i] * (QUANTILES_EXACT - 1) + 0.5));
    quantiles_free(&q);
}

static void quantiles_are_as_near_as_they_say(void **state)
{
    static const int64_t steps[] = {1, 7919, 299999};
    enum { COUNT = 300000 };
    for (int i = 0; i < 3; i++) {
        struct quantiles q = {0};
        double found[FRACTIONS];
        add_all(&q, COUNT, steps[i]);
        assert_int_equal(quantiles_find(&q, fractions, FRACTIONS, found), OK);
        assert_in_range(q.error, 1, COUNT / 500);
        for (int k = 0; k < FRACTIONS; k++)
            assert_true(fabs(found[k] - fractions[k] * (COUNT - 1)) <= (double)q.error + 1);
        quantiles_free(&q);
    }
}

static void add_word(struct word_counts *w, int word)
{
    char text[16];
    const int length = snprintf(text, sizeof text, "w%d", word);
    assert_int_equal(words_add(w, text, (size_t)length), OK);
}

static void words_come_by_count_and_then_by_bytes(void **state)
{
    struct word_counts w = {.max = 10};
    const struct word_count **all;
    for (int i = 0; i < 6; i++) add_word(&w, i % 4);
    assert_int_equal(words_list(&w, &all), OK);
    assert_int_equal(w.count, 4);
    assert_string_equal(all[0]->word.text, "w0");
    assert_string_equal(all[1]->word.text, "w1");
    assert_string_equal(all[2]->word.text, "w2");
    assert_int_equal(all[1]->count, 2);
    assert_int_equal(all[3]->count, 1);
    assert_int_equal(w.forgotten, 0);
    free(all);
    words_free(&w);
}

/* Word 0 comes in every second place, the others once each. */
static void rare_words_are_forgotten_and_frequent_ones_stay(void **state)
{
    enum { ROUNDS = 10000 };
    struct word_counts w = {.max = 100};
    const struct word_count **all;
    for (int i = 1; i <= ROUNDS; i++) {
        add_word(&w, 0);
        add_word(&w, i);
    }
    assert_int_equal(words_list(&w, &all), OK);
    assert_in_range(w.count, 1, 100);
    assert_string_equal(all[0]->word.text, "w0");
    assert_true(all[0]->count + w.short_by >= ROUNDS);
    assert_int_equal(w.count + w.forgotten, ROUNDS + 1);
    free(all);
    words_free(&w);
}

static void a_long_word_is_told_and_not_kept(void **state)
{
    static const char text[WORD_BYTES_MAX + 1] = "x";
    struct word_counts w = {.max = 10};
    assert_int_equal(words_add(&w, text, sizeof text), OK);
    assert_int_equal(words_add(&w, text, sizeof text - 1), OK);
    assert_int_equal(w.too_long, 1);
    assert_int_equal(w.count, 1);
    words_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_numbers_have_exact_quantiles),
        cmocka_unit_test(quantiles_are_as_near_as_they_say),
        cmocka_unit_test(words_come_by_count_and_then_by_bytes),
        cmocka_unit_test(rare_words_are_forgotten_and_frequent_ones_stay),
        cmocka_unit_test(a_long_word_is_told_and_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
