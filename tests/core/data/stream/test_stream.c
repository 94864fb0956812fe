/* Streams: the rows that memory would give, every row once per epoch, from any batch on; and files
 * that change. */
#include "core/data/stream/order.h"
#include "tests/core/data/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROWS_MAX = 30000, WORKERS_MAX = 5, PATH_MAX_HERE = 1024 };

static struct stream_options options_of(int64_t batch, bool shuffle)
{
    return (struct stream_options){
        .transform = {.scale = 1, .labels = {{.dtype = FLOAT32, .loss = "loss"}}, .label_count = 1},
        .batch = batch,
        .shuffle = shuffle,
        .key = 42,
        .workers = 1,
        .prefetch = 2,
    };
}

static void begin_ok(struct opened_source *o, const struct stream_options *options)
{
    const err e = o->source->calls->begin(o->source, options);
    if (e) print_error("%s\n", error_text());
    assert_int_equal(e, OK);
}

static struct batch next_ok(struct opened_source *o)
{
    struct batch batch;
    const err e = o->source->calls->next(o->source, &batch);
    if (e) print_error("%s\n", error_text());
    assert_int_equal(e, OK);
    return batch;
}

/* The error that reading on ends with. */
static err read_to_error(struct opened_source *o)
{
    struct batch batch;
    err e = OK;
    for (int i = 0; !e && i < 100000; i++) e = o->source->calls->next(o->source, &batch);
    return e;
}

static void assert_said(const char *part)
{
    if (!strstr(error_text(), part)) print_error("\"%s\" not in: %s\n", part, error_text());
    assert_non_null(strstr(error_text(), part));
}

/* ---- files: row i has x = i, a word, and the label i % 7 ---- */

#define COLUMNS                                                                                    \
    "}, 'columns': [{'column': 'numeric', 'name': 'x'}, "                                          \
    "{'column': 'hash', 'name': 'word', 'buckets': 1000}"
#define CSV(file, more)                                                                            \
    "{'format': 'csv', 'file': " file ", 'label': 'y', 'label_type': 'number'" more COLUMNS "]"
#define STREAM ", 'stream': 'always', 'readers': 3"

static size_t csv_text(char *to, int first, int rows)
{
    size_t used = (size_t)sprintf(to, "x,word,y\n");
    for (int i = first; i < first + rows; i++)
        used += (size_t)sprintf(to + used, "%d,\"a %s word\nof row %d\",%d\n", i,
                                i % 3 ? "long" : "very, very long", (int)((int64_t)i * i % 1009),
                                i % 7);
    return used;
}

static void write_csv(const char *name, int first, int rows, bool packed)
{
    char *text = malloc((size_t)rows * 80 + 100);
    const size_t bytes = csv_text(text, first, rows);
    if (packed)
        file_write_gzip(name, text, bytes);
    else
        file_write(name, text, bytes);
    free(text);
}

/* Many blocks in one, one in others; two that can only be read on. Returns how many rows. */
static int write_files(void)
{
    static const int rows[] = {20000, 1, 500, 3000, 2, 777, 5000};
    int first = 0;
    for (int i = 0; i < 7; i++) {
        char name[32];
        sprintf(name, "part-%d.csv", i);
        write_csv(name, first, rows[i], i == 3 || i == 6);
        first += rows[i];
    }
    return first;
}

static void file_path(const char *name, char path[PATH_MAX_HERE])
{
    snprintf(path, PATH_MAX_HERE, "%s/%s", folder_path(), name);
}

/* ---- the same rows ---- */

static void gives_what_memory_gives(void **state)
{
    write_files();
    assert_stream_is_memory(CSV("'part-*.csv'", ""), CSV("'part-*.csv'", STREAM));
    assert_stream_is_memory(CSV("'part-*.csv'", ", 'skip': 7, 'take': 21000"),
                            CSV("'part-*.csv'", ", 'skip': 7, 'take': 21000" STREAM));
    assert_stream_is_memory(CSV("'part-*.csv'", ", 'skip': 20001"),
                            CSV("'part-*.csv'", ", 'skip': 20001, 'shuffle_rows': 100" STREAM));
}

#define SVM(more)                                                                                  \
    "{'format': 'libsvm', 'file': 'rows.svm', 'label_type': 'number'" more                         \
    "}, 'columns': [{'column': 'ids', 'name': 'features', 'rows': 99, 'max': 9}]"
