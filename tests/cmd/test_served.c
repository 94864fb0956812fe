/* test_served.c - which checkpoint of a folder is tried, and when again, at a clock of its own. */
#include "cmd/serve/served.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "cmd/serve/following.h"
#include "core/base/clock.h"

enum {
    TURN_MS = 250,
    SOME_MS = 20 * TURN_MS,
    HOUR_MS = 3600 * 1000,
    TRIES_MAX = 100,
    TEXT_BYTES = 1 << 14
};

/* Of one digit, as all that is told about it */
struct version {
    char prefix[CHECKPOINT_PATH_MAX];
};

static struct {
    uint64_t now_ms;
    char folder[64];
    const char *broken;             /* digits of those that cannot be opened */
    const char *comes_with, *comes; /* once the first has failed the folder has these */
    char tried[TRIES_MAX + 1];      /* their digits */
    uint64_t tried_ms[TRIES_MAX];
    int count;
} world;

/* ---- what served.c asks ---- */

uint64_t clock_ms(void) /* by another name, see meson.build */
{
    return world.now_ms;
}

static char digit_of(const char *prefix)
{
    return prefix[strlen(prefix) - 1];
}

static void publish(const char *digits)
{
    char path[CHECKPOINT_PATH_MAX];
    snprintf(path, sizeof path, "%s/checkpoint", world.folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "model_checkpoint_path: \"model.ckpt-%c\"\n", digits[strlen(digits) - 1]);
    for (const char *at = digits; *at; at++) {
        fprintf(f, "all_model_checkpoint_paths: \"model.ckpt-%c\"\n", *at);
        snprintf(path, sizeof path, "%s/model.ckpt-%c.index", world.folder, *at);
        FILE *index = fopen(path, "a");
        assert_non_null(index);
        fclose(index);
    }
    fclose(f);
}

err version_start(const struct version_options *options, const char *prefix, struct version **ret)
{
    struct version *v = calloc(1, sizeof *v);
    assert_non_null(v);
    assert_true(world.count < TRIES_MAX);
    snprintf(v->prefix, sizeof v->prefix, "%s", prefix);
    world.tried_ms[world.count] = world.now_ms;
    world.tried[world.count++] = digit_of(prefix);
    *ret = v;
    return OK;
}

enum version_state version_state(struct version *v, err *ret_failure)
{
    const char digit = digit_of(v->prefix);
    if (!strchr(world.broken, digit)) return VERSION_SERVES;
    if (world.comes && digit == *world.comes_with) {
        publish(world.comes);
        world.comes = NULL;
    }
    *ret_failure = (fail)(ERR_INPUT, "%c is broken", digit);
    return VERSION_FAILED;
}

void version_close(struct version *v)
{
    free(v);
}

int64_t version_number(const struct version *v)
{
    return digit_of(v->prefix) - '0';
}

const char *version_prefix(const struct version *v)
{
    return v->prefix;
}

const struct spec *version_spec(const struct version *v)
{
    static const struct spec spec = {.name = "small"};
    return &spec;
}

void version_renew_lease(struct version *v)
{
}

err following_begin(struct following *f, const char *prefix)
{
    return OK;
}

void following_turn(struct following *f, struct version *v, struct tally *tally)
{
}

void tally_note_version(struct tally *tally, int64_t number, err failure)
{
}

/* ---- the tests ---- */

static struct restored_flags flags;
static const struct version_options options = {.flags = &flags};

static int begin(void **state)
{
    memset(&world, 0, sizeof world);
    world.broken = "";
    snprintf(world.folder, sizeof world.folder, "/tmp/served-XXXXXX");
    flags.checkpoint = mkdtemp(world.folder);
    *state = NULL;
    return flags.checkpoint && served_open(NULL, &options, (struct served **)state) == OK ? 0 : -1;
}

