/* test_settings.c - what may be set while a job runs, from which step on it holds, and how it is
 * kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/train/checkpoint/checkpoints.h"
#include "core/train/spec/settings.h"

#include <cmocka.h> /* last: it has a macro named fail */

static const char digits[] =
    "{\"data\": {\"train\": {\"format\": \"digits\", \"rows\": 40}, \"batch_size\": 10},\n"
    " \"model\": [{\"op\": \"flatten\"}, {\"op\": \"dense\", \"name\": \"logits\", \"units\": "
    "10}],\n"
    " \"loss\": {\"op\": \"softmax_cross_entropy\"},\n"
    " \"optimizer\": {\"type\": \"momentum\", \"momentum\": 0.9,\n"
    "   \"learning_rate\": {\"type\": \"exponential_decay\", \"learning_rate\": 0.5,\n"
    "                     \"decay_steps\": 100, \"decay_rate\": 0.9}},\n"
    " \"train\": {\"last_step\": 1000, \"checkpoint_dir\": \"run\"}}\n";

struct place {
    char directory[64], path[128];
};

static struct place make_place(void)
{
    struct place place = {.directory = "/tmp/dtrain-settings-XXXXXX"};
    assert_non_null(mkdtemp(place.directory));
    snprintf(place.path, sizeof place.path, "%s/spec.json", place.directory);
    FILE *file = fopen(place.path, "w");
    assert_non_null(file);
    assert_true(fputs(digits, file) >= 0);
    assert_int_equal(fclose(file), 0);
    return place;
}

static void remove_place(const struct place *place)
{
    char kept[128];
    snprintf(kept, sizeof kept, "%s/" SETTINGS_NAME, place->directory);
    unlink(kept);
    unlink(place->path);
    assert_int_equal(rmdir(place->directory), 0);
}

static struct spec load_with(const struct place *place, const char **overrides, int count)
{
    struct spec spec;
    const struct spec_options options = {
        .path = place->path,
        .overrides = {.at = overrides, .count = count},
        .seed = -1,
    };
    if (spec_load(&options, &spec)) fail_msg("%s", error_text());
    return spec;
}

static struct spec load(const struct place *place, const char *override)
{
    return load_with(place, &override, override != NULL);
}

/* The override says at which step, and the spec's own last_step does not. */
static struct spec load_ends(const struct place *place, const char *override)
{
    const char *overrides[] = {"train.last_step=0", override};
    return load_with(place, overrides, 2);
}

static struct setting_change change(const struct spec *spec, const char *key, const char *value,
                                    uint64_t step)
{
    struct setting_change c;
    if (setting_read(key, value, &c)) fail_msg("%s", error_text());
    if (setting_check(&c, spec, step, 1000)) fail_msg("%s", error_text());
    c.step = step;
    c.generation = setting_table[c.key].is_of_values ? 7 + step : 0;
    strcpy(c.who, "10.0.0.1:99");
    setting_instead_of(spec, c.key, c.instead_of);
    return c;
}

static void add(struct settings *s, const struct spec *spec, const char *key, const char *value,
                uint64_t step)
{
    const struct setting_change c = change(spec, key, value, step);
    settings_add(s, &c);
}

static void keys_and_values_that_cannot_be_are_refused(void **state)
{
    static const struct {
        const char *key, *value, *why;
    } bad[] = {
        {"train.mode", "sync", "\"train.mode\" cannot be set while a job runs; these keys can: "},
        {"", "1", "cannot be set"},
        {"learning_rate", "xx2", "optimizer.learning_rate: expected a number"},
        {"learning_rate", "nan", "expected a number"},
        {"learning_rate", "0", "expected a number"},
        {"train.last_step", "7.5", "train.last_step: expected an integer from 1 to"},
        {"train.last_step", "x2", "expected an integer"},
        {"save_checkpoint_secs", "-1", "train.save_checkpoint_secs: expected a number"},
    };
    struct setting_change c;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(setting_read(bad[i].key, bad[i].value, &c), ERR_INPUT);
        if (!strstr(error_text(), bad[i].why)) fail_msg("%s", error_text());
    }
}

static void what_does_not_fit_the_job_is_refused(void **state)
{
    const struct place place = make_place();
    struct spec spec = load(&place, NULL);
    struct setting_change c;
    assert_int_equal(setting_read("last_step", "100", &c), OK);
    assert_int_equal(setting_check(&c, &spec, 99, 1000), OK);
    assert_int_equal(setting_check(&c, &spec, 100, 1000), ERR_INPUT);
    assert_int_equal(setting_read("publish.every_secs", "1", &c), ERR_INPUT);
    assert_int_equal(setting_read("train.publish.every_secs", "1", &c), OK);
    assert_int_equal(setting_check(&c, &spec, 0, 1000), ERR_INPUT);
    spec_free(&spec);
    remove_place(&place);
}

