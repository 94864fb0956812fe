/* test_summaries.c - what a chief's event file holds after a made-up run, read back. */
#include "tests/core/train/hooks/rig.h"

#include <stdlib.h>
#include <string.h>

#include "tests/core/train/summary/reader.h"

/* Fields of Event, Summary.Value, HistogramProto and SessionLog: events.proto, summary.proto */
enum { EVENT_STEP = 2, EVENT_GRAPH = 4, EVENT_SUMMARY = 5, EVENT_SESSION = 7 };
enum { VALUE_TAG = 1, VALUE_NUMBER = 2, VALUE_HISTOGRAM = 5, VALUE_TENSOR = 8 };
enum { HISTOGRAM_NUMBER = 3, SESSION_STATUS = 1, SESSION_PATH = 2, TENSOR_STRING = 8 };

struct story { /* the file as lines: "10 loss 0.25" */
    char text[RIG_TEXT_MAX];
    size_t used;
};

__attribute__((format(printf, 2, 3))) static void tell(struct story *story, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    story->used += (size_t)vsnprintf(story->text + story->used, sizeof story->text - story->used,
                                     format, arguments);
    va_end(arguments);
    assert_true(story->used < sizeof story->text);
}

static void tell_value(struct story *story, unsigned long long step, struct bytes value)
{
    const struct bytes tag = part_of(value, VALUE_TAG).content;
    tell(story, "%llu %.*s ", step, (int)tag.count, (const char *)tag.at);
    if (part_count(value, VALUE_NUMBER)) {
        tell(story, "%.6g\n", part_of(value, VALUE_NUMBER).real);
    } else if (part_count(value, VALUE_HISTOGRAM)) {
        const struct bytes histogram = part_of(value, VALUE_HISTOGRAM).content;
        tell(story, "of %.0f\n", part_of(histogram, HISTOGRAM_NUMBER).real);
    } else {
        const struct bytes tensor = part_of(value, VALUE_TENSOR).content;
        const struct bytes text = part_of(tensor, TENSOR_STRING).content;
        tell(story, "is\n%.*s", (int)text.count, (const char *)text.at);
    }
}

static void tell_session(struct story *story, unsigned long long step, struct bytes session)
{
    static const char *const names[] = {"", "START", "STOP", "CHECKPOINT"};
    tell(story, "%llu %s", step, names[part_of(session, SESSION_STATUS).integer]);
    if (part_count(session, SESSION_PATH)) {
        const struct bytes path = part_of(session, SESSION_PATH).content;
        tell(story, " %.*s", (int)path.count, (const char *)path.at);
    }
    tell(story, "\n");
}

static void tell_event(struct story *story, struct bytes event)
{
    const bool has_step = part_count(event, EVENT_STEP) > 0;
    const unsigned long long step = has_step ? part_of(event, EVENT_STEP).integer : 0;
    if (part_count(event, EVENT_GRAPH)) tell(story, "%llu graph\n", step);
    if (part_count(event, EVENT_SESSION))
        tell_session(story, step, part_of(event, EVENT_SESSION).content);
    if (!part_count(event, EVENT_SUMMARY)) return;
    const struct bytes summary = part_of(event, EVENT_SUMMARY).content;
    for (int i = 0; i < part_count(summary, 1); i++)
        tell_value(story, step, part_at(summary, 1, i).content);
}

/* Of the folder's only event file. */
static struct story read_story(const char *folder)
{
    struct story story = {.used = 0};
    char path[512];
    scratch_find(folder, "tfevents", path);
    assert_true(path[0] != '\0');
    const struct bytes file = file_load(path);
    for (int i = 0; i < record_count(file); i++) tell_event(&story, record_at(file, i));
    free((void *)file.at);
    return story;
}

/* From the line that begins with this word to the line that does. */
static void cut(struct story *story, const char *from, const char *to)
{
    char *begin = strstr(story->text, from), *end = begin ? strstr(begin, to) : NULL;
    assert_non_null(end);
    memmove(begin, end, strlen(end) + 1);
}

static void start(struct rig *rig, const char *set, const char *other)
{
    static char directory[128];
    snprintf(directory, sizeof directory, "train.summary_dir=%s/run", rig->folder);
    rig_start(rig, (const char *const[]){directory, set, other, NULL});
}

/* What evaluations have written, after end(). */
static struct story evaluations(struct rig *rig)
{
    char run[128];
    snprintf(run, sizeof run, "%s/run/eval", rig->folder);
    return read_story(run);
}

static struct story end(struct rig *rig)
{
    char run[128];
    rig_end(rig, 0);
    snprintf(run, sizeof run, "%s/run", rig->folder);
    return read_story(run);
}

static void a_run_is_told_from_start_to_stop(void **state)
{
    struct rig *rig = *state;
    start(rig, "train.save_summaries_steps=2", "train.log_step_count_steps=3");
    rig_adopt(rig, 0, 0);
    for (uint64_t step = 1; step <= 4; step++) {
        rig->view.loss = 1.0 / (double)step;
        rig->view.staleness = step;
        rig->view.push_seconds = 0.001;
        rig_step(rig, step, (double)step / 2);
    }
    rig_evaluated(rig, 4, 0.75, 0.5);
    struct story story = end(rig);
    char accuracy[32], wanted[2048];
    snprintf(accuracy, sizeof accuracy, "%.6g", session_metric(&rig->session, 0));
    cut(&story, "0 spec is", "1 loss");
    snprintf(wanted, sizeof wanted,
             "0 graph\n0 START\n"
             "1 loss 1\n1 accuracy %s\n1 learning_rate 0.5\n"
             "3 loss 0.333333\n3 accuracy %s\n3 learning_rate 0.5\n"
             "3 staleness of 2\n3 push_seconds of 2\n"
             "4 global_step/sec 2\n4 examples/sec 8\n"
             "4 STOP\n",
             accuracy, accuracy);
    assert_string_equal(story.text, wanted);
    assert_string_equal(evaluations(rig).text, "4 START\n4 loss 0.75\n4 accuracy 0.5\n");
}