#define JSONL(more)                                                                                \
    "{'format': 'jsonl', 'file': 'rows.jsonl', 'label': 'y', 'label_type': 'number'" more COLUMNS  \
    "]"
#define RECORDS(file, more)                                                                        \
    "{'format': 'tfrecord', 'file': '" FIXTURES "/" file "', 'label': 'label', "                   \
    "'label_type': 'number'" more "}, 'columns': [{'column': 'numeric', 'name': 'dense', "         \
    "'max': 3}, {'column': 'hash', 'name': 'name', 'buckets': 1000}]"

static void headers_may_lack_what_has_a_default(void **state)
{
#define LACKING(file, more)                                                                        \
    "{'format': 'csv', 'file': " file ", 'label': 'y', 'label_type': 'number'" more                \
    "}, 'columns': [{'column': 'numeric', 'name': 'x', 'default': -5}, "                           \
    "{'column': 'hash', 'name': 'word', 'buckets': 1000}]"
    static char text[400 << 10];
    size_t used = (size_t)sprintf(text, "word,y\n");
    for (int i = 0; i < 20000; i++) used += (size_t)sprintf(text + used, "w%d,%d\n", i % 77, i % 7);
    file_write("short.csv", text, used);
    write_csv("long.csv", 0, 3000, false);
    assert_stream_is_memory(LACKING("['short.csv', 'long.csv']", ""),
                            LACKING("['short.csv', 'long.csv']", STREAM));
    assert_stream_is_memory(LACKING("['long.csv', 'short.csv']", ", 'skip': 2999"),
                            LACKING("['long.csv', 'short.csv']", ", 'skip': 2999" STREAM));
}

static void weights_that_no_value_has_are_refused(void **state)
{
#define WEIGHTED(more)                                                                             \
    "{'format': 'csv', 'file': 'ids-*.csv', 'label': 'y'" more STREAM                              \
    "}, 'columns': [{'column': 'ids', 'name': 'i', 'rows': 10, 'max': 3, 'weights': true}]"
    static char text[200 << 10];
    struct opened_source o;
    size_t used = (size_t)sprintf(text, "i,y\n");
    for (int i = 0; i < 20000; i++) used += (size_t)sprintf(text + used, "1 2,0\n");
    file_write("ids-1.csv", text, used);
    file_write_text("ids-2.csv", "i,y\n3 4,0\n");
    assert_int_equal(source_open_batches(WEIGHTED(""), NULL, &o), ERR_INPUT);
    assert_said("\"weights\" is true, and no value has one");
    source_close_batches(&o);
    file_write_text("ids-2.csv", "i,y\n3 4,0\n5:0.5,1\n");
    source_open_batches_ok(WEIGHTED(""), NULL, &o);
    source_close_batches(&o);
    assert_int_equal(source_open_batches(WEIGHTED(", 'take': 20001"), NULL, &o), ERR_INPUT);
    source_close_batches(&o);
    file_write_text("ids-1.csv", "i,y\n,0\n,1\n");
    file_write_text("ids-2.csv", "i,y\n,0\n");
    source_open_batches_ok(WEIGHTED(""), NULL, &o);
    source_close_batches(&o);
}

static void every_format_gives_what_memory_gives(void **state)
{
    file_write_text("rows.svm", "# a comment\n1 1:2 4:5\n\n  \n0 7:1 # more\n#1 2:3\n 2 3:4");
    assert_stream_is_memory(SVM(""), SVM(STREAM));
    file_write_text("rows.jsonl", "\n{\"x\": 1, \"word\": \"a\", \"y\": 3}\n   \n"
                                  "{\"y\": 4, \"word\": \"b\\nc\", \"x\": 2}\r\n"
                                  "{\"x\": 5.5, \"y\": 6}");
    assert_stream_is_memory(JSONL(""), JSONL(STREAM));
    assert_stream_is_memory(RECORDS("examples.tfrecord", ""), RECORDS("examples.tfrecord", STREAM));
    assert_stream_is_memory(RECORDS("examples.tfrecord.gz", ""),
                            RECORDS("examples.tfrecord.gz", STREAM));
    assert_stream_is_memory(RECORDS("examples.tfrecord.zlib", ""),
                            RECORDS("examples.tfrecord.zlib", STREAM));
}

/* ---- without columns of cells ---- */

#define NUMBERS(file, more)                                                                        \
    "{'format': 'csv', 'file': " file                                                              \
    ", 'label': 'y', 'columns': ['x'], 'label_type': 'number'" more "}"
