/* test_disk.c - a disk that fills up in the middle of a record, and has room again later. The limit
 * on the size of files plays the disk.
 */
#include "core/train/summary/events.h"
#include "tests/core/train/summary/reader.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES_MAX = 512, EVENT_SUMMARY = 5, EVENT_STEP = 2, PENDING_MAX = 8 << 20 };

struct place {
    char folder[64], path[PATH_BYTES_MAX];
    struct events *events;
};

static void set_disk(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static int open_place(void **state)
{
    static struct place p;
    signal(SIGXFSZ, SIG_IGN);
    scratch_make(p.folder);
    if (events_open(p.folder, 7, "", &p.events)) fail_msg("%s", error_text());
    scratch_find(p.folder, "tfevents", p.path);
    *state = &p;
    return 0;
}

static int close_place(void **state)
{
    struct place *p = *state;
    set_disk(RLIM_INFINITY);
    events_close(p->events);
    scratch_remove(p->folder);
    return 0;
}

static long size_of(const struct place *p)
{
    struct stat status;
    assert_int_equal(stat(p->path, &status), 0);
    return (long)status.st_size;
}

static void write_step(struct place *p, uint64_t step)
{
    events_begin_step(p->events, 8, step);
    events_scalar(p->events, "loss", 1.0 / (double)step);
    assert_int_equal(events_end_step(p->events), OK);
}

/* The steps in the file, each once and in order: the first is 1. */
static void expect_steps(const struct place *p, int count)
{
    const struct bytes file = file_load(p->path);
    assert_int_equal(record_count(file), 1 + count);
    for (int i = 1; i <= count; i++)
        assert_int_equal(part_of(record_at(file, i), EVENT_STEP).integer, i);
    free((void *)file.at);
}

static void half_a_record_is_cut_off_and_comes_whole_later(void **state)
{
    struct place *p = *state;
    write_step(p, 1);
    assert_int_equal(events_flush(p->events), OK);
    const long good = size_of(p);
    write_step(p, 2);
    for (int room = 0; room < 40; room += 3) { /* less than the record's 41 bytes */
        set_disk((rlim_t)(good + room));
        assert_int_equal(events_flush(p->events), ERR_IO);
        set_disk(RLIM_INFINITY);
        assert_non_null(strstr(error_text(), p->path));
        assert_non_null(strstr(error_text(), "File too large"));
        assert_int_equal(size_of(p), good);
        expect_steps(p, 1);
    }
    write_step(p, 3);
    assert_int_equal(events_flush(p->events), OK);
    expect_steps(p, 3);
}

/* As many events as are kept, while nothing can be written: those before and after are whole. */
static void what_is_too_much_to_keep_is_lost_and_said(void **state)
{
    struct place *p = *state;
    write_step(p, 1);
    assert_int_equal(events_flush(p->events), OK);
    const size_t length = 1 << 20;
    char *text = malloc(length + 1);
    assert_non_null(text);
    memset(text, 'x', length);
    text[length] = '\0';
    set_disk((rlim_t)size_of(p) + 1000);
    int kept = 0;
    for (bool lost = false; !lost; kept++) {
        assert_true(kept <= PENDING_MAX / (int)length);
        assert_int_equal(events_session(p->events, 8, 1, SESSION_CHECKPOINT, text), ERR_IO);
        lost = strstr(error_text(), "events are lost") != NULL;
    }
    char said[64];
    snprintf(said, sizeof said, "; %d events are lost", kept);
    assert_non_null(strstr(error_text(), said));
    set_disk(RLIM_INFINITY);
    expect_steps(p, 1);
    write_step(p, 2);
    assert_int_equal(events_flush(p->events), OK);
    expect_steps(p, 2);
    free(text);
}

static int metadata_in(struct bytes event)
{
    const struct bytes value = part_of(part_of(event, EVENT_SUMMARY).content, 1).content;
    return part_count(value, 9);
}

static void write_text(struct place *p)
{
    events_begin_step(p->events, 8, 1);
    events_text(p->events, "spec", "text");
    assert_int_equal(events_end_step(p->events), OK);
}

/* What it is was said in an event that may be lost. */
static void after_a_failure_texts_say_again_what_they_are(void **state)
{
    struct place *p = *state;
    write_text(p);
    write_text(p);
    set_disk((rlim_t)size_of(p));
    assert_int_equal(events_flush(p->events), ERR_IO);
    set_disk(RLIM_INFINITY);
    write_text(p);
    write_text(p);
    assert_int_equal(events_flush(p->events), OK);
    const struct bytes file = file_load(p->path);
    const int expected[] = {1, 0, 1, 0};
    for (int i = 0; i < 4; i++) assert_int_equal(metadata_in(record_at(file, 1 + i)), expected[i]);
    free((void *)file.at);
}

static void a_file_that_cannot_begin_is_not_left_behind(void **state)
{
    struct place *p = *state;
    char found[PATH_BYTES_MAX];
    struct events *events;
    set_disk(10);
    assert_int_equal(events_open(p->folder, 99, "", &events), ERR_IO);
    set_disk(RLIM_INFINITY);
    scratch_find(p->folder, "0000000099", found);
    assert_string_equal(found, "");
}

static void a_file_that_is_gone_is_told_once(void **state)
{
    struct place *p = *state;
    write_step(p, 1);
    assert_int_equal(events_flush(p->events), OK);
    assert_int_equal(unlink(p->path), 0);
    write_step(p, 2);
    assert_int_equal(events_flush(p->events), ERR_IO);
    assert_non_null(strstr(error_text(), p->path));
    assert_non_null(strstr(error_text(), "the file is gone"));
    write_step(p, 3);
    assert_int_equal(events_flush(p->events), OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(half_a_record_is_cut_off_and_comes_whole_later, open_place,
                                        close_place),
        cmocka_unit_test_setup_teardown(what_is_too_much_to_keep_is_lost_and_said, open_place,
                                        close_place),
        cmocka_unit_test_setup_teardown(after_a_failure_texts_say_again_what_they_are, open_place,
                                        close_place),
        cmocka_unit_test_setup_teardown(a_file_that_is_gone_is_told_once, open_place, close_place),
        cmocka_unit_test_setup_teardown(a_file_that_cannot_begin_is_not_left_behind, open_place,
                                        close_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
