/* test_timeline.c - the file of a timeline, read back as JSON, and the shares. */
#include "tests/core/train/hooks/rig.h"

#include <jansson.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { US = 1000, PATH_BYTES = 256 };

/* A step of worker/0 from 1000 to 2000 us of its clock, with one node's computation and an exchange
 * with ps/0. */
static const struct span chief_spans[] = {
    {.begin_ns = 1000 * US, .end_ns = 2000 * US, .step = 100, .kind = SPAN_STEP},
    {.begin_ns = 1010 * US, .end_ns = 1110 * US, .step = 100, .kind = SPAN_DATA},
    {.begin_ns = 1110 * US, .end_ns = 1310 * US, .step = 100, .subject = 1, .kind = SPAN_FORWARD},
    {.begin_ns = 1310 * US, .end_ns = 1410 * US, .step = 100, .subject = 1, .kind = SPAN_BACKWARD},
    {.begin_ns = 1500 * US, .end_ns = 1600 * US, .step = 100, .bytes = 64, .kind = SPAN_PUSH},
    {.begin_ns = 1600 * US, .end_ns = 1900 * US, .step = 100, .bytes = 64, .kind = SPAN_WAIT},
};
/* By a clock that is 5000 us ahead. */
static const struct span ps_spans[] = {
    {.begin_ns = 6650 * US, .end_ns = 6700 * US, .step = 100, .bytes = 64, .kind = SPAN_RECEIVE},
    {.begin_ns = 6700 * US, .end_ns = 6800 * US, .step = 100, .count = 1, .kind = SPAN_APPLY},
    {.begin_ns = 7100 * US, .end_ns = 7200 * US, .step = 101, .kind = SPAN_REFRESH},
};

enum { CHIEF, OTHER, PS, PARTS };

struct made {
    struct timeline_part parts[PARTS];
    struct timeline timeline;
    char path[PATH_BYTES];
};

static void make(struct rig *rig, struct made *m)
{
    rig_prepare(rig, (const char *const[]){NULL});
    *m = (struct made){
        .parts = {[CHIEF] = {.spans = chief_spans,
                             .span_count = sizeof chief_spans / sizeof chief_spans[0]},
                  [OTHER] = {.task = 1, .missing = "it said \"no\"\n"},
                  [PS] = {.is_ps = true,
                          .spans = ps_spans,
                          .span_count = sizeof ps_spans / sizeof ps_spans[0],
                          .dropped = 3,
                          .shift_ns = -5000 * US,
                          .error_ns = 20 * US}},
    };
    m->timeline = (struct timeline){.graph = rig->session.graph,
                                    .first_step = 100,
                                    .steps = 1,
                                    .parts = m->parts,
                                    .part_count = PARTS};
    snprintf(m->path, sizeof m->path, "%s/timeline.json", rig->folder);
}

static json_t *load(const char *path)
{
    json_error_t error;
    json_t *json = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!json) fail_msg("%s:%d: %s", path, error.line, error.text);
    return json;
}

static json_t *written(const struct made *m)
{
    rig_must(timeline_write(&m->timeline, m->path));
    return load(m->path);
}

static const char *text_of(json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));
    return text ? text : "";
}

/* The only event of the category; NULL: there is none. */
static json_t *event_of(json_t *file, const char *category)
{
    size_t i;
    json_t *event, *found = NULL;
    json_array_foreach(json_object_get(file, "traceEvents"), i, event)
    {
        if (strcmp(text_of(event, "cat"), category) != 0) continue;
        assert_null(found);
        found = event;
    }
    return found;
}

static void assert_us(json_t *event, const char *key, double us)
{
    assert_float_equal(json_number_value(json_object_get(event, key)), us, 0.0005);
}