#define DENSE(more)                                                                                \
    "{'format': 'libsvm', 'file': 'rows.svm', 'label_type': 'number', 'features': 9" more "}"
#define RAW(file, labels, more)                                                                    \
    "{'format': 'raw', 'file': " file ", 'labels': " labels                                        \
    ", 'shape': [3], 'label_dtype': 'float32'" more "}"
#define IDX(file, labels, more) "{'format': 'idx', 'features': " file ", 'labels': " labels more "}"

/* Row i has x = i, 2 i, 3 i, and the label i % 7. */
static void write_raw(const char *name, const char *labels, int first, int rows)
{
    float *x = calloc((size_t)rows, 3 * sizeof *x), *y = calloc((size_t)rows, sizeof *y);
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < 3; j++) x[3 * i + j] = (float)((first + i) * (j + 1));
        y[i] = (float)((first + i) % 7);
    }
    file_write(name, x, (size_t)rows * 3 * sizeof *x);
    file_write(labels, y, (size_t)rows * sizeof *y);
    free(x);
    free(y);
}

/* [rows, 2, 3] of bytes, and labels that are words of four bytes, most significant first. */
static void write_idx(const char *name, const char *labels, int rows, bool packed)
{
    const size_t bytes = 16 + 6 * (size_t)rows, label_bytes = 8 + 4 * (size_t)rows;
    const uint8_t size[] = {(uint8_t)(rows >> 24), (uint8_t)(rows >> 16), (uint8_t)(rows >> 8),
                            (uint8_t)rows};
    uint8_t *x = calloc(1, bytes), *y = calloc(1, label_bytes);
    memcpy(x, "\0\0\10\3....\0\0\0\2\0\0\0\3", 16);
    memcpy(y, "\0\0\14\1", 4);
    memcpy(x + 4, size, sizeof size);
    memcpy(y + 4, size, sizeof size);
    for (size_t i = 0; i < 6 * (size_t)rows; i++) x[16 + i] = (uint8_t)(i * i % 251);
    for (int i = 0; i < rows; i++) y[8 + 4 * i + 3] = (uint8_t)(i % 10);
    (packed ? file_write_gzip : file_write)(name, x, bytes);
    file_write(labels, y, label_bytes);
    free(x);
    free(y);
}

static void write_broken(void)
{
    char *text = malloc(20000 * 20 + 100);
    size_t used = (size_t)sprintf(text, "x,word,y\n");
    for (int i = 0, x = 0; x < 20000; i++) {
        char *to = text + used;
        if (i % 1000 == 999)
            used += (size_t)sprintf(to, "none,w,1\n");
        else if (i % 1500 == 7)
            used += (size_t)sprintf(to, "%d,w\n", x);
        else {
            used += (size_t)sprintf(to, "%d,w,%d\n", x, x % 7);
            x++;
        }
    }
    file_write("broken.csv", text, used);
    free(text);
}

static void numbers_are_streams_too(void **state)
{
    write_files();
    assert_stream_is_memory(NUMBERS("'part-*.csv'", ""), NUMBERS("'part-*.csv'", STREAM));
    assert_stream_is_memory(NUMBERS("'part-*.csv'", ", 'skip': 7, 'take': 21000"),
                            NUMBERS("'part-*.csv'", ", 'skip': 7, 'take': 21000" STREAM));
    file_write_text("rows.svm", "# a comment\n1 1:2 4:5\n\n  \n0 7:1 # more\n#1 2:3\n 2 3:4");
    assert_stream_is_memory(DENSE(""), DENSE(STREAM));
    write_broken();
    assert_stream_is_memory(NUMBERS("'broken.csv'", ", 'bad_rows': 50"),
                            NUMBERS("'broken.csv'", ", 'bad_rows': 50" STREAM));
}

static void rows_of_a_fixed_size_are_streams_too(void **state)
{
    write_raw("0.raw", "0.labels", 0, 50000);
    write_raw("1.raw", "1.labels", 50000, 11);
    assert_stream_is_memory(RAW("'[01].raw'", "'[01].labels'", ""),
                            RAW("'[01].raw'", "'[01].labels'", STREAM));
    assert_stream_is_memory(RAW("'[01].raw'", "'[01].labels'", ", 'skip': 49999"),
                            RAW("'[01].raw'", "'[01].labels'", ", 'skip': 49999" STREAM));
    write_idx("0.idx", "0.names", 90000, false);
    write_idx("1.idx", "1.names", 300, true);
    assert_stream_is_memory(IDX("'[01].idx'", "'[01].names'", ""),
                            IDX("'[01].idx'", "'[01].names'", STREAM));
}

