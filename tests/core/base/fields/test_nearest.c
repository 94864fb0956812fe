/* Which known name is nearest to a mistyped one. */
#include "core/base/fields/fields.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static const char *const names[] = {"units", "activation", "kernel_initializer", "name",
                                    "adam",  "adagrad",    "momentum",           "use_bias",
                                    "relu",  "dense",      "last_step"};
enum { COUNT = sizeof names / sizeof *names };

static void assert_nearest(const char *word, const char *expected)
{
    const char *nearest = nearest_name(word, names, COUNT);
    if (!expected)
        assert_null(nearest);
    else if (!nearest)
        fail_msg("nothing is near to %s", word);
    else
        assert_string_equal(nearest, expected);
}

static void single_mistakes_are_found(void **state)
{
    assert_nearest("unit", "units");                            /* missing */
    assert_nearest("unitss", "units");                          /* too many */
    assert_nearest("unyts", "units");                           /* another */
    assert_nearest("nuits", "units");                           /* exchanged */
    assert_nearest("kernal_initialiser", "kernel_initializer"); /* two */
    assert_nearest("last_setp", "last_step");
    assert_nearest("adma", "adam");
}

static void case_and_dashes_cost_nothing(void **state)
{
    assert_nearest("Adam", "adam");
    assert_nearest("ADAGRAD", "adagrad");
    assert_nearest("use-bias", "use_bias");
}

static void exact_names_are_nearest_to_themselves(void **state)
{
    for (int i = 0; i < COUNT; i++) assert_nearest(names[i], names[i]);
}

static void initials_and_parts_are_near_where_nothing_else_is(void **state)
{
    assert_nearest("ki", "kernel_initializer");
    assert_nearest("LS", "last_step");
    const char *const rates[] = {"l1", "learning_rate"};
    assert_string_equal(nearest_name("lr", rates, 2), "learning_rate"); /* before one letter less */
    assert_string_equal(nearest_name("L1", rates, 2), "l1");
    const char *const folders[] = {"mode", "checkpoint_dir"};
    assert_string_equal(nearest_name("model-dir", folders, 2), "checkpoint_dir");
    assert_string_equal(nearest_name("model-dir", folders, 1), "mode");
    assert_string_equal(nearest_name("sync", folders, 2), "mode");
    const char *const train[] = {"epochs", "last_step", "hooks"};
    assert_string_equal(nearest_name("early_stopping", train, 3), "hooks");
    static const char *const table[] = {"admit_by", "dimension", "combiner"};
    assert_string_equal(nearest_name("dim", table, 3), "dimension");
    assert_string_equal(nearest_name("output_dim", table, 3), "dimension");
    assert_nearest("AdamOptimizer", "adam");
    assert_nearest("tf.train.AdamOptimizer", "adam");
    assert_nearest("tf.train.", NULL);
    assert_nearest("tf.train.StopAtStepHook", "last_step");
    assert_nearest("stop_at_step_hook", "last_step");
    assert_nearest("MyUseBiasFlag", "use_bias");
    assert_nearest("initializer", "kernel_initializer");
    assert_nearest("my_activation_dense", "activation"); /* the longer of two */
    assert_nearest("dense_activation", "dense");         /* the beginning */
}

static void far_words_have_no_nearest(void **state)
{
    assert_nearest("rl", NULL);
    assert_nearest("completely_different", NULL);
    assert_nearest("", NULL);
    assert_nearest("x", NULL);
    assert_nearest("zzzz", NULL);
}

static void very_long_words_and_names_are_left_alone(void **state)
{
    char word[5000];
    memset(word, 'u', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    assert_nearest(word, NULL);
    const char *const long_name[] = {word};
    assert_null(nearest_name("uuuu", long_name, 1));
    assert_null(nearest_name("units", NULL, 0));
}

static void one_exchange_is_one_edit_and_nearer_than_two(void **state)
{
    static const char *const pair[] = {"abdc", "abcd"};
    assert_string_equal(nearest_name("bacd", pair, 2), "abcd");
}

/* A mark of byte order in mid-file, a blank of no width: such a name reads the same. */
static void a_name_that_reads_the_same_is_nearest(void **state)
{
    static const char *const cells[] = {"bb",
                                        "\xef\xbb\xbf"
                                        "b",
                                        "c\xe2\x80\x8b", "two\xc2\xa0words", "y"};
    enum { CELLS = sizeof cells / sizeof *cells };
    assert_string_equal(nearest_name("b", cells, CELLS), cells[1]);
    assert_string_equal(nearest_name("c", cells, CELLS), cells[2]);
    assert_string_equal(nearest_name("two words", cells, CELLS), cells[3]);
    assert_string_equal(nearest_name("y\xe2\x80\x8b", cells, CELLS), "y");
    assert_string_equal(suggest("c", cells, CELLS).text,
                        " (did you mean \"c\xe2\x80\x8b\"?)"); /* fail() shows the bytes */
    assert_null(nearest_name("\xe2\x80\x8b", cells + 4, 1));   /* nothing is seen of it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_mistakes_are_found),
        cmocka_unit_test(case_and_dashes_cost_nothing),
        cmocka_unit_test(exact_names_are_nearest_to_themselves),
        cmocka_unit_test(initials_and_parts_are_near_where_nothing_else_is),
        cmocka_unit_test(far_words_have_no_nearest),
        cmocka_unit_test(very_long_words_and_names_are_left_alone),
        cmocka_unit_test(a_name_that_reads_the_same_is_nearest),
        cmocka_unit_test(one_exchange_is_one_edit_and_nearer_than_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
