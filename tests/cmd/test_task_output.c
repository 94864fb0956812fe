/* What tasks print, on its way through the launcher's pipes. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/run/task_output.h"

#include <cmocka.h>

enum { TEXT_MAX = 65536, WAIT_MS = 60000 };

/* A task's stream: what is written to `task` goes through lines to `seen`. */
struct stage {
    struct task_output lines;
    int task, seen;
};

static void stage_open(struct stage *stage)
{
    int in[2], out[2];
    assert_int_equal(pipe2(in, O_NONBLOCK), 0);
    assert_int_equal(pipe2(out, O_NONBLOCK), 0);
    stage->lines = (struct task_output){.from = in[0], .to = out[1], .prefix = "ps/0: "};
    stage->task = in[1];
    stage->seen = out[0];
}

static void stage_close(struct stage *stage)
{
    task_output_close(&stage->lines);
    close(stage->lines.to);
    close(stage->seen);
    if (stage->task >= 0) close(stage->task);
}

/* What comes out when the task prints text. */
static const char *pass(struct stage *stage, const char *text)
{
    static char seen[TEXT_MAX];
    assert_int_equal(write(stage->task, text, strlen(text)), strlen(text));
    task_output_pass(&stage->lines);
    ssize_t got = read(stage->seen, seen, sizeof seen - 1);
    seen[got > 0 ? got : 0] = '\0';
    return seen;
}

static const char *finish(struct stage *stage)
{
    close(stage->task);
    stage->task = -1;
    static char seen[TEXT_MAX];
    task_output_pass(&stage->lines);
    ssize_t got = read(stage->seen, seen, sizeof seen - 1);
    seen[got > 0 ? got : 0] = '\0';
    return seen;
}

static void whole_lines_pass_with_the_name_in_front(void **state)
{
    struct stage stage;
    stage_open(&stage);
    assert_string_equal(pass(&stage, "one\ntwo\n\n"), "ps/0: one\nps/0: two\nps/0: \n");
    stage_close(&stage);
}

static void a_part_of_a_line_waits_for_the_rest(void **state)
{
    struct stage stage;
    stage_open(&stage);
    assert_string_equal(pass(&stage, "half"), "");
    assert_string_equal(pass(&stage, " a line\nand"), "ps/0: half a line\n");
    assert_string_equal(finish(&stage), "ps/0: and\n");
    assert_int_equal(stage.lines.from, -1);
    assert_string_equal(finish(&stage), "");
    stage_close(&stage);
}

static void a_long_line_goes_on_in_pieces(void **state)
{
    struct stage stage;
    char text[2 * LINE_BYTES_MAX + 16], expected[3 * LINE_BYTES_MAX];
    stage_open(&stage);
    memset(text, 'x', sizeof text);
    text[2 * LINE_BYTES_MAX + 3] = '\n';
    text[2 * LINE_BYTES_MAX + 4] = '\0';
    char *end = expected;
    for (int piece = 0; piece < 2; piece++) {
        end = stpcpy(end, "ps/0: ");
        memset(end, 'x', LINE_BYTES_MAX);
        end += LINE_BYTES_MAX;
        *end++ = '\n';
    }
    stpcpy(end, "ps/0: xxx\n");
    assert_string_equal(pass(&stage, text), expected);
    stage_close(&stage);
}

static void more_than_the_output_holds_comes_in_order(void **state)
{
    struct stage stage;
    char text[32768], *end = text;
    char expected[TEXT_MAX], *expected_end = expected;
    stage_open(&stage);
    for (int i = 0; i < 3000; i++) {
        char line[16];
        snprintf(line, sizeof line, "%d\n", i);
        end = stpcpy(end, line);
        expected_end = stpcpy(stpcpy(expected_end, "ps/0: "), line);
    }
    assert_string_equal(pass(&stage, text), expected);
    stage_close(&stage);
}

static void redrawn_text_is_no_line(void **state)
{
    struct stage stage;
    stage_open(&stage);
    assert_string_equal(pass(&stage, "\r\033[Kstep 1"), "");
    assert_string_equal(pass(&stage, "\r\033[Kstep 2\r\033[Kstep 3"), "");
    assert_true(stage.lines.used < 16);
    assert_string_equal(pass(&stage, "\r\033[Ka line\n"), "ps/0: a line\n");
    assert_string_equal(pass(&stage, "\r\033[Kstep 4"), "");
    assert_string_equal(finish(&stage), "");
    stage_close(&stage);
}

static void a_loop_passes_lines_on_until_the_stream_ends(void **state)
{
    struct stage stage;
    struct loop *loop;
    char seen[64];
    stage_open(&stage);
    assert_int_equal(loop_open(&loop), OK);
    assert_int_equal(task_output_watch(&stage.lines, loop), OK);
    assert_int_equal(write(stage.task, "one\ntwo", 7), 7);
    loop_poll(loop, WAIT_MS);
    assert_int_equal(read(stage.seen, seen, sizeof seen), 10);
    assert_memory_equal(seen, "ps/0: one\n", 10);
    close(stage.task);
    stage.task = -1;
    loop_poll(loop, WAIT_MS);
    assert_int_equal(read(stage.seen, seen, sizeof seen), 10);
    assert_memory_equal(seen, "ps/0: two\n", 10);
    assert_int_equal(stage.lines.from, -1);
    stage_close(&stage);
    loop_close(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_lines_pass_with_the_name_in_front),
        cmocka_unit_test(a_part_of_a_line_waits_for_the_rest),
        cmocka_unit_test(a_long_line_goes_on_in_pieces),
        cmocka_unit_test(more_than_the_output_holds_comes_in_order),
        cmocka_unit_test(redrawn_text_is_no_line),
        cmocka_unit_test(a_loop_passes_lines_on_until_the_stream_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
