/* test_command.c - commands that run beside a made-up run. What they do is seen through pipes with
 * a name: opening one waits for its other end, and its end comes when the last writer is gone. */
#include "tests/core/train/hooks/rig.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A hook at these moments with this command, in which PIPE is the path of a pipe. */
static void start(struct rig *rig, const char *at, const char *command, const char *more)
{
    char pipe[128], set[1024];
    snprintf(pipe, sizeof pipe, "%s/pipe", rig->folder);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    setenv("PIPE", pipe, 1);
    snprintf(set, sizeof set,
             "train.hooks=[{\"type\": \"command\", \"at\": [%s], \"command\": \"%s\"%s}]", at,
             command, more);
    rig_start(rig, (const char *const[]){set, NULL});
}

static int open_pipe(const struct rig *rig)
{
    char path[128];
    snprintf(path, sizeof path, "%s/pipe", rig->folder);
    const int pipe = open(path, O_RDONLY);
    assert_true(pipe >= 0);
    return pipe;
}

/* Everything up to the end, which comes when nobody holds the other side any more. */
static void expect_from(int pipe, const char *wanted)
{
    char text[4096];
    size_t used = 0;
    ssize_t got;
    while ((got = read(pipe, text + used, sizeof text - 1 - used)) > 0) used += (size_t)got;
    assert_int_equal(got, 0);
    text[used] = '\0';
    close(pipe);
    assert_string_equal(text, wanted);
}

/* Until a child has ended; it stays to be waited for. */
static void wait_for_child(void)
{
    siginfo_t info;
    assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
}

#define SHOW "env | grep ^DTRAIN_ | sort > $PIPE"

static void the_environment_says_what_happened(void **state)
{
    struct rig *rig = *state;
    setenv("DTRAIN_STEP", "999", 1); /* of a run that runs this one */
    setenv("DTRAIN_METRIC_OLD", "1", 1);
    setenv("DTRAIN_ENVIRONMENT_PREPARED", "1", 1); /* of this process */
    start(rig, "\"start\", \"checkpoint\", \"evaluation\"", SHOW, "");
    rig_adopt(rig, 20, 0);
    expect_from(open_pipe(rig), "DTRAIN_EVENT=start\nDTRAIN_SPEC_NAME=rig\nDTRAIN_STEP=20\n");
    wait_for_child();
    rig_step(rig, 21, 1);
    rig_evaluated(rig, 30, 0.75, 0.5);
    expect_from(open_pipe(rig), "DTRAIN_EVENT=evaluation\nDTRAIN_LOSS=0.75\n"
                                "DTRAIN_METRIC_ACCURACY=0.5\nDTRAIN_SPEC_NAME=rig\n"
                                "DTRAIN_STEP=30\n");
    wait_for_child();
    rig_step(rig, 31, 2);
    rig_saved(rig, "/run/model.ckpt-31", NULL);
    expect_from(open_pipe(rig), "DTRAIN_CHECKPOINT=/run/model.ckpt-31\nDTRAIN_EVENT=checkpoint\n"
                                "DTRAIN_LOSS=0.25\nDTRAIN_METRIC_ACCURACY=0.5\n"
                                "DTRAIN_SPEC_NAME=rig\nDTRAIN_STEP=31\n");
    rig_end(rig, 0);
    assert_string_equal(rig_log(rig), "");
    unsetenv("DTRAIN_STEP");
    unsetenv("DTRAIN_METRIC_OLD");
    unsetenv("DTRAIN_ENVIRONMENT_PREPARED");
}

static void at_the_end_the_command_is_waited_for(void **state)
{
    struct rig *rig = *state;
    char path[128];
    start(rig, "\"end\"", "sleep 0.05; echo $DTRAIN_EVENT $DTRAIN_CODE > $PIPE.out", "");
    rig_adopt(rig, 0, 0);
    rig_step(rig, 1, 1);
    rig_end(rig, 3);
    snprintf(path, sizeof path, "%s/pipe.out", rig->folder);
    expect_from(open(path, O_RDONLY), "end 3\n");
}