static void the_spec_is_there_as_a_block_of_code(void **state)
{
    struct rig *rig = *state;
    start(rig, "train.save_summaries_steps=100", NULL);
    rig_adopt(rig, 0, 0);
    const struct story story = end(rig);
    assert_non_null(strstr(story.text, "0 spec is\n    {\n      \"name\": \"rig\",\n"));
    assert_non_null(strstr(story.text, "\n    }"));
}

static void after_a_recovery_the_session_starts_again_with_the_step_that_comes(void **state)
{
    struct rig *rig = *state;
    start(rig, "train.save_summaries_steps=100", "train.log_step_count_steps=0");
    rig_adopt(rig, 0, 0);
    rig_adopt(rig, 70, 5);
    struct story story = end(rig);
    cut(&story, "0 spec is", "71 ");
    assert_string_equal(story.text, "0 graph\n0 START\n71 START\n70 STOP\n");
}

static void synchronous_training_has_no_staleness(void **state)
{
    struct rig *rig = *state;
    start(rig, "train.mode=sync", "train.save_summaries_steps=1");
    rig_adopt(rig, 0, 0);
    for (uint64_t step = 1; step <= 3; step++) rig_step(rig, step, (double)step);
    const struct story story = end(rig);
    assert_non_null(strstr(story.text, "3 push_seconds of 1\n"));
    assert_null(strstr(story.text, "staleness"));
}

static void histograms_of_variables_and_the_norm_come_on_demand(void **state)
{
    struct rig *rig = *state;
    start(rig,
          "train.hooks=[{\"type\": \"summary_saver\", \"save_secs\": 10, \"parameters\": true, "
          "\"gradients\": true, \"gradient_norm\": true}]",
          "train.log_step_count_steps=0");
    const int64_t floats = rig->session.layout->block_floats[0];
    for (int64_t i = 0; i < floats; i++) rig->gradients[i] = 0;
    rig->session.graph->params[1]->gradient[0] = 3;
    rig->session.graph->params[1]->gradient[9] = -4;
    rig_adopt(rig, 0, 0);
    rig_step(rig, 1, 0);
    rig_step(rig, 2, 9);
    struct story story = end(rig);
    cut(&story, "0 spec is", "1 ");
    cut(&story, "1 accuracy", "1 learning_rate");
    assert_string_equal(story.text,
                        "0 graph\n0 START\n"
                        "1 parameters/logits/kernel of 7840\n1 gradients/logits/kernel of 7840\n"
                        "1 parameters/logits/bias of 10\n1 gradients/logits/bias of 10\n"
                        "1 loss 0.25\n1 learning_rate 0.5\n1 gradient_norm 5\n"
                        "2 STOP\n");
}

static void the_norm_that_clipping_measured_is_recorded(void **state)
{
    struct rig *rig = *state;
    start(rig, "train.save_summaries_steps=1", NULL);
    rig->view.gradient_norm = 7.5;
    rig_adopt(rig, 0, 0);
    rig_step(rig, 1, 0);
    const struct story story = end(rig);
    assert_non_null(strstr(story.text, "1 gradient_norm 7.5\n"));
}

static void a_checkpoint_is_recorded_with_its_own_step(void **state)
{
    struct rig *rig = *state;
    start(rig, "train.checkpoint_dir=/tmp/unused", "train.save_summaries_steps=0");
    rig_adopt(rig, 0, 0);
    rig->view.global_step = 25;
    rig_saved(rig, "/tmp/unused/model.ckpt-20", NULL);
    rig_saved(rig, NULL, "the disk is full");
    const struct story story = end(rig);
    assert_string_equal(story.text, "20 CHECKPOINT /tmp/unused/model.ckpt-20\n");
}

static void a_folder_that_cannot_be_made_is_a_warning(void **state)
{
    struct rig *rig = *state;
    rig_start(rig, (const char *const[]){"train.summary_dir=/dev/null/run", NULL});
    rig_adopt(rig, 0, 0);
    rig_step(rig, 1, 0);
    rig_end(rig, 0);
    assert_non_null(strstr(rig_log(rig), "WARNING: no summaries are written: "));
}

static void a_worker_that_is_no_chief_writes_nothing(void **state)
{
    struct rig *rig = *state;
    char directory[128], path[512];
    snprintf(directory, sizeof directory, "train.summary_dir=%s", rig->folder);
    rig_prepare(rig, (const char *const[]){directory, NULL});
    rig->view.is_chief = false;
    rig_must(rig_open(rig));
    rig_adopt(rig, 0, 0);
    rig_step(rig, 1, 0);
    rig_end(rig, 0);
    scratch_find(rig->folder, "tfevents", path);
    assert_string_equal(path, "");
}

#define WITH_RIG(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RIG(a_run_is_told_from_start_to_stop),
        WITH_RIG(the_spec_is_there_as_a_block_of_code),
        WITH_RIG(after_a_recovery_the_session_starts_again_with_the_step_that_comes),
        WITH_RIG(synchronous_training_has_no_staleness),
        WITH_RIG(histograms_of_variables_and_the_norm_come_on_demand),
        WITH_RIG(the_norm_that_clipping_measured_is_recorded),
        WITH_RIG(a_checkpoint_is_recorded_with_its_own_step),
        WITH_RIG(a_folder_that_cannot_be_made_is_a_warning),
        WITH_RIG(a_worker_that_is_no_chief_writes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
