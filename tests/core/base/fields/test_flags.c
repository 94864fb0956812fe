/* The command line by a table. */
#include "core/base/fields/fields.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { REST_MAX = 2, ARGUMENTS_MAX = 16 };

struct flags {
    const char *job_name;
    int64_t task_index, tag, threads, inner; /* inner: in no help */
    double rate;
    uint64_t patience_ms;
    bool quiet;
    int level;
    struct strings set;
    struct ints cores;
};

static const char *const levels[] = {"error", "info", NULL};

static const char *const beside_job[] = {"TEST_JOB_NAME", NULL};

static const struct field fields[] = {
    {.name = "job_name",
     .type = FIELD_STRING,
     .offset = offsetof(struct flags, job_name),
     .fallback = "null",
     .environment = "TEST_JOB_NAME",
     .help = "which job"},
    {.name = "task_index",
     .type = FIELD_INT,
     .offset = offsetof(struct flags, task_index),
     .fallback = "-1",
     .min = -1,
     .max = 4095,
     .environment = "TEST_TASK_INDEX",
     .help = "which task"},
    {.name = "tag",
     .type = FIELD_INT,
     .offset = offsetof(struct flags, tag),
     .fallback = "-1",
     .environment = "TEST_TAG",
     .environment_beside = beside_job,
     .help = "what counts for a job only"},
    {.name = "rate",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct flags, rate),
     .fallback = "0.5",
     .help = "how fast"},
    {.name = "patience",
     .type = FIELD_SECONDS,
     .offset = offsetof(struct flags, patience_ms),
     .fallback = "1.5",
     .min = 0.001,
     .max = 60,
     .help = "how long to wait"},
    {.name = "quiet",
     .type = FIELD_BOOL,
     .offset = offsetof(struct flags, quiet),
     .fallback = "false",
     .help = "say less"},
    {.name = "level",
     .type = FIELD_ENUM,
     .offset = offsetof(struct flags, level),
     .fallback = "info",
     .choices = levels,
     .help = "how much to say"},
    {.name = "set",
     .type = FIELD_STRINGS,
     .offset = offsetof(struct flags, set),
     .fallback = "[]",
     .help = "change the spec"},
    {.name = "cores",
     .type = FIELD_INTS,
     .offset = offsetof(struct flags, cores),
     .fallback = "[]",
     .help = "where to run"},
    {.name = "threads",
     .type = FIELD_INT,
     .offset = offsetof(struct flags, threads),
     .fallback = "auto",
     .max = 8,
     .zero = "auto",
     .help = "how many at once"},
    {.name = "inner", .type = FIELD_INT, .offset = offsetof(struct flags, inner), .fallback = "0"},
    {0},
};
static const struct object flags_object = {
    .name = "flags", .fields = fields, .size = sizeof(struct flags)};

/* What came of one command line. */
struct run {
    char *argv[ARGUMENTS_MAX];
    int argc;
    struct arena arena;
    struct flags flags;
    const char *rest[REST_MAX];
    int rest_count;
    err result;
};

/* arguments: ends with NULL */
static void run_list(struct run *run, va_list arguments)
{
    *run = (struct run){.argv = {"dtrain"}, .argc = 1};
    for (char *argument; (argument = va_arg(arguments, char *));) {
        assert_true(run->argc < ARGUMENTS_MAX);
        run->argv[run->argc++] = argument;
    }
    run->result = flags_parse(&flags_object, run->argc, run->argv, &run->arena, &run->flags,
                              run->rest, REST_MAX, &run->rest_count);
}

static void parse(struct run *run, ...)
{
    va_list arguments;
    va_start(arguments, run);
    run_list(run, arguments);
    va_end(arguments);
    if (run->result) fail_msg("%s", error_text());
}