static err begin_and_read(const char *json)
{
    struct opened_source o;
    const struct stream_options options = options_of(100, true);
    err e = source_open_batches(json, NULL, &o);
    if (!e) e = o.source->calls->begin(o.source, &options);
    if (!e) e = read_to_error(&o);
    source_close_batches(&o);
    return e;
}

static void what_is_wrong_with_them_is_named(void **state)
{
    float *x = calloc(30000, 3 * sizeof *x);
    write_raw("wrong.raw", "wrong.labels", 0, 30000);
    x[3 * 29998 + 2] = 1.0f / 0.0f;
    file_write("wrong.raw", x, 30000 * 3 * sizeof *x);
    assert_int_equal(begin_and_read(RAW("'wrong.raw'", "'wrong.labels'", STREAM)), ERR_INPUT);
    assert_said("wrong.raw: row 29999: feature 2 (from 0) is inf");
    file_write("wrong.raw", x, 29999 * 3 * sizeof *x);
    free(x);
    assert_int_equal(begin_and_read(RAW("'wrong.raw'", "'wrong.labels'", STREAM)), ERR_INPUT);
    assert_said("wrong.labels: offset 119996: expected the end of the file");
    write_idx("0.idx", "0.names", 10, false);
    assert_int_equal(
        begin_and_read("{'format': 'jsonl', 'file': 'rows.jsonl', 'label': 'y'" STREAM "}"),
        ERR_INPUT);
    assert_said("data.columns");
    file_write("2.idx", "\0\0\10\1\0\0\0\12..........", 18);
    assert_int_equal(begin_and_read(IDX("['0.idx', '2.idx']", "['0.names', '0.names']", STREAM)),
                     ERR_INPUT);
    assert_said("2.idx: expected features uint8 [2, 3, 1], as the files before have");
}

/* ---- every row once ---- */

struct reading {
    const char *json;
    int64_t batch;
    bool shuffle;
    int workers;
};

/* The rows of the shared stream, from position 0 on. */
static void read_stream(const struct reading *r, int64_t count, int *rows)
{
    struct opened_source o[WORKERS_MAX];
    struct stream_options options = options_of(r->batch, r->shuffle);
    options.workers = r->workers;
    for (int w = 0; w < r->workers; w++) {
        options.worker = w;
        source_open_batches_ok(r->json, NULL, &o[w]);
        begin_ok(&o[w], &options);
    }
    for (int64_t at = 0; at < count;) {
        for (int w = 0; w < r->workers; w++) {
            const struct batch b = next_ok(&o[w]);
            const float *x = b.columns[1].at, *y = b.columns[LABELS].at;
            const int64_t width = column_width(&b.columns[1]);
            for (int64_t i = 0; i < b.rows && at < count; i++) {
                rows[at++] = (int)x[i * width];
                assert_int_equal((int)y[i], (int)x[i * width] % 7);
            }
        }
    }
    for (int w = 0; w < r->workers; w++) source_close_batches(&o[w]);
}

static void assert_whole_epochs(const int *rows, int size, int epochs)
{
    for (int epoch = 0; epoch < epochs; epoch++) {
        char seen[ROWS_MAX] = {0};
        for (int i = 0; i < size; i++) seen[rows[epoch * size + i]]++;
        for (int i = 0; i < size; i++) assert_int_equal(seen[i], 1);
    }
}

static void all_workers_together_read_every_row_once_per_epoch(void **state)
{
    enum { EPOCHS = 2 };
    static int rows[EPOCHS * ROWS_MAX];
    static const struct reading readings[] = {
        {CSV("'part-*.csv'", STREAM), 100, true, 1},
        {CSV("'part-*.csv'", ", 'shuffle_rows': 1000" STREAM), 64, true, 3},
        {CSV("'part-*.csv'", ", 'shuffle_rows': 77" STREAM), 1, true, 5},
        {CSV("'part-*.csv'", ", 'shuffle_rows': 5000" STREAM), 4000, true, 4},
        {CSV("'part-*.csv'", STREAM), 100, false, 2},
        {CSV("'packed.csv'", ", 'shuffle_rows': 3000" STREAM), 64, true, 2},
        {NUMBERS("'part-*.csv'", ", 'shuffle_rows': 700" STREAM), 64, true, 3},
        {RAW("'all.raw'", "'all.labels'", ", 'shuffle_rows': 5000" STREAM), 64, true, 3},
    };
    const int size = write_files();
    write_raw("all.raw", "all.labels", 0, size);
    write_csv("packed.csv", 0, size, true); /* so large that a thread unpacks it */
    for (size_t i = 0; i < sizeof readings / sizeof *readings; i++) {
        read_stream(&readings[i], EPOCHS * size, rows);
        assert_whole_epochs(rows, size, EPOCHS);
    }
}