static int end(void **state)
{
    char path[CHECKPOINT_PATH_MAX];
    served_close(*state);
    for (char digit = '1'; digit <= '9'; digit++) {
        snprintf(path, sizeof path, "%s/model.ckpt-%c.index", world.folder, digit);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/checkpoint", world.folder);
    unlink(path);
    return rmdir(world.folder);
}

static err turns(struct served *s, uint64_t ms)
{
    for (const uint64_t end_ms = world.now_ms + ms; world.now_ms < end_ms; world.now_ms += TURN_MS)
        TRY(served_turn(s, true));
    return OK;
}

static int64_t served_number(struct served *s)
{
    struct version *v = served_take(s, -1);
    const int64_t number = v ? version_number(v) : -1;
    if (v) served_give(s, v);
    return number;
}

/* How often the text is in what the turns write to standard error. */
static int told_in_turns(struct served *s, uint64_t ms, const char *text)
{
    static char said[TEXT_BYTES];
    FILE *log = tmpfile();
    assert_non_null(log);
    const int before = dup(STDERR_FILENO);
    assert_true(before >= 0 && dup2(fileno(log), STDERR_FILENO) >= 0);
    const err e = turns(s, ms);
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    close(before);
    rewind(log);
    const size_t bytes = fread(said, 1, sizeof said - 1, log);
    said[bytes] = '\0';
    fclose(log);
    assert_int_equal(e, OK);
    assert_true(bytes < sizeof said - 1);
    int count = 0;
    for (const char *at = said; (at = strstr(at, text)); at++) count++;
    return count;
}

static void what_is_broken_is_tried_ever_more_seldom(void **state)
{
    uint64_t wait_ms = 500;
    publish("1");
    assert_int_equal(turns(*state, SOME_MS), OK);
    world.broken = "2";
    publish("12");
    const int told = told_in_turns(*state, HOUR_MS, "the previous version stays in service: ");
    assert_int_equal(served_number(*state), 1);
    assert_int_equal(strspn(world.tried + 1, "2"), world.count - 1);
    for (int i = 2; i < world.count; i++, wait_ms = wait_ms < 32000 ? 2 * wait_ms : 60000)
        assert_in_range(world.tried_ms[i] - world.tried_ms[i - 1], wait_ms, wait_ms + 2 * TURN_MS);
    assert_in_range(world.count - 1, 64, 68); /* times, of which these are told: */
    assert_int_equal(told, 5 + 4);            /* 1 to 5, 8, 16, 32, 64 */
    world.broken = "";
    assert_int_equal(turns(*state, 60000 + 2 * TURN_MS), OK);
    assert_int_equal(served_number(*state), 2);
}

static void a_newer_one_is_taken_whatever_the_broken_one_waits_for(void **state)
{
    publish("1");
    assert_int_equal(turns(*state, SOME_MS), OK);
    world.broken = "2";
    publish("12");
    assert_int_equal(turns(*state, HOUR_MS / 4), OK);
    publish("123");
    assert_int_equal(turns(*state, 2 * TURN_MS), OK);
    assert_int_equal(served_number(*state), 3);
}

static void those_before_a_broken_one_are_tried_in_turn(void **state)
{
    world.broken = "123";
    publish("123");
    assert_int_equal(turns(*state, SOME_MS), ERR_INPUT);
    assert_string_equal(error_text(), "3 is broken");
    assert_string_equal(world.tried, "321");
}

/* Of the list as it was, 2 would be tried again, then 1, and 4 never. */
static void one_that_comes_while_those_before_are_tried_is_tried_next(void **state)
{
    world.broken = "123";
    world.comes_with = "2";
    world.comes = "1234";
    publish("123");
    assert_int_equal(turns(*state, SOME_MS), OK);
    assert_string_equal(world.tried, "324");
    assert_int_equal(served_number(*state), 4);
}

/* Then those before that one, and what is told is what is wrong with it. */
static void one_that_comes_then_may_be_broken(void **state)
{
    world.broken = "1234";
    world.comes_with = "2";
    world.comes = "1234";
    publish("123");
    assert_int_equal(turns(*state, SOME_MS), ERR_INPUT);
    assert_string_equal(error_text(), "4 is broken");
    assert_string_equal(world.tried, "324321");
}

#define SERVED(NAME) cmocka_unit_test_setup_teardown(NAME, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVED(what_is_broken_is_tried_ever_more_seldom),
        SERVED(a_newer_one_is_taken_whatever_the_broken_one_waits_for),
        SERVED(those_before_a_broken_one_are_tried_in_turn),
        SERVED(one_that_comes_while_those_before_are_tried_is_tried_next),
        SERVED(one_that_comes_then_may_be_broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
