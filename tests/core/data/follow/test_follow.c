/* Files that are followed: which are taken, in which order, once, and by whom. */
#include "tests/core/data/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROWS = 8, BATCH = 4, LOOKS_MAX = 6000, LOOK_MS = 10, PATH_TEXT_MAX = 1024 };

#define FOLLOW(more)                                                                               \
    "{'format': 'csv', 'file': '*.csv', 'label': 'y', 'label_type': 'number', 'follow': true" more \
    "}"
#define AT_ONCE FOLLOW(", 'settle_secs': 0")

static const char *path_of(const char *name)
{
    static char path[PATH_TEXT_MAX];
    snprintf(path, sizeof path, "%s/%s", folder_path(), name);
    return path;
}

/* Row i has x = i. */
static void write_rows(const char *name, int first, int rows)
{
    char text[1024] = "x,y\n";
    for (int i = first; i < first + rows; i++) sprintf(text + strlen(text), "%d,%d\n", i, i % 3);
    file_write_text(name, text);
}

static int begin_empty(void **state)
{
    static const char *const names[] = {"a.csv",     "b.csv",  "c.csv",    "d.csv",
                                        "_e.csv",    ".f.csv", "followed", "_SUCCESS",
                                        "g.csv.tmp", "e.csv",  "f.csv"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(path_of(names[i]));
    return 0;
}

static struct stream_options options_of(int worker, int workers)
{
    return (struct stream_options){
        .transform = {.scale = 1, .labels = {{.dtype = FLOAT32, .loss = "loss"}}, .label_count = 1},
        .batch = BATCH,
        .worker = worker,
        .workers = workers,
        .prefetch = 2,
    };
}

static void open_share(struct opened_source *o, int worker, int workers)
{
    const struct stream_options options = options_of(worker, workers);
    source_open_batches_ok(AT_ONCE, folder_path(), o);
    assert_int_equal(o->source->rows, 0);
    assert_int_equal(o->source->calls->begin(o->source, &options), OK);
}

/* Whether the next batch comes, or will never. */
static err await(struct opened_source *o)
{
    err e = ERR_PEER;
    for (int i = 0; i < LOOKS_MAX && e == ERR_PEER; i++)
        e = o->source->calls->await(o->source, 1, LOOK_MS);
    return e;
}

static void assert_next(struct opened_source *o, int first)
{
    struct batch batch;
    assert_int_equal(await(o), OK);
    const err e = o->source->calls->next(o->source, &batch);
    if (e) print_error("%s\n", error_text());
    assert_int_equal(e, OK);
    assert_int_equal(batch.rows, BATCH);
    for (int i = 0; i < BATCH; i++) assert_int_equal((int)batch_features(&batch)[i], first + i);
}

static void assert_end(struct opened_source *o)
{
    assert_int_equal(await(o), ERR_STOPPED);
    assert_int_equal(o->source->calls->ready(o->source), 0);
}

static void test_files_are_taken_once_as_they_come(void **state)
{
    struct opened_source o;
    write_rows("b.csv", 0, ROWS);
    open_share(&o, 0, 1);
    assert_next(&o, 0);
    assert_next(&o, 4);
    write_rows("g.csv.tmp", ROWS, ROWS);
    assert_int_equal(o.source->calls->await(o.source, 1, LOOK_MS), ERR_PEER);
    char from[PATH_TEXT_MAX];
    strcpy(from, path_of("g.csv.tmp"));
    rename(from, path_of("a.csv")); /* its name is of before, and it comes behind */
    assert_next(&o, 8);
    assert_next(&o, 12);
    file_write_text("_SUCCESS", "");
    assert_end(&o);
    source_close_batches(&o);
}

static void test_what_is_not_whole_by_its_name_is_not_taken(void **state)
{
    struct opened_source o;
    write_rows("_e.csv", 100, ROWS);
    write_rows(".f.csv", 100, ROWS);
    write_rows("a.csv", 0, BATCH);
    file_write_text("_SUCCESS", "");
    open_share(&o, 0, 1);
    assert_next(&o, 0);
    assert_end(&o);
    source_close_batches(&o);
}

/* Of two that wait the first by name; a batch may lie in both. */
static void test_files_that_wait_come_in_the_order_of_their_names(void **state)
{
    struct opened_source o;
    write_rows("c.csv", 6, 6);
    write_rows("b.csv", 0, 6);
    open_share(&o, 0, 1);
    for (int first = 0; first < 12; first += BATCH) assert_next(&o, first);
    source_close_batches(&o);
}

/* It is taken when it has bytes, and holds nobody up until then. */
static void test_an_empty_file_is_passed_over(void **state)
{
    struct opened_source o;
    write_rows("a.csv", 0, BATCH);
    file_write_text("b.csv", "");
    write_rows("c.csv", 8, BATCH);
    open_share(&o, 0, 1);
    assert_next(&o, 0);
    assert_next(&o, 8);
    write_rows("b.csv", 4, BATCH);
    assert_next(&o, 4);
    file_write_text("d.csv", "");
    file_write_text("_SUCCESS", "");
    assert_end(&o);
    source_close_batches(&o);
}

/* Files with a header alone and packed ones of nothing, the first and the last ones too; the list
 * has them, and another life reads it. */
static void test_files_without_rows_are_taken(void **state)
{
    struct opened_source o;
    file_write_text("a.csv", "x,y\n");
    file_write_gzip("b.csv", "", 0);
    write_rows("c.csv", 0, BATCH);
    file_write_text("d.csv", "x,y\n");
    write_rows("e.csv", 4, BATCH);
    file_write_text("f.csv", "x,y\n");
    file_write_text("_SUCCESS", "");
    for (int life = 0; life < 2; life++) {
        open_share(&o, 0, 1);
        assert_next(&o, 0);
        assert_next(&o, 4);
        assert_end(&o);
        source_close_batches(&o);
    }
    char text[1024] = "";
    FILE *list = fopen(path_of("followed"), "r");
    assert_non_null(list);
    const size_t bytes = fread(text, 1, sizeof text - 1, list);
    fclose(list);
    assert_true(bytes > 0);
    assert_non_null(strstr(text, "\n0 4 a.csv\n0 "));
    assert_non_null(strstr(text, "\n0 4 f.csv\n"));
}

static void test_rows_of_a_file_are_shuffled_and_come_once(void **state)
{
    struct opened_source o;
    struct stream_options options = options_of(0, 1);
    int seen = 0, in_place = 0;
    options.shuffle = true;
    write_rows("a.csv", 0, ROWS);
    source_open_batches_ok(AT_ONCE, folder_path(), &o);
    assert_int_equal(o.source->calls->begin(o.source, &options), OK);
    for (int i = 0; i < ROWS; i += BATCH) {
        struct batch batch;
        assert_int_equal(await(&o), OK);
        assert_int_equal(o.source->calls->next(o.source, &batch), OK);
        for (int b = 0; b < BATCH; b++) {
            const int row = (int)batch_features(&batch)[b];
            seen |= 1 << row;
            in_place += row == i + b;
        }
    }
    assert_int_equal(seen, (1 << ROWS) - 1);
    assert_true(in_place < ROWS);
    source_close_batches(&o);
}

/* ---- several batches for each push ---- */

enum { PUSHES = 6, PREFETCH_TRIED = 6 };

/* Until the reader has filled its ring, and sleeps. */
static void await_full(struct opened_source *o, int slots)
{
    assert_int_equal(await(o), OK);
    for (int i = 0; i < LOOKS_MAX && o->source->calls->ready(o->source) < slots; i++)
        usleep(LOOK_MS * 1000);
    assert_int_equal(o->source->calls->ready(o->source), slots);
}

static void take_push(struct opened_source *o, int push, int count)
{
    struct batch batch;
    err e = ERR_PEER;
    for (int i = 0; i < LOOKS_MAX && e == ERR_PEER; i++)
        e = o->source->calls->await(o->source, count, LOOK_MS);
    assert_int_equal(e, OK);
    for (int i = 0; i < count; i++) {
        assert_int_equal(o->source->calls->next(o->source, &batch), OK);
        assert_int_equal((int)batch_features(&batch)[0], (push * count + i) * BATCH);
    }
}

static void take_pushes(int prefetch, int count)
{
    struct opened_source o;
    struct stream_options options = options_of(0, 1);
    begin_empty(NULL);
    write_rows("a.csv", 0, PUSHES * count * BATCH);
    options.prefetch = prefetch;
    options.per_round = count;
    source_open_batches_ok(AT_ONCE, folder_path(), &o);
    assert_int_equal(o.source->calls->begin(o.source, &options), OK);
    await_full(&o, prefetch + 1 < PUSHES * count ? prefetch + 1 : PUSHES * count);
    for (int push = 0; push < PUSHES; push++) take_push(&o, push, count);
    source_close_batches(&o);
}

static void test_whoever_waits_for_several_batches_wakes_the_reader(void **state)
{
    for (int prefetch = 1; prefetch <= PREFETCH_TRIED; prefetch++)
        for (int count = 1; count <= prefetch; count++) take_pushes(prefetch, count);
}

/* None begins a push for which another one has no rows. */
static void test_workers_share_the_rows_of_one_order(void **state)
{
    struct opened_source o[2];
    write_rows("b.csv", 0, ROWS + BATCH);
    for (int w = 0; w < 2; w++) open_share(&o[w], w, 2);
    for (int w = 0; w < 2; w++) assert_next(&o[w], w * BATCH);
    file_write_text("_SUCCESS", "");
    for (int w = 0; w < 2; w++) assert_end(&o[w]);
    for (int w = 0; w < 2; w++) source_close_batches(&o[w]);
}

static void assert_fails(struct opened_source *o, const char *part)
{
    struct batch batch;
    assert_int_equal(await(o), OK);
    assert_int_equal(o->source->calls->next(o->source, &batch), ERR_INPUT);
    if (!strstr(error_text(), part)) print_error("\"%s\" not in: %s\n", part, error_text());
    assert_non_null(strstr(error_text(), part));
}

/* ---- files that are streams ---- */

enum { STREAM_ROWS = 48, STREAM_BATCHES = STREAM_ROWS / BATCH / 2 };
#define STREAMS FOLLOW(", 'settle_secs': 0, 'stream': 'always', 'shuffle_rows': 5")

static void open_stream(struct opened_source *o, int worker)
{
    struct stream_options options = options_of(worker, 2);
    options.shuffle = true;
    source_open_batches_ok(STREAMS, folder_path(), o);
    assert_int_equal(o->source->calls->begin(o->source, &options), OK);
}

static void read_batch(struct opened_source *o, int rows[BATCH])
{
    struct batch batch;
    assert_int_equal(await(o), OK);
    assert_int_equal(o->source->calls->next(o->source, &batch), OK);
    for (int i = 0; i < BATCH; i++) rows[i] = (int)batch_features(&batch)[i];
}

/* Neither file begins or ends where a batch does. */
static void test_large_files_are_read_as_streams(void **state)
{
    struct opened_source o[2];
    int rows[2][STREAM_BATCHES][BATCH], again[BATCH];
    char seen[STREAM_ROWS] = {0};
    write_rows("a.csv", 0, 10);
    write_rows("b.csv", 10, 31);
    write_rows("c.csv", 41, 7);
    for (int w = 0; w < 2; w++) open_stream(&o[w], w);
    for (int i = 0; i < STREAM_BATCHES; i++)
        for (int w = 0; w < 2; w++) read_batch(&o[w], rows[w][i]);
    for (int i = 0; i < STREAM_ROWS; i++) seen[(&rows[0][0][0])[i]]++;
    for (int i = 0; i < STREAM_ROWS; i++) assert_int_equal(seen[i], 1);
    for (int i = STREAM_BATCHES - 1; i >= 0; i--) {
        assert_int_equal(o[1].source->calls->seek(o[1].source, (uint64_t)i), OK);
        read_batch(&o[1], again);
        assert_memory_equal(again, rows[1][i], sizeof again);
    }
    for (int w = 0; w < 2; w++) source_close_batches(&o[w]);
}

static void test_a_file_above_the_memory_is_not_in_it(void **state)
{
    struct opened_source o;
    const int count = 200000;
    char *text = malloc((size_t)count * 16);
    size_t used = (size_t)sprintf(text, "x,y\n");
    for (int i = 0; i < count; i++) used += (size_t)sprintf(text + used, "%d,0\n", i);
    file_write("a.csv", text, used);
    free(text);
    source_open_batches_ok(FOLLOW(", 'settle_secs': 0, 'memory_mb': 1, 'shuffle_rows': 150000"),
                           folder_path(), &o);
    struct stream_options options = options_of(0, 1);
    options.shuffle = true;
    assert_int_equal(o.source->calls->begin(o.source, &options), OK);
    assert_fails(&o, "\"memory_mb\" is 1");
    source_close_batches(&o);
}

static int lines_of_list(void)
{
    int lines = 0;
    FILE *list = fopen(path_of("followed"), "re");
    if (!list) return 0;
    for (int c = getc(list); c != EOF; c = getc(list)) lines += c == '\n';
    fclose(list);
    return lines;
}

/* While the first one is used, and nobody asks for rows of it. */
static void test_the_next_file_is_taken_ahead(void **state)
{
    struct opened_source o;
    int looks = 0;
    write_rows("a.csv", 0, 25 * BATCH);
    write_rows("b.csv", 25 * BATCH, ROWS);
    open_share(&o, 0, 1);
    for (int i = 0; i < 10; i++) assert_next(&o, i * BATCH);
    while (lines_of_list() < 3 && looks++ < LOOKS_MAX) {
        assert_int_equal(o.source->calls->seek(o.source, 0), OK);
        assert_next(&o, 0);
        usleep(LOOK_MS * 1000);
    }
    assert_true(looks < LOOKS_MAX);
    assert_int_equal(o.source->calls->seek(o.source, 25), OK);
    assert_next(&o, 25 * BATCH);
    source_close_batches(&o);
}

/* In another life, after one that went into the second file */
static void open_without_the_first(struct opened_source *o)
{
    write_rows("a.csv", 0, ROWS);
    open_share(o, 0, 1);
    assert_next(o, 0);
    write_rows("b.csv", ROWS, ROWS);
    assert_next(o, 4);
    assert_next(o, 8);
    source_close_batches(o);
    unlink(path_of("a.csv"));
    open_share(o, 0, 1);
}

static void test_another_life_goes_on_behind_files_that_are_gone(void **state)
{
    struct opened_source o;
    open_without_the_first(&o);
    assert_int_equal(o.source->calls->seek(o.source, 3), OK);
    assert_next(&o, 12);
    source_close_batches(&o);
}

static void test_a_file_that_changes_is_named(void **state)
{
    struct opened_source o;
    write_rows("a.csv", 0, ROWS);
    open_share(&o, 0, 1);
    assert_next(&o, 0);
    source_close_batches(&o);
    write_rows("a.csv", 0, ROWS + 1);
    open_share(&o, 0, 1);
    assert_fails(&o, "a.csv: had 36 bytes when it was taken, now 40");
    source_close_batches(&o);
}

static void test_files_of_other_columns_are_named(void **state)
{
    struct opened_source o;
    write_rows("a.csv", 0, BATCH);
    open_share(&o, 0, 1);
    assert_next(&o, 0);
    file_write_text("b.csv", "x,z,y\n1,2,0\n1,2,0\n1,2,0\n1,2,0\n");
    assert_fails(&o, "b.csv: its columns are not those of the files before");
    source_close_batches(&o);
}

/* Of a column that has a default, in rows of memory and of a stream. */
static void test_a_file_may_lack_a_column(void **state)
{
    static const char *const more[] = {"", ", 'stream': 'always'"};
    const struct stream_options options = options_of(0, 1);
    for (int k = 0; k < 2; k++) {
        struct opened_source o;
        struct batch batch;
        char source[512];
        begin_empty(state);
        snprintf(source, sizeof source,
                 "{'format': 'csv', 'file': '*.csv', 'label': 'y', 'label_type': 'number', "
                 "'follow': true, 'settle_secs': 0%s}, 'columns': [{'column': 'numeric', 'name': "
                 "'x', 'default': -5}]",
                 more[k]);
        write_rows("a.csv", 0, BATCH);
        file_write_text("b.csv", "z,y\n1,0\n1,0\n1,0\n1,0\n");
        write_rows("c.csv", 0, BATCH);
        file_write_text("_SUCCESS", "");
        source_open_batches_ok(source, folder_path(), &o);
        assert_int_equal(o.source->calls->begin(o.source, &options), OK);
        for (int file = 0; file < 3; file++) {
            assert_int_equal(await(&o), OK);
            assert_int_equal(o.source->calls->next(o.source, &batch), OK);
            for (int i = 0; i < BATCH; i++)
                assert_int_equal((int)((const float *)batch.columns[1].at)[i], file == 1 ? -5 : i);
        }
        assert_end(&o);
        source_close_batches(&o);
    }
}

/* What a writer that was killed has left of a line is none. */
static void test_half_a_line_of_the_list_is_written_anew(void **state)
{
    struct opened_source o;
    write_rows("a.csv", 0, BATCH);
    file_write_text("followed", "followed 1 batch 4 workers 1 per_push 1\n4 2");
    open_share(&o, 0, 1);
    assert_next(&o, 0);
    source_close_batches(&o);
    open_share(&o, 0, 1);
    assert_next(&o, 0);
    source_close_batches(&o);
}

/* As on a disk that is full for a while. */
static void test_a_list_that_cannot_be_written_now_is_tried_again(void **state)
{
    struct opened_source o;
    write_rows("a.csv", 0, BATCH);
    open_share(&o, 0, 1);
    assert_int_equal(mkdir(path_of("followed"), 0700), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(o.source->calls->await(o.source, 1, LOOK_MS), ERR_PEER);
    assert_int_equal(rmdir(path_of("followed")), 0);
    assert_next(&o, 0);
    source_close_batches(&o);
}

static void test_another_share_is_refused(void **state)
{
    struct opened_source o;
    const struct stream_options options = options_of(0, 3);
    write_rows("a.csv", 0, ROWS);
    file_write_text("followed", "followed 1 batch 4 workers 2 per_push 1\n");
    source_open_batches_ok(AT_ONCE, folder_path(), &o);
    assert_int_equal(o.source->calls->begin(o.source, &options), ERR_INPUT);
    assert_non_null(strstr(error_text(), "is of 2 workers with batches of 4"));
    source_close_batches(&o);
}

/* Another worker began it between this one's opening and its begin. */
static void test_a_list_that_has_just_begun_is_gone_on_with(void **state)
{
    struct opened_source o;
    const struct stream_options options = options_of(0, 2);
    write_rows("a.csv", 0, ROWS);
    source_open_batches_ok(AT_ONCE, folder_path(), &o);
    file_write_text("followed", "followed 1 batch 4 workers 2 per_push 1\n");
    assert_int_equal(o.source->calls->begin(o.source, &options), OK);
    source_close_batches(&o);
}

static void assert_not_opened(const char *json, err expected, const char *part)
{
    struct opened_source o;
    assert_int_equal(source_open_batches(json, folder_path(), &o), expected);
    if (!strstr(error_text(), part)) print_error("\"%s\" not in: %s\n", part, error_text());
    assert_non_null(strstr(error_text(), part));
    source_close_batches(&o);
}

static void test_who_only_looks_takes_nothing(void **state)
{
    struct opened_source o;
    write_rows("a.csv", 0, ROWS);
    open_share(&o, 0, 1);
    assert_int_equal(o.source->calls->ready(o.source), 0);
    source_close_batches(&o);
    assert_int_equal(access(path_of("followed"), F_OK), -1);
}

static void test_no_row_at_all_is_an_error_at_the_end(void **state)
{
    file_write_text("a.csv", "x,y\n");
    file_write_text("b.csv", "");
    file_write_text("_SUCCESS", "");
    assert_not_opened(AT_ONCE, ERR_INPUT, "*.csv: no file has a row of data");
}

static void test_nobody_waits_for_files_that_are_gone(void **state)
{
    struct opened_source o;
    write_rows("a.csv", 0, BATCH);
    open_share(&o, 0, 1);
    assert_next(&o, 0);
    source_close_batches(&o);
    unlink(path_of("a.csv"));
    file_write_text("_SUCCESS", "");
    assert_not_opened(AT_ONCE, ERR_INPUT, "says that no more will come: put one back, or remove ");
}

static void test_what_cannot_be_followed_is_refused(void **state)
{
    assert_not_opened("{'format': 'csv', 'file': 'a.csv', 'label': 'y', 'follow': true}", ERR_INPUT,
                      "expected a pattern of names in one folder");
    assert_not_opened("{'format': 'csv', 'file': ['*.csv', 'b'], 'label': 'y', 'follow': true}",
                      ERR_INPUT, "expected one pattern");
    file_write_text("followed", "something else\n");
    assert_not_opened(AT_ONCE, ERR_INPUT, "is no list of files that were taken");
    file_write_text("followed", "followed 1 batch 4 workers 2 per_push 1\n-1 1 a.csv\n");
    assert_not_opened(AT_ONCE, ERR_INPUT, "line 2: expected rows, bytes and a name");
}

static void test_a_file_that_has_just_changed_is_not_whole(void **state)
{
    write_rows("a.csv", 0, ROWS);
    assert_not_opened(FOLLOW(", 'settle_secs': 1000, 'silent_secs': 0.01"), ERR_TIMEOUT,
                      "no file came");
}

static void test_a_file_that_is_gone_too_early_is_named(void **state)
{
    struct opened_source o;
    open_without_the_first(&o);
    assert_fails(&o, "a.csv: No such file");
    source_close_batches(&o);
}

static void test_silence_has_a_limit(void **state)
{
    assert_not_opened(FOLLOW(", 'silent_secs': 0.01"), ERR_TIMEOUT,
                      "*.csv: no file came for 0.01 s (\"silent_secs\")");
}

/* ---- batches that are handed out, of files that memory does not hold ---- */

enum { POOL = 4 * BATCH, POOLS = 3 };
#define AS_STREAM FOLLOW(", 'settle_secs': 0, 'stream': 'always', 'shuffle_rows': 16")

static void open_handed_out(const char *source, struct opened_source *o)
{
    struct stream_options options = options_of(0, 1);
    options.is_handed_out = true;
    source_open_batches_ok(source, folder_path(), o);
    assert_int_equal(o->source->calls->begin(o->source, &options), OK);
}

static void write_pools(const char *name, int first, int broken)
{
    char text[4096] = "x,y\n";
    for (int i = first; i < first + POOLS * POOL; i++)
        sprintf(text + strlen(text), i == broken ? "oops %d,%d\n" : "%d,%d\n", i, i % 3);
    file_write_text(name, text);
}

static void plan(struct opened_source *o, const uint64_t *ranges, int count)
{
    bool is_void;
    assert_int_equal(o->source->calls->plan(o->source, 0, ranges, count, &is_void), OK);
    assert_false(is_void);
}

/* A row that cannot be made of its cells is only seen by who reads it. */
static void test_a_reader_leaves_alone_what_was_handed_to_others(void **state)
{
    const uint64_t ranges[] = {0, 4, 8, 12, 16, 20};
    struct opened_source o;
    write_pools("a.csv", 0, POOL + 5);
    write_pools("b.csv", POOLS * POOL, POOLS * POOL + 3);
    file_write_text("_SUCCESS", "");
    open_handed_out(AS_STREAM, &o);
    plan(&o, ranges, 3);
    for (int at = 0; at < POOL; at += BATCH) assert_next(&o, at);
    for (int at = 2 * POOL; at < 3 * POOL; at += BATCH) assert_next(&o, at);
    for (int at = 4 * POOL; at < 5 * POOL; at += BATCH) assert_next(&o, at);
    source_close_batches(&o);
}

static void test_files_that_memory_does_not_hold_are_handed_out_in_stretches(void **state)
{
    struct opened_source o;
    write_pools("a.csv", 0, -1);
    open_handed_out(AS_STREAM, &o);
    assert_int_equal(batch_source_stretch(o.source, 2), POOL / BATCH);
    source_close_batches(&o);
    open_handed_out(AT_ONCE, &o);
    assert_int_equal(batch_source_stretch(o.source, 2), 0);
    source_close_batches(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_files_are_taken_once_as_they_come, begin_empty),
        cmocka_unit_test_setup(test_what_is_not_whole_by_its_name_is_not_taken, begin_empty),
        cmocka_unit_test_setup(test_files_that_wait_come_in_the_order_of_their_names, begin_empty),
        cmocka_unit_test_setup(test_an_empty_file_is_passed_over, begin_empty),
        cmocka_unit_test_setup(test_files_without_rows_are_taken, begin_empty),
        cmocka_unit_test_setup(test_no_row_at_all_is_an_error_at_the_end, begin_empty),
        cmocka_unit_test_setup(test_nobody_waits_for_files_that_are_gone, begin_empty),
        cmocka_unit_test_setup(test_rows_of_a_file_are_shuffled_and_come_once, begin_empty),
        cmocka_unit_test_setup(test_workers_share_the_rows_of_one_order, begin_empty),
        cmocka_unit_test_setup(test_large_files_are_read_as_streams, begin_empty),
        cmocka_unit_test_setup(test_a_file_above_the_memory_is_not_in_it, begin_empty),
        cmocka_unit_test_setup(test_the_next_file_is_taken_ahead, begin_empty),
        cmocka_unit_test_setup(test_another_life_goes_on_behind_files_that_are_gone, begin_empty),
        cmocka_unit_test_setup(test_a_file_that_changes_is_named, begin_empty),
        cmocka_unit_test_setup(test_files_of_other_columns_are_named, begin_empty),
        cmocka_unit_test_setup(test_a_file_may_lack_a_column, begin_empty),
        cmocka_unit_test_setup(test_half_a_line_of_the_list_is_written_anew, begin_empty),
        cmocka_unit_test_setup(test_a_list_that_cannot_be_written_now_is_tried_again, begin_empty),
        cmocka_unit_test_setup(test_another_share_is_refused, begin_empty),
        cmocka_unit_test_setup(test_a_list_that_has_just_begun_is_gone_on_with, begin_empty),
        cmocka_unit_test_setup(test_whoever_waits_for_several_batches_wakes_the_reader,
                               begin_empty),
        cmocka_unit_test_setup(test_who_only_looks_takes_nothing, begin_empty),
        cmocka_unit_test_setup(test_what_cannot_be_followed_is_refused, begin_empty),
        cmocka_unit_test_setup(test_a_file_that_has_just_changed_is_not_whole, begin_empty),
        cmocka_unit_test_setup(test_a_file_that_is_gone_too_early_is_named, begin_empty),
        cmocka_unit_test_setup(test_silence_has_a_limit, begin_empty),
        cmocka_unit_test_setup(test_a_reader_leaves_alone_what_was_handed_to_others, begin_empty),
        cmocka_unit_test_setup(test_files_that_memory_does_not_hold_are_handed_out_in_stretches,
                               begin_empty),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