/* ---- batches that are handed out ---- */

static void plan_ok(struct opened_source *o, uint64_t first, const uint64_t *ranges, int count)
{
    bool is_void;
    const err e = o->source->calls->plan(o->source, first, ranges, count, &is_void);
    if (e) print_error("%s\n", error_text());
    assert_int_equal(e, OK);
}

/* Two readers, each of stretches that nobody else has, or had before it was lost. */
static void read_handed_out(const struct reading *r, int64_t count, int *rows)
{
    enum { READERS = 2, TURN = 3 };
    struct opened_source o[READERS];
    struct stream_options options = options_of(r->batch, r->shuffle);
    const uint64_t end = (uint64_t)(count / r->batch);
    uint64_t done[READERS] = {0};
    options.is_handed_out = true;
    for (int i = 0; i < READERS; i++) {
        source_open_batches_ok(r->json, NULL, &o[i]);
        begin_ok(&o[i], &options);
        assert_int_equal(o[i].source->calls->ready(o[i].source), 0);
    }
    assert_int_equal(batch_source_digest(o[0].source), batch_source_digest(o[1].source));
    const uint64_t stretch = (uint64_t)batch_source_stretch(o[0].source, r->workers);
    assert_in_range(stretch, 1, 1 << 28);
    for (uint64_t at = 0; at < end; at += stretch) {
        const int reader = (int)(at / stretch % TURN % READERS);
        const uint64_t to = at + stretch < end ? at + stretch : end;
        const uint64_t plan[] = {at, to, to + stretch, to + 2 * stretch};
        plan_ok(&o[reader], done[reader], plan, 2);
        for (uint64_t b = at; b < to; b++, done[reader]++) {
            const struct batch batch = next_ok(&o[reader]);
            const float *x = batch.columns[1].at;
            for (int64_t i = 0; i < r->batch; i++)
                rows[(int64_t)b * r->batch + i] = (int)x[i * column_width(&batch.columns[1])];
        }
    }
    for (int i = 0; i < READERS; i++) source_close_batches(&o[i]);
}

/* Whoever reads which of them, and however many are to: the order is one, and every epoch whole. */
static void what_is_handed_out_is_every_row_once_per_epoch(void **state)
{
    enum { EPOCHS = 3 };
    static int rows[EPOCHS * ROWS_MAX], again[EPOCHS * ROWS_MAX];
    static const struct reading readings[] = {
        {CSV("'part-*.csv'", STREAM), 8, true, 2},
        {CSV("'part-*.csv'", ", 'shuffle_rows': 1000" STREAM), 64, true, 3},
        {CSV("'part-*.csv'", ", 'shuffle_rows': 77" STREAM), 100, true, 5},
        {CSV("'part-*.csv'", ", 'shuffle_rows': 100000" STREAM), 64, true, 5},
        {CSV("'part-*.csv'", STREAM), 100, false, 2},
        {CSV("'packed.csv'", ", 'shuffle_rows': 3000" STREAM), 64, true, 2},
        {NUMBERS("'part-*.csv'", ", 'shuffle_rows': 700" STREAM), 64, true, 3},
        {RAW("'all.raw'", "'all.labels'", ", 'shuffle_rows': 5000" STREAM), 64, true, 3},
    };
    const int size = write_files();
    write_raw("all.raw", "all.labels", 0, size);
    write_csv("packed.csv", 0, size, true);
    for (size_t i = 0; i < sizeof readings / sizeof *readings; i++) {
        struct reading r = readings[i];
        const int64_t count = EPOCHS * size / r.batch * r.batch;
        read_handed_out(&r, count, rows);
        assert_whole_epochs(rows, size, EPOCHS - 1);
        r.workers = 1; /* longer stretches of the same */
        read_handed_out(&r, count, again);
        assert_memory_equal(rows, again, (size_t)count * sizeof *rows);
    }
}