static void assert_refused(const char *message, ...)
{
    struct run run;
    va_list arguments;
    va_start(arguments, message);
    run_list(&run, arguments);
    va_end(arguments);
    assert_int_equal(run.result, ERR_INPUT);
    assert_string_equal(error_text(), message);
    arena_free(&run.arena);
}

static int clear_environment(void **state)
{
    unsetenv("TEST_JOB_NAME");
    unsetenv("TEST_TASK_INDEX");
    unsetenv("TEST_TAG");
    return 0;
}

static void no_flags_give_the_defaults(void **state)
{
    struct run run;
    parse(&run, NULL);
    assert_null(run.flags.job_name);
    assert_int_equal(run.flags.task_index, -1);
    assert_true(run.flags.rate == 0.5);
    assert_int_equal(run.flags.patience_ms, 1500);
    assert_false(run.flags.quiet);
    assert_int_equal(run.flags.level, 1);
    assert_int_equal(run.flags.set.count, 0);
    assert_int_equal(run.rest_count, 0);
    arena_free(&run.arena);
}

static void values_stand_behind_an_equals_sign_or_a_space(void **state)
{
    struct run run;
    parse(&run, "--job_name=ps", "--task_index", "3", "spec.json", "--level", "error",
          "--rate=1e-3", "--cores=[1,2]", "--patience=2.0009", NULL);
    assert_string_equal(run.flags.job_name, "ps");
    assert_int_equal(run.flags.task_index, 3);
    assert_int_equal(run.flags.level, 0);
    assert_true(run.flags.rate == 1e-3);
    assert_int_equal(run.flags.patience_ms, 2001);
    assert_int_equal(run.flags.cores.count, 2);
    assert_int_equal(run.rest_count, 1);
    assert_string_equal(run.rest[0], "spec.json");
    arena_free(&run.arena);
}

static void booleans_may_stand_alone(void **state)
{
    struct run run;
    parse(&run, "--quiet", "spec.json", NULL);
    assert_true(run.flags.quiet);
    assert_string_equal(run.rest[0], "spec.json");
    arena_free(&run.arena);
    parse(&run, "--quiet", "--quiet=false", NULL);
    assert_false(run.flags.quiet);
    arena_free(&run.arena);
    parse(&run, "--quiet", "true", NULL);
    assert_true(run.flags.quiet);
    assert_int_equal(run.rest_count, 0);
    arena_free(&run.arena);
    assert_refused("--quiet: expected true or false, got \"maybe\" (quiet: say less)",
                   "--quiet=maybe", NULL);
}

static void a_word_says_zero(void **state)
{
    static const char *const given[] = {"--threads=auto", "--threads=0", "--quiet"};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        struct run run;
        parse(&run, "--threads=3", given[i], NULL);
        assert_int_equal(run.flags.threads, i < 2 ? 0 : 3);
        arena_free(&run.arena);
    }
    assert_refused("--threads: expected an integer from 0 to 8, or auto, got \"car\"",
                   "--threads=car", NULL);
}

static void lists_of_strings_repeat_and_are_not_split(void **state)
{
    struct run run;
    parse(&run, "--set", "model[0].units=20", "--set=a=[1,2]", "--set", "b=c", NULL);
    assert_int_equal(run.flags.set.count, 3);
    assert_string_equal(run.flags.set.at[0], "model[0].units=20");
    assert_string_equal(run.flags.set.at[1], "a=[1,2]");
    assert_string_equal(run.flags.set.at[2], "b=c");
    arena_free(&run.arena);
}

static void the_last_of_several_values_counts(void **state)
{
    struct run run;
    parse(&run, "--task_index=1", "--task_index=2", NULL);
    assert_int_equal(run.flags.task_index, 2);
    arena_free(&run.arena);
}

/* Words are not read as JSON: a job may be called 12, null or "a". */
static void strings_are_taken_as_they_stand(void **state)
{
    static char *const words[] = {"12", "null", "\"a\"", "", "true", "[]", "\xff\xfe"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct run run;
        parse(&run, "--job_name", words[i], NULL);
        assert_string_equal(run.flags.job_name, words[i]);
        arena_free(&run.arena);
    }
}

