/* test_schedules.c - learning rates against what TensorFlow computed, and warm-up. */
#include "tests/core/train/fixture.h"

#include <math.h>
#include <string.h>

/* TensorFlow computes in float32, where 1 + cos near -1 keeps few digits. */
static const struct tolerance close_enough = {.relative = 1e-5, .absolute = 3e-9};

static struct schedule_spec schedule_of(const char *text, struct arena *arena)
{
    json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);
    const struct schedule_spec spec =
        fixture_schedule(json_pack("{s:o}", "learning_rate", json), arena);
    assert_int_equal(schedule_check(&spec, "learning_rate"), OK);
    return spec;
}

static void run_case(json_t *test)
{
    const char *type = json_string_value(json_object_get(test, "type"));
    struct arena arena = {0};
    json_t *json = fixture_variant("learning_rate", type, json_object_get(test, "attributes"));
    const struct schedule_spec spec = fixture_schedule(json, &arena);
    assert_int_equal(schedule_check(&spec, "learning_rate"), OK);

    size_t i;
    json_t *step;
    json_array_foreach(json_object_get(test, "steps"), i, step)
    {
        char where[96];
        const int64_t at = json_integer_value(step);
        snprintf(where, sizeof where, "%s at step %lld", type, (long long)at);
        const json_t *wanted = json_array_get(json_object_get(test, "values"), i);
        fixture_near(schedule_rate(&spec, at), json_number_value(wanted), close_enough, where);
    }
    arena_free(&arena);
}