static void what_it_prints_goes_to_standard_error(void **state)
{
    struct rig *rig = *state;
    start(rig, "\"end\"", "echo out; echo err >&2; cat", "");
    rig_end(rig, 0);
    assert_string_equal(rig_log(rig), "out\nerr\n");
}

static void a_failure_is_a_warning(void **state)
{
    struct rig *rig = *state;
    start(rig, "\"start\"", "exit 3", "");
    rig_adopt(rig, 0, 0);
    wait_for_child();
    rig_step(rig, 1, 1);
    assert_string_equal(rig_log(rig),
                        "WARNING: the command at start (\"exit 3\") ended with code 3\n");
}

static void a_failure_ends_the_job_where_the_spec_says_so(void **state)
{
    struct rig *rig = *state;
    start(rig, "\"start\"", "kill -9 $$", ", \"on_failure\": \"stop\"");
    rig_adopt(rig, 0, 0);
    wait_for_child();
    assert_int_equal(rig_tell(rig, OCCASION_STEPPED), ERR_DEVICE);
    assert_string_equal(
        error_text(),
        "train.hooks[0]: command: the command at start (\"kill -9 $$\") was ended by signal 9");
}

/* The pipe's end comes only when the shell and what it started are both gone. */
#define LINGER "exec 3> $PIPE; sleep 1000 & sleep 1000"

static void a_command_that_takes_too_long_is_killed_with_its_children(void **state)
{
    struct rig *rig = *state;
    start(rig, "\"start\"", LINGER, ", \"timeout_secs\": 5");
    rig_adopt(rig, 0, 10);
    const int pipe = open_pipe(rig);
    rig_step(rig, 1, 14.9);
    assert_string_equal(rig_log(rig), "");
    rig_step(rig, 2, 15);
    expect_from(pipe, "");
    assert_string_equal(rig_log(rig), "WARNING: the command at start (\"" LINGER
                                      "\") was killed: it took longer than "
                                      "5 s (timeout_secs)\n");
}

static void the_limit_holds_at_the_end_too(void **state)
{
    struct rig *rig = *state;
    start(rig, "\"end\"", "sleep 1000", ", \"timeout_secs\": 0.05");
    rig_end(rig, 0);
    assert_string_equal(
        rig_log(rig),
        "WARNING: the command at end (\"sleep 1000\") was killed: it took longer than "
        "0.05 s (timeout_secs)\n");
}

static void without_an_end_nothing_is_left_behind(void **state)
{
    struct rig *rig = *state;
    start(rig, "\"start\"", LINGER, "");
    rig_adopt(rig, 0, 0);
    const int pipe = open_pipe(rig);
    hooks_close(&rig->view);
    expect_from(pipe, "");
}

static void one_runs_at_a_time_and_the_others_wait(void **state)
{
    struct rig *rig = *state;
    start(rig, "\"start\", \"checkpoint\"", "echo $DTRAIN_EVENT > $PIPE", "");
    rig_adopt(rig, 0, 0); /* writes when somebody reads */
    rig_saved(rig, "/run/model.ckpt-1", NULL);
    rig_step(rig, 1, 1);
    expect_from(open_pipe(rig), "start\n");
    wait_for_child();
    rig_step(rig, 2, 2);
    expect_from(open_pipe(rig), "checkpoint\n");
    rig_end(rig, 0);
    assert_string_equal(rig_log(rig), "");
}