/* A shuffle buffer is whole batches in every epoch, or each would be read for two stretches. */
static void a_stretch_is_read_for_itself_alone(void **state)
{
    enum { BATCH = 64, SIZE = 20000 };
    struct opened_source o;
    struct stream_options options = options_of(BATCH, true);
    write_csv("one.csv", 0, SIZE, false);
    options.is_handed_out = true;
    source_open_batches_ok(CSV("'one.csv'", ", 'shuffle_rows': 2000" STREAM), NULL, &o);
    begin_ok(&o, &options);
    const int64_t stretch = batch_source_stretch(o.source, 3);
    assert_int_equal(stretch, 2000 / BATCH);
    struct order order = {.count = 1,
                          .rows = SIZE,
                          .batch = BATCH,
                          .buffer_rows = stretch * BATCH,
                          .workers = 1,
                          .per_round = 1,
                          .is_even = true};
    int inside = 0;
    for (uint64_t at = 0; at < UINT64_C(3) * SIZE; at++) {
        int64_t row;
        const struct buffer_number n = order_buffer(&order, at, &row);
        const bool is_first = at % ((uint64_t)stretch * BATCH) == 0 || at % SIZE == 0;
        assert_int_equal(row == 0, is_first);
        inside += order_buffer_end(&order, n) % BATCH == 0;
    }
    assert_true(inside > 2 * SIZE);
    source_close_batches(&o);
}

/* More workers, and larger batches, than there are rows. */
static void small_files_are_whole_epochs_too(void **state)
{
    enum { EPOCHS = 9 };
    int rows[EPOCHS * 10];
    write_csv("small.csv", 0, 10, false);
    for (int workers = 1; workers <= WORKERS_MAX; workers++) {
        for (int64_t batch = 1; batch < 25; batch += 4) {
            const struct reading r = {CSV("'small.csv'", ", 'shuffle_rows': 4" STREAM), batch, true,
                                      workers};
            read_stream(&r, sizeof rows / sizeof *rows, rows);
            assert_whole_epochs(rows, 10, EPOCHS);
        }
    }
}

/* ---- the order ---- */

static void the_order_is_a_function_of_seed_and_epoch(void **state)
{
    static int a[2 * ROWS_MAX], b[2 * ROWS_MAX];
    const int size = write_files();
    const struct reading three = {CSV("'part-*.csv'", STREAM), 50, true, 2};
    const struct reading one = {CSV("'part-*.csv'", ", 'stream': 'always', 'readers': 1"), 50, true,
                                2};
    int moved = 0, again = 0;
    read_stream(&three, 2 * size, a);
    read_stream(&one, 2 * size, b);
    assert_memory_equal(a, b, 2 * (size_t)size * sizeof *a);
    for (int i = 0; i < size; i++) moved += a[i] != i;
    for (int i = 0; i < size; i++) again += a[i] != a[size + i];
    assert_true(moved > size * 9 / 10);
    assert_true(again > size * 9 / 10);
}

static void assert_batch_is(struct opened_source *o, uint64_t index, const int *rows, int64_t batch)
{
    const struct batch b = next_ok(o);
    assert_int_equal(b.index, index);
    for (int64_t i = 0; i < batch; i++)
        assert_int_equal((int)((const float *)b.columns[1].at)[i], rows[index * batch + i]);
}

static void begins_at_any_batch(void **state)
{
    enum { BATCH = 96 };
    static const uint64_t places[] = {200, 0, 1, 608, 17, 305, 304, 303, 10, 600};
    static int rows[2 * ROWS_MAX];
    const int size = write_files();
    const struct reading r = {CSV("'part-*.csv'", ", 'shuffle_rows': 2500" STREAM), BATCH, true, 1};
    struct opened_source o;
    const struct stream_options options = options_of(BATCH, true);
    read_stream(&r, 2 * size, rows);
    source_open_batches_ok(r.json, NULL, &o);
    begin_ok(&o, &options);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        assert_int_equal(o.source->calls->seek(o.source, places[i]), OK);
        assert_batch_is(&o, places[i], rows, BATCH);
        assert_batch_is(&o, places[i] + 1, rows, BATCH);
    }
    source_close_batches(&o);
}

/* ---- what is chosen ---- */