static void times_are_the_chiefs_from_the_first_step_on(void **state)
{
    struct made m;
    make(*state, &m);
    json_t *file = written(&m);
    assert_us(event_of(file, "step"), "ts", 0);
    assert_us(event_of(file, "step"), "dur", 1000);
    assert_us(event_of(file, "wait"), "ts", 600);
    assert_us(event_of(file, "receive"), "ts", 650);
    assert_us(event_of(file, "apply"), "ts", 700);
    assert_us(event_of(file, "apply"), "dur", 100);
    json_decref(file);
}

static void what_a_ps_did_after_the_last_step_is_left_out(void **state)
{
    struct made m;
    make(*state, &m);
    json_t *file = written(&m);
    assert_null(event_of(file, "refresh"));
    json_decref(file);
    m.parts[PS].error_ns = 250 * US; /* it may have been within */
    file = written(&m);
    assert_non_null(event_of(file, "refresh"));
    json_decref(file);
}

/* Its clock may be behind by so much: then its step ended later than it says. */
static void what_was_perhaps_within_the_step_of_a_worker_is_shown(void **state)
{
    static const struct span step = {
        .begin_ns = 1100 * US, .end_ns = 1900 * US, .step = 100, .kind = SPAN_STEP};
    struct made m;
    make(*state, &m);
    m.parts[OTHER] =
        (struct timeline_part){.task = 1, .spans = &step, .span_count = 1, .error_ns = 270 * US};
    json_t *file = written(&m);
    assert_null(event_of(file, "refresh"));
    json_decref(file);
    m.parts[OTHER].error_ns = 290 * US;
    file = written(&m);
    assert_non_null(event_of(file, "refresh"));
    json_decref(file);
}

static void spans_say_what_they_are_of(void **state)
{
    struct made m;
    make(*state, &m);
    json_t *file = written(&m);
    assert_string_equal(text_of(event_of(file, "forward"), "name"), "logits");
    json_t *args = json_object_get(event_of(file, "forward"), "args");
    assert_string_equal(text_of(args, "op"), "dense");
    assert_string_equal(text_of(event_of(file, "push"), "name"), "push to ps/0");
    args = json_object_get(event_of(file, "push"), "args");
    assert_int_equal(json_integer_value(json_object_get(args, "bytes")), 64);
    assert_int_equal(json_integer_value(json_object_get(args, "step")), 100);
    assert_string_equal(text_of(event_of(file, "apply"), "name"), "apply worker/0");
    json_decref(file);
}

/* Returns how many rows of processes there are. */
static int rows_of(json_t *file, const char *ret_names[PARTS])
{
    size_t i;
    int count = 0;
    json_t *event;
    json_array_foreach(json_object_get(file, "traceEvents"), i, event)
    {
        if (strcmp(text_of(event, "name"), "process_name") != 0) continue;
        assert_true(count < PARTS);
        ret_names[count++] = text_of(json_object_get(event, "args"), "name");
    }
    return count;
}

static void each_task_that_is_there_has_a_row(void **state)
{
    struct made m;
    const char *names[PARTS];
    make(*state, &m);
    json_t *file = written(&m);
    assert_int_equal(rows_of(file, names), 2);
    assert_string_equal(names[0], "worker/0");
    assert_string_equal(names[1], "ps/0");
    json_decref(file);
}

static void who_is_missing_is_named_with_the_reason(void **state)
{
    struct made m;
    make(*state, &m);
    json_t *file = written(&m);
    json_t *missing = json_object_get(json_object_get(file, "otherData"), "missing");
    assert_int_equal(json_array_size(missing), 1);
    assert_string_equal(text_of(json_array_get(missing, 0), "task"), "worker/1");
    assert_string_equal(text_of(json_array_get(missing, 0), "why"), "it said \"no\"\n");
    json_decref(file);
}

static void the_error_of_a_clock_and_what_did_not_fit_are_stated(void **state)
{
    struct made m;
    make(*state, &m);
    json_t *file = written(&m);
    json_t *tasks = json_object_get(json_object_get(file, "otherData"), "tasks");
    assert_int_equal(json_array_size(tasks), 2);
    json_t *ps = json_array_get(tasks, 1);
    assert_us(ps, "shift_us", -5000);
    assert_us(ps, "error_us", 20);
    assert_int_equal(json_integer_value(json_object_get(ps, "dropped")), 3);
    json_decref(file);
}