/* The same schedule, whose length is said in epochs of 7.5 steps. */
static void in_epochs(json_t *json)
{
    static const char *const names[][2] = {{"decay_steps", "decay_epochs"},
                                           {"first_decay_steps", "first_decay_epochs"},
                                           {"step_size", "epoch_size"},
                                           {"warmup_steps", "warmup_epochs"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const double steps = json_number_value(json_object_get(json, names[i][0]));
        if (steps > 0) json_object_set_new(json, names[i][1], json_real(steps / 7.5));
        json_object_del(json, names[i][0]);
    }
    json_t *boundaries = json_object_get(json, "boundaries"), *epochs = json_array(), *step;
    size_t i;
    json_array_foreach(boundaries, i, step)
        json_array_append_new(epochs, json_real(json_number_value(step) / 7.5));
    if (boundaries) json_object_set(json, "boundary_epochs", epochs);
    json_decref(epochs);
    json_object_del(json, "boundaries");
}

static void compare_with_epochs(json_t *test)
{
    const char *type = json_string_value(json_object_get(test, "type"));
    struct arena arena = {0};
    json_t *attributes = json_deep_copy(json_object_get(test, "attributes"));
    json_object_set_new(attributes, "warmup_steps", json_integer(3));
    const struct schedule_spec steps =
        fixture_schedule(fixture_variant("learning_rate", type, attributes), &arena);
    in_epochs(attributes);
    struct schedule_spec epochs =
        fixture_schedule(fixture_variant("learning_rate", type, attributes), &arena);
    assert_false(schedule_has_epochs(&steps));
    assert_true(schedule_has_epochs(&epochs));
    assert_int_equal(schedule_check(&epochs, "learning_rate"), OK);
    for (int others = 0; others < 2; others++) { /* other workers have come, and gone again */
        assert_int_equal(schedule_count_epochs(&epochs, "learning_rate", 3.0), OK);
        assert_int_equal(schedule_count_epochs(&epochs, "learning_rate", 7.5), OK);
        for (int64_t step = 0; step < 300; step++)
            assert_true(schedule_rate(&steps, step) == schedule_rate(&epochs, step));
    }
    json_decref(attributes);
    arena_free(&arena);
}

static void every_length_may_be_said_in_epochs(void **state)
{
    json_t *fixture = fixture_load("schedules.json");
    size_t i;
    json_t *test;
    json_array_foreach(json_object_get(fixture, "cases"), i, test) compare_with_epochs(test);
    json_decref(fixture);
}

static void no_epoch_is_less_than_a_step_or_more_than_there_are(void **state)
{
    struct arena arena = {0};
    struct schedule_spec spec = schedule_of(
        "{\"type\": \"exponential_decay\", \"learning_rate\": 1, \"decay_epochs\": 0.001, "
        "\"decay_rate\": 0.5}",
        &arena);
    assert_int_equal(schedule_count_epochs(&spec, "rate", 10), OK);
    assert_true(schedule_rate(&spec, 1) == 0.5);
    assert_int_equal(schedule_count_epochs(&spec, "rate", 1e15), ERR_INPUT);
    assert_string_equal(error_text(), "rate.decay_epochs: 0.001 epochs are 1000000000000 steps, "
                                      "and there are 2000000000 at most");
    arena_free(&arena);
}

static void every_case_of_tensorflow_is_met(void **state)
{
    json_t *fixture = fixture_load("schedules.json");
    size_t i;
    json_t *test;
    json_array_foreach(json_object_get(fixture, "cases"), i, test) run_case(test);
    assert_int_equal(i, 10);
    json_decref(fixture);
}

static void a_bare_number_is_the_rate_of_every_step(void **state)
{
    struct arena arena = {0};
    const struct schedule_spec spec = schedule_of("0.25", &arena);
    assert_true(schedule_rate(&spec, 0) == 0.25);
    assert_true(schedule_rate(&spec, INT64_C(1) << 52) == 0.25);
    arena_free(&arena);
}

static void warm_up_climbs_to_the_first_rate_and_then_the_schedule_goes_on(void **state)
{
    struct arena arena = {0};
    const struct schedule_spec warm =
        schedule_of("{\"type\": \"exponential_decay\", \"learning_rate\": 0.5, \"decay_steps\": "
                    "10, \"decay_rate\": 0.5, \"warmup_steps\": 4}",
                    &arena);
    assert_true(schedule_rate(&warm, 0) == 0.0);
    assert_true(schedule_rate(&warm, 1) == 0.125);
    assert_true(schedule_rate(&warm, 3) == 0.375);
    fixture_near(schedule_rate(&warm, 4), 0.5 * pow(0.5, 0.4), close_enough, "step 4");
    assert_true(schedule_rate(&warm, 10) == 0.25);
    arena_free(&arena);
}

/* Logarithms are rounded: log(243) / log(3) is less than 5. */
static void each_restart_is_at_its_very_step(void **state)
{
    struct arena arena = {0};
    const struct schedule_spec spec =
        schedule_of("{\"type\": \"cosine_decay_restarts\", \"learning_rate\": 1.0, "
                    "\"first_decay_steps\": 10, \"t_mul\": 3, \"m_mul\": 0.5}",
                    &arena);
    int64_t start = 0, length = 10;
    double top = 1.0;
    for (int period = 0; period < 12; period++) {
        fixture_near(schedule_rate(&spec, start), top, close_enough, "at a restart");
        assert_true(schedule_rate(&spec, start + length - 1) < 0.05 * top);
        start += length;
        length *= 3;
        top *= 0.5;
    }
    arena_free(&arena);
}

static void restarts_of_equal_length_repeat(void **state)
{
    struct arena arena = {0};
    const struct schedule_spec spec =
        schedule_of("{\"type\": \"cosine_decay_restarts\", \"learning_rate\": 1.0, "
                    "\"first_decay_steps\": 10, \"t_mul\": 1}",
                    &arena);
    fixture_near(schedule_rate(&spec, 30), 1.0, close_enough, "third restart");
    fixture_near(schedule_rate(&spec, 35), 0.5, close_enough, "half of the fourth period");
    arena_free(&arena);
}

static struct schedule_spec noisy_of(const char *variance, struct arena *arena)
{
    char text[256];
    snprintf(text, sizeof text,
             "{\"type\": \"noisy_linear_cosine_decay\", \"learning_rate\": 0.1, "
             "\"decay_steps\": 1000, \"initial_variance\": %s}",
             variance);
    return schedule_of(text, arena);
}

static void noise_is_the_same_in_every_run_and_differs_from_step_to_step(void **state)
{
    struct arena arena = {0};
    const struct schedule_spec a = noisy_of("1.0", &arena), b = noisy_of("1.0", &arena);
    for (int step = 0; step < 100; step++) {
        assert_true(schedule_rate(&a, step) == schedule_rate(&b, step));
        assert_true(schedule_rate(&a, step) != schedule_rate(&a, step + 1));
    }
    arena_free(&arena);
}

static void noise_has_the_variance_that_was_asked_for(void **state)
{
    struct arena arena = {0};
    const struct schedule_spec noisy = noisy_of("4.0", &arena), still = noisy_of("0.0", &arena);
    const struct schedule_spec linear =
        schedule_of("{\"type\": \"linear_cosine_decay\", \"learning_rate\": 0.1, "
                    "\"decay_steps\": 1000}",
                    &arena);
    double squares = 0.0;
    for (int step = 0; step < 400; step++) {
        const double quiet = schedule_rate(&linear, step);
        assert_true(schedule_rate(&still, step) == quiet);
        const double cosine = 0.5 * (1.0 + cos(M_PI * step / 1000.0));
        const double noise = (schedule_rate(&noisy, step) - quiet) / (0.1 * cosine);
        squares += noise * noise * pow(1.0 + step, 0.55) / 4.0;
    }
    fixture_near(squares / 400, 1.0, (struct tolerance){.absolute = 0.25}, "variance");
    arena_free(&arena);
}

/* By hand: half a cycle is 4 steps, and each cycle climbs half as far as the one before. */
static void cycles_climb_and_fall_and_shrink_by_gamma(void **state)
{
    static const double wanted[] = {0.1, 0.3, 0.5, 0.7, 0.9, 0.7, 0.5, 0.3, 0.1,
                                    0.2, 0.3, 0.4, 0.5, 0.4, 0.3, 0.2, 0.1, 0.15};
    struct arena arena = {0};
    const struct schedule_spec shrinking = schedule_of(
        "{\"type\": \"cyclical\", \"learning_rate\": 0.1, \"maximal_learning_rate\": 0.9, "
        "\"step_size\": 4, \"gamma\": 0.5}",
        &arena);
    const struct schedule_spec plain = schedule_of(
        "{\"type\": \"cyclical\", \"learning_rate\": 0.1, \"maximal_learning_rate\": 0.9, "
        "\"step_size\": 4}",
        &arena);
    for (int step = 0; step < 18; step++) {
        fixture_near(schedule_rate(&shrinking, step), wanted[step], close_enough, "shrinking");
        fixture_near(schedule_rate(&plain, 8000 + step), wanted[step % 8], close_enough, "plain");
    }
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_of_tensorflow_is_met),
        cmocka_unit_test(every_length_may_be_said_in_epochs),
        cmocka_unit_test(no_epoch_is_less_than_a_step_or_more_than_there_are),
        cmocka_unit_test(a_bare_number_is_the_rate_of_every_step),
        cmocka_unit_test(warm_up_climbs_to_the_first_rate_and_then_the_schedule_goes_on),
        cmocka_unit_test(each_restart_is_at_its_very_step),
        cmocka_unit_test(restarts_of_equal_length_repeat),
        cmocka_unit_test(cycles_climb_and_fall_and_shrink_by_gamma),
        cmocka_unit_test(noise_is_the_same_in_every_run_and_differs_from_step_to_step),
        cmocka_unit_test(noise_has_the_variance_that_was_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