static void a_double_dash_ends_the_flags(void **state)
{
    struct run run;
    parse(&run, "--quiet", "--", "--job_name=x", "--", NULL);
    assert_null(run.flags.job_name);
    assert_int_equal(run.rest_count, 2);
    assert_string_equal(run.rest[0], "--job_name=x");
    assert_string_equal(run.rest[1], "--");
    arena_free(&run.arena);
}

static void single_dashes_are_no_flags(void **state)
{
    struct run run;
    parse(&run, "-", "--task_index", "-1", "--", "-h", NULL);
    assert_int_equal(run.rest_count, 2);
    assert_string_equal(run.rest[0], "-");
    assert_string_equal(run.rest[1], "-h");
    assert_int_equal(run.flags.task_index, -1);
    arena_free(&run.arena);
    parse(&run, "-2.5", NULL);
    assert_string_equal(run.rest[0], "-2.5");
    arena_free(&run.arena);
    assert_refused("unknown flag \"-h\": flags begin with --, files with ./", "-h", NULL);
    assert_refused("unknown flag \"-rate=1\" (did you mean --rate?)", "-rate=1", NULL);
}

static void the_environment_stands_in_for_absent_flags(void **state)
{
    struct run run;
    setenv("TEST_JOB_NAME", "worker", 1);
    setenv("TEST_TASK_INDEX", "5", 1);
    parse(&run, "--task_index=2", NULL);
    assert_string_equal(run.flags.job_name, "worker");
    assert_int_equal(run.flags.task_index, 2);
    arena_free(&run.arena);

    setenv("TEST_JOB_NAME", "", 1);
    parse(&run, NULL);
    assert_null(run.flags.job_name);
    assert_int_equal(run.flags.task_index, 5);
    arena_free(&run.arena);

    setenv("TEST_TASK_INDEX", "five", 1);
    assert_refused(
        "TEST_TASK_INDEX in the environment: expected an integer from -1 to 4095, got \"five\"",
        NULL);
}

static void some_variables_count_beside_others_only(void **state)
{
    struct run run;
    setenv("TEST_TAG", "7", 1);
    parse(&run, NULL);
    assert_int_equal(run.flags.tag, -1);
    arena_free(&run.arena);

    parse(&run, "--job_name=ps", NULL);
    assert_int_equal(run.flags.tag, 7);
    arena_free(&run.arena);

    setenv("TEST_JOB_NAME", "ps", 1);
    parse(&run, NULL);
    assert_int_equal(run.flags.tag, 7);
    arena_free(&run.arena);
    parse(&run, "--tag=8", NULL);
    assert_int_equal(run.flags.tag, 8);
    arena_free(&run.arena);

    setenv("TEST_TAG", "seven", 1);
    assert_refused("TEST_TAG in the environment: expected an integer, got \"seven\"", NULL);
    unsetenv("TEST_JOB_NAME");
    parse(&run, NULL);
    assert_int_equal(run.flags.tag, -1);
    arena_free(&run.arena);
}

static void bad_values_are_refused_with_the_flags_name(void **state)
{
    assert_refused("--task_index: expected an integer from -1 to 4095, got \"x\"", "--task_index=x",
                   NULL);
    assert_refused("--task_index: expected an integer from -1 to 4095, got 4096", "--task_index",
                   "4096", NULL);
    assert_refused("--task_index: expected an integer from -1 to 4095, got \"\"",
                   "--task_index=", NULL);
    assert_refused("--level: expected one of error, info, got \"inof\" (did you mean \"info\"?)",
                   "--level=inof", NULL);
    assert_refused("--rate: expected a number, got \"fast\"", "--rate", "fast", NULL);
    assert_refused("--patience: expected a number from 0.001 to 60, got 61", "--patience=61", NULL);
}