static void to_the_end_that_the_spec_says_goes_who_can(void **state)
{
    static const struct {
        const char *override;
        uint64_t step, end_of_spec;
        const char *why; /* NULL: it fits */
    } cases[] = {
        {"train.last_step=1000", 999, 1000, NULL},
        {"train.last_step=1000", 1000, 1000, "1000 by the spec, and the job is at step 1000"},
        {"train.num_steps=50", 119, 120, NULL},
        {"train.num_steps=50", 130, 120, "120 by the spec, and the job is at step 130"},
        {"train.num_steps=50", 130, 0, "from which step they count is not known here"},
        {"train.epochs=3", 0, 12, "the job ends by train.epochs"},
    };
    const struct place place = make_place();
    struct setting_change c;
    assert_int_equal(setting_read("last_step", "spec", &c), OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct spec spec = load_ends(&place, cases[i].override);
        const err e = setting_check(&c, &spec, cases[i].step, cases[i].end_of_spec);
        assert_int_equal(e, cases[i].why ? ERR_INPUT : OK);
        if (e && !strstr(error_text(), cases[i].why)) fail_msg("%s", error_text());
        spec_free(&spec);
    }
    remove_place(&place);
}

/* 0.1 is 0.1 to people and in the file, whichever bits come next to it. */
static void numbers_of_a_spec_are_short(void **state)
{
    const struct place place = make_place();
    struct spec spec = load(&place, "optimizer.learning_rate=0.1");
    char text[SETTING_VALUE_MAX];
    setting_of_spec(&spec, SETTING_LEARNING_RATE, text);
    assert_string_equal(text, "0.1");
    setting_instead_of(&spec, SETTING_LEARNING_RATE, text);
    assert_string_equal(text, "0.1");
    spec_free(&spec);
    remove_place(&place);
}

static void a_rate_is_a_factor_of_the_whole_schedule(void **state)
{
    const struct place place = make_place();
    struct spec spec = load(&place, NULL);
    struct settings s = {0};
    assert_true(settings_rate_factor(&s, &spec) == 1);
    add(&s, &spec, "learning_rate", "x0.25", 10);
    assert_true(settings_rate_factor(&s, &spec) == 0.25);
    add(&s, &spec, "learning_rate", "0.05", 20);
    assert_true(settings_rate_factor(&s, &spec) == 0.05 / 0.5);
    add(&s, &spec, "learning_rate", "spec", 30);
    assert_true(settings_rate_factor(&s, &spec) == 1);
    assert_int_equal(settings_forget_after(&s, 20), 1);
    assert_true(settings_rate_factor(&s, &spec) == 0.05 / 0.5);
    assert_int_equal(settings_forget_after(&s, 9), 2);
    assert_true(settings_rate_factor(&s, &spec) == 1);
    spec_free(&spec);
    remove_place(&place);
}

static void a_spec_that_says_something_else_by_now_holds(void **state)
{
    const struct place place = make_place();
    struct spec before = load(&place, NULL), now = load(&place, "train.last_step=5000");
    struct settings s = {0};
    add(&s, &before, "last_step", "300", 10);
    assert_non_null(settings_find(&s, &before, SETTING_LAST_STEP));
    assert_null(settings_find(&s, &now, SETTING_LAST_STEP));
    spec_free(&before);
    spec_free(&now);
    remove_place(&place);
}

/* Also where another key of the spec says it. */
static void keys_that_stand_for_each_other_are_one(void **state)
{
    const struct place place = make_place();
    struct spec before = load(&place, NULL), now = load(&place, "train.save_checkpoint_steps=77");
    struct settings s = {0};
    add(&s, &before, "save_checkpoint_secs", "30", 10);
    add(&s, &before, "log_every_steps", "5", 10);
    assert_non_null(settings_find(&s, &before, SETTING_SAVE_SECS));
    assert_null(settings_find(&s, &now, SETTING_SAVE_SECS));
    assert_non_null(settings_find(&s, &now, SETTING_LOG_STEPS));
    spec_free(&before);
    spec_free(&now);
    remove_place(&place);
}