static json_t *named_row(json_t *file, const char *name)
{
    size_t i;
    json_t *event;
    json_array_foreach(json_object_get(file, "traceEvents"), i, event)
    {
        if (strcmp(text_of(event, "name"), "thread_name") != 0) continue;
        if (!strcmp(text_of(json_object_get(event, "args"), "name"), name)) return event;
    }
    return NULL;
}

static void each_tower_but_the_first_has_a_row(void **state)
{
    struct made m;
    make(*state, &m);
    struct span spans[] = {chief_spans[0], chief_spans[2], chief_spans[3]};
    spans[1].count = 2; /* of the third tower */
    m.parts[CHIEF].spans = spans;
    m.parts[CHIEF].span_count = 3;
    json_t *file = written(&m), *row = named_row(file, "tower 2");
    assert_non_null(row);
    assert_non_null(named_row(file, "tower 1"));
    assert_null(named_row(file, "tower 3"));
    const json_t *at = json_object_get(row, "tid");
    assert_true(json_equal(json_object_get(event_of(file, "forward"), "tid"), at));
    assert_false(json_equal(json_object_get(event_of(file, "backward"), "tid"), at));
    assert_float_equal(timeline_shares(&m.parts[CHIEF]).compute, 100e-6, 1e-9);
    json_decref(file);
}

static void names_are_written_as_json_has_them(void **state)
{
    struct made m;
    struct rig *rig = *state;
    make(rig, &m);
    rig->session.graph->nodes[1].name = "a\"b\\c\t\xc3\xa4";
    json_t *file = written(&m);
    assert_string_equal(text_of(event_of(file, "forward"), "name"), "a\"b\\c\t\xc3\xa4");
    json_decref(file);
}

static void without_any_step_the_file_is_json_all_the_same(void **state)
{
    struct made m;
    const char *names[PARTS];
    make(*state, &m);
    for (int i = 0; i < PARTS; i++) m.parts[i].missing = "gone";
    json_t *file = written(&m);
    assert_int_equal(rows_of(file, names), 0);
    json_decref(file);
}

static void nobody_sees_half_a_file(void **state)
{
    struct made m;
    char temporary[PATH_BYTES + 8];
    make(*state, &m);
    json_decref(written(&m));
    snprintf(temporary, sizeof temporary, "%s.tmp", m.path);
    assert_int_equal(access(temporary, F_OK), -1);
}

static void a_folder_that_is_not_there_is_an_error_of_the_disk(void **state)
{
    struct made m;
    make(*state, &m);
    snprintf(m.path, sizeof m.path, "%s/none/timeline.json", ((struct rig *)*state)->folder);
    assert_int_equal(timeline_write(&m.timeline, m.path), ERR_IO);
    assert_non_null(strstr(error_text(), "none/timeline.json"));
}

/* A limit on the size of files plays the full disk. */
static void a_full_disk_is_an_error_and_leaves_nothing(void **state)
{
    struct made m;
    struct rlimit limit;
    char temporary[PATH_BYTES + 8];
    make(*state, &m);
    snprintf(temporary, sizeof temporary, "%s.tmp", m.path);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    const err e = timeline_write(&m.timeline, m.path);
    limit.rlim_cur = before;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(e, ERR_IO);
    assert_int_equal(access(temporary, F_OK), -1);
    assert_int_equal(access(m.path, F_OK), -1);
}

static void shares_are_of_the_steps(void **state)
{
    struct made m;
    make(*state, &m);
    const struct timeline_shares s = timeline_shares(&m.parts[CHIEF]);
    assert_int_equal(s.count, 1);
    assert_float_equal(s.steps, 1000e-6, 1e-12);
    assert_float_equal(s.compute, 300e-6, 1e-12);
    assert_float_equal(s.data, 100e-6, 1e-12);
    assert_float_equal(s.push, 100e-6, 1e-12);
    assert_float_equal(s.wait, 300e-6, 1e-12);
    assert_float_equal(s.hidden, 0, 1e-12);
    assert_int_equal(timeline_shares(&m.parts[OTHER]).count, 0);
}