static void missing_values_are_refused(void **state)
{
    assert_refused("--task_index: the value is missing: expected an integer from -1 to 4095",
                   "--task_index", NULL);
    assert_refused("--job_name: the value is missing: expected a string", "--job_name",
                   "--task_index=1", NULL);
}

static void unknown_flags_name_the_nearest(void **state)
{
    assert_refused("unknown flag \"job-nam\" (did you mean --job_name?)", "--job-nam=ps", NULL);
    assert_refused("unknown flag \"frobnicate\": no flag has a similar name", "--frobnicate", NULL);
    assert_refused("unknown flag \"inners\": no flag has a similar name", "--inners", NULL);
    assert_refused("unknown flag \"\": no flag has a similar name", "--=3", NULL);
}

static void too_many_arguments_are_refused(void **state)
{
    assert_refused("unexpected argument \"c\": 2 at most", "a", "b", "c", NULL);
}

static void required_flags_are_named_with_their_variable(void **state)
{
    static const struct field required[] = {
        {.name = "port", .type = FIELD_INT, .environment = "TEST_TASK_INDEX"}, {0}};
    const struct object object = {.name = "flags", .fields = required, .size = sizeof(int64_t)};
    char *argv[] = {"dtrain"};
    struct arena arena = {0};
    int64_t port;
    int rest_count;
    assert_int_equal(flags_parse(&object, 1, argv, &arena, &port, NULL, 0, &rest_count), ERR_INPUT);
    assert_string_equal(error_text(),
                        "--port is required (or the environment variable TEST_TASK_INDEX)");
    arena_free(&arena);
}

static void given_flags_are_told_from_defaults_and_environment(void **state)
{
    char *argv[] = {"dtrain", "--job_name", "--set", "--quiet", "--", "--rate=1"};
    setenv("TEST_TASK_INDEX", "5", 1);
    char *good[] = {"dtrain", "--job_name", "rate", "--quiet", "--", "--rate=1"};
    assert_true(flags_given(&flags_object, 6, good, "job_name"));
    assert_true(flags_given(&flags_object, 6, good, "quiet"));
    assert_false(flags_given(&flags_object, 6, good, "rate"));
    assert_false(flags_given(&flags_object, 6, good, "task_index"));
    assert_false(flags_given(&flags_object, 6, argv, "quiet")); /* a bad line gives nothing more */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(no_flags_give_the_defaults, clear_environment),
        cmocka_unit_test_setup(values_stand_behind_an_equals_sign_or_a_space, clear_environment),
        cmocka_unit_test_setup(booleans_may_stand_alone, clear_environment),
        cmocka_unit_test(a_word_says_zero),
        cmocka_unit_test_setup(lists_of_strings_repeat_and_are_not_split, clear_environment),
        cmocka_unit_test_setup(the_last_of_several_values_counts, clear_environment),
        cmocka_unit_test_setup(strings_are_taken_as_they_stand, clear_environment),
        cmocka_unit_test_setup(a_double_dash_ends_the_flags, clear_environment),
        cmocka_unit_test_setup(single_dashes_are_no_flags, clear_environment),
        cmocka_unit_test_setup(the_environment_stands_in_for_absent_flags, clear_environment),
        cmocka_unit_test_setup(some_variables_count_beside_others_only, clear_environment),
        cmocka_unit_test_setup(bad_values_are_refused_with_the_flags_name, clear_environment),
        cmocka_unit_test_setup(missing_values_are_refused, clear_environment),
        cmocka_unit_test_setup(unknown_flags_name_the_nearest, clear_environment),
        cmocka_unit_test_setup(too_many_arguments_are_refused, clear_environment),
        cmocka_unit_test_setup(required_flags_are_named_with_their_variable, clear_environment),
        cmocka_unit_test_setup(given_flags_are_told_from_defaults_and_environment,
                               clear_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