static void large_files_are_streams(void **state)
{
    struct opened_source o;
    const struct stream_options options = options_of(10, true);
    write_csv("large.csv", 0, 30000, false);
    source_open_batches_ok(CSV("'large.csv'", ", 'memory_mb': 1"), NULL, &o);
    begin_ok(&o, &options);
    assert_non_null(strstr(o.source->use, "a stream of 1 file"));
    source_close_batches(&o);
    source_open_batches_ok(CSV("'large.csv'", ", 'memory_mb': 1, 'stream': 'never'"), NULL, &o);
    assert_null(strstr(o.source->use, "stream"));
    source_close_batches(&o);
    source_open_batches_ok(CSV("'large.csv'", ""), NULL, &o);
    assert_null(strstr(o.source->use, "stream"));
    source_close_batches(&o);
    source_open_batches_ok(CSV("'large.csv'", ", 'memory_mb': 1, 'shuffle_rows': 30000"), NULL, &o);
    assert_int_equal(o.source->calls->begin(o.source, &options), OK); /* 16 bytes a row */
    source_close_batches(&o);
}

static void what_cannot_be_a_stream_is_named(void **state)
{
    struct opened_source o;
    assert_int_equal(
        source_open_batches("{'format': 'tfrecord', 'file': 'small.csv', 'label': 'y'" STREAM "}",
                            NULL, &o),
        ERR_INPUT);
    assert_said("data.columns");
    source_close_batches(&o);
    assert_int_equal(source_open_batches(CSV("'small.csv'", ", 'skip': 10" STREAM), NULL, &o),
                     ERR_INPUT);
    assert_said("skip 10 leaves none of the 10 rows");
    source_close_batches(&o);
    assert_int_equal(source_open_batches(CSV("'none-*.csv'", STREAM), NULL, &o), ERR_INPUT);
    assert_said("no file fits");
    source_close_batches(&o);
}

static void pools_keep_to_their_memory(void **state)
{
    struct opened_source o;
    const struct stream_options options = options_of(10, true);
    char wide[600];
    snprintf(wide, sizeof wide,
             "{'format': 'csv', 'file': 'large.csv', 'label': 'y', 'memory_mb': 1, 'shuffle_rows': "
             "20000" STREAM "}, 'columns': [{'column': 'hash', 'name': 'word', 'buckets': 9, "
             "'max': 50, 'separator': ' '}]");
    source_open_batches_ok(wide, NULL, &o);
    assert_int_equal(o.source->calls->begin(o.source, &options), ERR_INPUT);
    assert_said("\"memory_mb\" is 1");
    source_close_batches(&o);
}

/* ---- broken rows ---- */

static void broken_rows_are_left_out_as_in_memory(void **state)
{
    static int rows[2 * ROWS_MAX];
    struct opened_source o;
    write_broken();
    assert_stream_is_memory(CSV("'broken.csv'", ", 'bad_rows': 50"),
                            CSV("'broken.csv'", ", 'bad_rows': 50" STREAM));
    const struct reading r = {CSV("'broken.csv'", ", 'bad_rows': 50, 'shuffle_rows': 3000" STREAM),
                              64, true, 2};
    read_stream(&r, 2 * 20000, rows);
    assert_whole_epochs(rows, 20000, 2);
    assert_int_equal(source_open_batches(CSV("'broken.csv'", ", 'bad_rows': 3" STREAM), NULL, &o),
                     ERR_INPUT);
    assert_said("4 rows are broken");
    source_close_batches(&o);
}

static void a_broken_row_is_named(void **state)
{
    struct opened_source o;
    const struct stream_options options = options_of(10, true);
    write_broken();
    source_open_batches_ok(CSV("'broken.csv'", STREAM), NULL, &o);
    begin_ok(&o, &options);
    assert_int_equal(read_to_error(&o), ERR_INPUT);
    assert_said("broken.csv: line ");
    assert_int_equal(read_to_error(&o), ERR_INPUT);
    source_close_batches(&o);
}

static void a_wrong_label_is_named(void **state)
{
    struct opened_source o;
    struct stream_options options = options_of(10, true);
    write_csv("small.csv", 0, 10, false);
    options.transform.labels[0].rule = LABELS_CLASSES;
    options.transform.labels[0].classes = 6;
    source_open_batches_ok(CSV("'small.csv'", STREAM), NULL, &o);
    begin_ok(&o, &options);
    assert_int_equal(read_to_error(&o), ERR_INPUT);
    assert_said("row 7: label 6 is out of range");
    source_close_batches(&o);
}

/* ---- files that change ---- */