static void what_leaves_before_the_push_is_hidden(void **state)
{
    static const struct span spans[] = {
        {.begin_ns = 1000 * US, .end_ns = 2000 * US, .kind = SPAN_STEP},
        {.begin_ns = 990 * US, .end_ns = 990 * US, .kind = SPAN_PART}, /* another step's */
        {.begin_ns = 1300 * US, .end_ns = 1300 * US, .subject = 1, .kind = SPAN_PART},
        {.begin_ns = 1350 * US, .end_ns = 1350 * US, .kind = SPAN_PART},
        {.begin_ns = 1500 * US, .end_ns = 1600 * US, .kind = SPAN_PUSH},
        {.begin_ns = 1510 * US, .end_ns = 1610 * US, .subject = 1, .kind = SPAN_PUSH},
    };
    const struct timeline_part part = {.spans = spans,
                                       .span_count = sizeof spans / sizeof spans[0]};
    const struct timeline_shares s = timeline_shares(&part);
    assert_float_equal(s.hidden, 200e-6, 1e-12);
    assert_float_equal(s.push, 110e-6, 1e-12);
}

static void what_is_computed_of_the_next_step_meanwhile_is_hidden(void **state)
{
    static const struct span spans[] = {
        {.begin_ns = 1000 * US, .end_ns = 2000 * US, .step = 7, .kind = SPAN_STEP},
        {.begin_ns = 1100 * US, .end_ns = 1200 * US, .step = 7, .kind = SPAN_FORWARD},
        {.begin_ns = 1500 * US, .end_ns = 1600 * US, .step = 7, .kind = SPAN_PUSH},
        {.begin_ns = 1510 * US, .end_ns = 1540 * US, .step = 8, .kind = SPAN_FORWARD},
        {.begin_ns = 1600 * US, .end_ns = 1900 * US, .step = 7, .kind = SPAN_WAIT},
        {.begin_ns = 1610 * US, .end_ns = 1810 * US, .step = 8, .kind = SPAN_FORWARD},
        {.begin_ns = 1910 * US, .end_ns = 1920 * US, .step = 8, .kind = SPAN_FORWARD},
    };
    const struct timeline_part part = {.spans = spans,
                                       .span_count = sizeof spans / sizeof spans[0]};
    const struct timeline_shares s = timeline_shares(&part);
    assert_float_equal(s.push, 70e-6, 1e-12);
    assert_float_equal(s.wait, 100e-6, 1e-12);
    assert_float_equal(s.hidden, 230e-6, 1e-12);
    assert_float_equal(s.compute, 340e-6, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define RIGGED(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)
        RIGGED(times_are_the_chiefs_from_the_first_step_on),
        RIGGED(what_a_ps_did_after_the_last_step_is_left_out),
        RIGGED(what_was_perhaps_within_the_step_of_a_worker_is_shown),
        RIGGED(spans_say_what_they_are_of),
        RIGGED(each_task_that_is_there_has_a_row),
        RIGGED(each_tower_but_the_first_has_a_row),
        RIGGED(who_is_missing_is_named_with_the_reason),
        RIGGED(the_error_of_a_clock_and_what_did_not_fit_are_stated),
        RIGGED(names_are_written_as_json_has_them),
        RIGGED(without_any_step_the_file_is_json_all_the_same),
        RIGGED(nobody_sees_half_a_file),
        RIGGED(a_folder_that_is_not_there_is_an_error_of_the_disk),
        RIGGED(a_full_disk_is_an_error_and_leaves_nothing),
        RIGGED(shares_are_of_the_steps),
        cmocka_unit_test(what_leaves_before_the_push_is_hidden),
        cmocka_unit_test(what_is_computed_of_the_next_step_meanwhile_is_hidden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