static void of_more_than_the_queue_holds_the_newest_run(void **state)
{
    struct rig *rig = *state;
    char path[128], saved[128];
    start(rig, "\"checkpoint\"",
          "read line < $PIPE; echo $DTRAIN_STEP $DTRAIN_CHECKPOINT >> $PIPE.out", "");
    for (int i = 1; i <= 11; i++) {
        if (i == 10) assert_string_equal(rig_log(rig), "");
        snprintf(saved, sizeof saved, "/run/model.ckpt-%d", i);
        rig_step(rig, (uint64_t)i, (uint64_t)i);
        rig_saved(rig, saved, NULL);
    }
    snprintf(path, sizeof path, "%s/pipe", rig->folder);
    const int lines = open(path, O_RDWR);
    assert_int_equal(write(lines, "\n\n\n\n\n\n\n\n\n", 9), 9);
    rig_end(rig, 0);
    close(lines);
    snprintf(path, sizeof path, "%s/pipe.out", rig->folder);
    expect_from(open(path, O_RDONLY),
                "1 /run/model.ckpt-1\n4 /run/model.ckpt-4\n5 /run/model.ckpt-5\n"
                "6 /run/model.ckpt-6\n7 /run/model.ckpt-7\n8 /run/model.ckpt-8\n"
                "9 /run/model.ckpt-9\n10 /run/model.ckpt-10\n11 /run/model.ckpt-11\n");
    const char *const what = "WARNING: the command at checkpoint (\"read line < $PIPE; echo "
                             "$DTRAIN_STEP $DTRAIN_CHE...\") of step %d is left out: 8 runs of it "
                             "are waiting\n";
    char said[1024];
    const int used = snprintf(said, sizeof said, what, 2);
    snprintf(said + used, sizeof said - (size_t)used, what, 3);
    assert_string_equal(rig_log(rig), said);
}

static void the_end_is_never_left_out(void **state)
{
    struct rig *rig = *state;
    char path[128];
    start(rig, "\"checkpoint\", \"end\"",
          "if test $DTRAIN_EVENT = end; then echo $DTRAIN_CODE > $PIPE.out; else false; fi",
          ", \"on_failure\": \"stop\"");
    for (int i = 0; i < 9; i++) rig_saved(rig, "/run/model.ckpt-1", NULL);
    assert_int_equal(
        hooks_tell(&rig->view, &(struct occasion){OCCASION_END, .end = {.code = 3, .text = ""}}),
        ERR_DEVICE); /* as those before it failed */
    hooks_close(&rig->view);
    snprintf(path, sizeof path, "%s/pipe.out", rig->folder);
    expect_from(open(path, O_RDONLY), "3\n");
}

/* As of process 1 of a container: what a command leaves behind is this process' child. */
static void what_a_command_leaves_behind_becomes_no_zombie(void **state)
{
    struct rig *rig = *state;
    siginfo_t info = {0};
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    start(rig, "\"start\"", "(exec sleep 0.05) & (exec sleep 0.1) & true", "");
    rig_adopt(rig, 1, 0);
    int children = 0;
    for (uint64_t step = 2; children == 0 && step < 100000; step++) {
        usleep(1000);
        rig_step(rig, step, 1);
        children = waitid(P_ALL, 0, &info, WEXITED | WNOWAIT | WNOHANG);
    }
    assert_int_equal(children, -1); /* ECHILD */
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

static void a_checkpoint_that_failed_runs_nothing(void **state)
{
    struct rig *rig = *state;
    start(rig, "\"checkpoint\"", "exit 1", "");
    rig_saved(rig, NULL, "the disk is full");
    rig_end(rig, 0);
    assert_string_equal(rig_log(rig), "");
}

#define WITH_RIG(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RIG(the_environment_says_what_happened),
        WITH_RIG(at_the_end_the_command_is_waited_for),
        WITH_RIG(what_it_prints_goes_to_standard_error),
        WITH_RIG(a_failure_is_a_warning),
        WITH_RIG(a_failure_ends_the_job_where_the_spec_says_so),
        WITH_RIG(a_command_that_takes_too_long_is_killed_with_its_children),
        WITH_RIG(the_limit_holds_at_the_end_too),
        WITH_RIG(without_an_end_nothing_is_left_behind),
        WITH_RIG(one_runs_at_a_time_and_the_others_wait),
        WITH_RIG(of_more_than_the_queue_holds_the_newest_run),
        WITH_RIG(the_end_is_never_left_out),
        WITH_RIG(what_a_command_leaves_behind_becomes_no_zombie),
        WITH_RIG(a_checkpoint_that_failed_runs_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