static void change_and_read(void (*change)(const char *path), const char *said)
{
    char path[PATH_MAX_HERE];
    struct opened_source o;
    const struct stream_options options = options_of(100, true);
    write_csv("changing.csv", 0, 30000, false);
    file_path("changing.csv", path);
    source_open_batches_ok(CSV("'changing.csv'", ", 'shuffle_rows': 500" STREAM), NULL, &o);
    begin_ok(&o, &options);
    next_ok(&o);
    change(path);
    assert_int_equal(read_to_error(&o), ERR_INPUT);
    assert_said("changing.csv");
    assert_said(said);
    source_close_batches(&o);
}

static void cut(const char *path)
{
    assert_int_equal(truncate(path, 10000), 0);
}

static void grow(const char *path)
{
    FILE *file = fopen(path, "ae");
    assert_non_null(file);
    fputs("1,more,1\n", file);
    assert_int_equal(fclose(file), 0);
}

static void files_that_change_are_named(void **state)
{
    change_and_read(cut, "changed while it is read: had");
    change_and_read(grow, "changed while it is read: had");
}

/* Behind the blocks that are unpacked before. */
static void what_is_packed_and_cut_off_is_named(void **state)
{
    char path[PATH_MAX_HERE];
    struct stat status;
    struct opened_source o;
    write_csv("cut.csv", 0, 60000, true);
    file_path("cut.csv", path);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(truncate(path, status.st_size - 20), 0);
    assert_int_equal(source_open_batches(CSV("'cut.csv'", STREAM), NULL, &o), ERR_INPUT);
    assert_said("cut.csv: gzip data is cut off at byte");
    source_close_batches(&o);
}

/* Of several files, one that is gone when it is opened again. */
static void a_file_that_vanishes_is_named(void **state)
{
    char path[PATH_MAX_HERE];
    struct opened_source o;
    const struct stream_options options = options_of(100, true);
    write_csv("here-0.csv", 0, 10000, false);
    write_csv("here-1.csv", 0, 10000, false);
    file_path("here-1.csv", path);
    source_open_batches_ok(CSV("'here-*.csv'", ", 'shuffle_rows': 500" STREAM), NULL, &o);
    begin_ok(&o, &options);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(read_to_error(&o), ERR_INPUT);
    assert_said("here-1.csv: No such file");
    source_close_batches(&o);
}

static uint64_t digest_of(const char *text)
{
    struct opened_source o;
    const struct stream_options options = options_of(1, false);
    file_write_text("digest", text);
    source_open_batches_ok("{'format': 'csv', 'file': 'digest', 'label': 'y', 'stream': 'always'}",
                           NULL, &o);
    begin_ok(&o, &options);
    const uint64_t digest = batch_source_digest(o.source);
    source_close_batches(&o);
    return digest;
}

/* Of tasks that train together, which find as many rows in as many bytes */
static void files_with_other_rows_are_others(void **state)
{
    const uint64_t digest = digest_of("x,y\n1,0\n2,1\n");
    assert_true(digest == digest_of("x,y\n1,0\n2,1\n"));
    assert_true(digest != digest_of("x,y\n1,0\n3,1\n"));
    assert_true(digest != digest_of("x,y\n2,1\n1,0\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_what_memory_gives),
        cmocka_unit_test(headers_may_lack_what_has_a_default),
        cmocka_unit_test(weights_that_no_value_has_are_refused),
        cmocka_unit_test(every_format_gives_what_memory_gives),
        cmocka_unit_test(numbers_are_streams_too),
        cmocka_unit_test(rows_of_a_fixed_size_are_streams_too),
        cmocka_unit_test(what_is_wrong_with_them_is_named),
        cmocka_unit_test(all_workers_together_read_every_row_once_per_epoch),
        cmocka_unit_test(small_files_are_whole_epochs_too),
        cmocka_unit_test(what_is_handed_out_is_every_row_once_per_epoch),
        cmocka_unit_test(a_stretch_is_read_for_itself_alone),
        cmocka_unit_test(the_order_is_a_function_of_seed_and_epoch),
        cmocka_unit_test(begins_at_any_batch),
        cmocka_unit_test(large_files_are_streams),
        cmocka_unit_test(what_cannot_be_a_stream_is_named),
        cmocka_unit_test(pools_keep_to_their_memory),
        cmocka_unit_test(broken_rows_are_left_out_as_in_memory),
        cmocka_unit_test(a_broken_row_is_named),
        cmocka_unit_test(a_wrong_label_is_named),
        cmocka_unit_test(files_that_change_are_named),
        cmocka_unit_test(what_is_packed_and_cut_off_is_named),
        cmocka_unit_test(a_file_that_vanishes_is_named),
        cmocka_unit_test(files_with_other_rows_are_others),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