/* Names may be of any characters, and are cut between two. */
static void who_is_kept_whole_or_cut(void **state)
{
    const struct place place = make_place();
    struct spec spec = load(&place, NULL);
    struct settings s = {0}, read;
    char who[2 * SETTING_WHO_MAX] = "a";
    for (int i = 0; i < SETTING_WHO_MAX / 2; i++) strcat(who, "\xc3\xa9");
    struct setting_change c = change(&spec, "learning_rate", "x0.5", 3);
    setting_note_who(&c, who);
    settings_add(&s, &c);
    assert_int_equal(settings_keep(place.directory, &s), OK);
    assert_int_equal(settings_load(place.directory, &read), OK);
    assert_int_equal(read.count, 1);
    assert_int_equal(strlen(read.at[0].who), SETTING_WHO_MAX - 1);
    assert_true(settings_hold(&read, &c));
    c.step++;
    assert_false(settings_hold(&read, &c));
    strcpy(s.at[0].who, "\xff"); /* what cannot be written is no change that was kept */
    assert_int_not_equal(settings_keep(place.directory, &s), OK);
    assert_int_equal(settings_load(place.directory, &read), OK);
    assert_int_equal(read.count, 1);
    spec_free(&spec);
    remove_place(&place);
}

static void the_chief_follows_the_last_change(void **state)
{
    const struct place place = make_place();
    struct spec spec = load(&place, NULL);
    const struct train_spec was = spec.train;
    struct settings s = {0};
    add(&s, &spec, "save_checkpoint_steps", "50", 10);
    add(&s, &spec, "log_every_steps", "3", 11);
    settings_apply(&s, &was, &spec);
    assert_int_equal(spec.train.checkpoint.every_steps, 50);
    assert_true(spec.train.checkpoint.every_secs == 0);
    assert_int_equal(spec.train.log_every_steps, 3);
    add(&s, &spec, "save_checkpoint_secs", "9", 12);
    settings_apply(&s, &was, &spec);
    assert_int_equal(spec.train.checkpoint.every_steps, 0);
    assert_true(spec.train.checkpoint.every_secs == 9);
    assert_int_equal(settings_forget_after(&s, 0), 0); /* the values do not depend on them */
    settings_apply(&(struct settings){0}, &was, &spec);
    assert_true(spec.train.checkpoint.every_secs == was.checkpoint.every_secs);
    spec_free(&spec);
    remove_place(&place);
}

static void what_is_kept_is_read_again(void **state)
{
    const struct place place = make_place();
    struct spec spec = load(&place, NULL);
    struct settings s = {0}, read;
    assert_int_equal(settings_load(place.directory, &read), OK);
    assert_int_equal(read.count, 0);
    for (uint64_t step = 1; step <= SETTINGS_MAX + 9; step++)
        add(&s, &spec, "learning_rate", "0.1", step);
    add(&s, &spec, "last_step", "99999", 200);
    assert_int_equal(s.count, SETTINGS_MAX);
    assert_int_equal(settings_keep(place.directory, &s), OK);
    assert_int_equal(settings_load(place.directory, &read), OK);
    assert_int_equal(read.count, SETTINGS_MAX);
    const struct setting_change *c = settings_find(&read, &spec, SETTING_LAST_STEP);
    assert_non_null(c);
    assert_true(c->number == 99999 && c->step == 200 && c->generation == 207);
    assert_string_equal(c->who, "10.0.0.1:99");
    assert_true(settings_rate_factor(&read, &spec) == 0.1 / 0.5);
    spec_free(&spec);
    remove_place(&place);
}

static void a_file_that_is_damaged_is_refused(void **state)
{
    static const char *const bad[] = {"", "{", "{}", "{\"changes\": [{}]}", "{\"changes\": 1}"};
    const struct place place = make_place();
    char path[128];
    snprintf(path, sizeof path, "%s/" SETTINGS_NAME, place.directory);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct settings read;
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        assert_true(fputs(bad[i], file) >= 0);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(settings_load(place.directory, &read), ERR_INPUT);
        assert_non_null(strstr(error_text(), SETTINGS_NAME));
        assert_int_equal(read.count, 0);
    }
    remove_place(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_and_values_that_cannot_be_are_refused),
        cmocka_unit_test(what_does_not_fit_the_job_is_refused),
        cmocka_unit_test(to_the_end_that_the_spec_says_goes_who_can),
        cmocka_unit_test(numbers_of_a_spec_are_short),
        cmocka_unit_test(a_rate_is_a_factor_of_the_whole_schedule),
        cmocka_unit_test(a_spec_that_says_something_else_by_now_holds),
        cmocka_unit_test(keys_that_stand_for_each_other_are_one),
        cmocka_unit_test(who_is_kept_whole_or_cut),
        cmocka_unit_test(the_chief_follows_the_last_change),
        cmocka_unit_test(what_is_kept_is_read_again),
        cmocka_unit_test(a_file_that_is_damaged_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
