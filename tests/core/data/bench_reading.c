/* How fast files become columns on one core, beside a bare loop over the same bytes in memory that
 * only finds where lines or records end.
 *
 *     bench_reading [MEGABYTES [FORMAT]]
 *
 * Files are made in a folder of their own below TMPDIR, and read from the page cache.
 */
#include "tests/core/data/support.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/crc32c.h"
#include "core/base/proto.h"

enum { WORDS = 26, NUMBERS = 13, PAIRS = 14, TURNS = 3 };

static uint64_t drawn = 1;

static uint64_t draw(uint64_t below)
{
    drawn = drawn * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (drawn >> 33) % below;
}

__attribute__((format(printf, 2, 3))) static void put_text(struct buffer *b, const char *format,
                                                           ...)
{
    char text[128];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    buffer_put(b, text, (size_t)length);
}

/* ---- rows ---- */

static void put_csv(struct buffer *b)
{
    put_text(b, "%" PRIu64 ",%" PRIu64 ",occupation-%" PRIu64, draw(90), draw(100000), draw(500));
    put_text(b, ",education-%" PRIu64 ",country-%" PRIu64, draw(16), draw(100));
    put_text(b, ",%" PRIu64 "\n", draw(2));
}

static void put_libsvm(struct buffer *b)
{
    put_text(b, "%" PRIu64, draw(2));
    for (uint64_t i = 0; i < PAIRS; i++)
        put_text(b, " %" PRIu64 ":0.%04" PRIu64, 1 + i * 70000 + draw(70000), draw(10000));
    buffer_byte(b, '\n');
}

static size_t open_feature(struct buffer *b, size_t begin[2], const char *name, int list)
{
    begin[0] = proto_open(b, 1);
    proto_string(b, 1, name);
    begin[1] = proto_open(b, 2);
    return proto_open(b, list);
}

static void close_feature(struct buffer *b, const size_t begin[2], size_t list)
{
    proto_close(b, list);
    proto_close(b, begin[1]);
    proto_close(b, begin[0]);
}

static void put_features(struct buffer *b)
{
    char name[16];
    size_t begin[2], list;
    list = open_feature(b, begin, "label", 3);
    proto_packed_varints(b, 1, (int64_t[]){(int64_t)draw(2)}, 1);
    close_feature(b, begin, list);
    for (int i = 1; i <= NUMBERS; i++) {
        snprintf(name, sizeof name, "I%d", i);
        list = open_feature(b, begin, name, 2);
        proto_packed_floats(b, 1, (double[]){(double)draw(1000)}, 1);
        close_feature(b, begin, list);
    }
    for (int i = 1; i <= WORDS; i++) {
        char word[16];
        snprintf(name, sizeof name, "C%d", i);
        snprintf(word, sizeof word, "%08" PRIx64, draw(1 << 30));
        list = open_feature(b, begin, name, 1);
        proto_bytes(b, 1, word, 8);
        close_feature(b, begin, list);
    }
}

static void put_record(struct buffer *b)
{
    static struct buffer example;
    buffer_clear(&example);
    const size_t features = proto_open(&example, 1);
    put_features(&example);
    proto_close(&example, features);
    const size_t head = b->used;
    buffer_fixed64(b, example.used);
    buffer_fixed32(b, crc32c_mask(crc32c(b->at + head, 8)));
    buffer_put(b, example.at, example.used);
    buffer_fixed32(b, crc32c_mask(crc32c(example.at, example.used)));
}

/* ---- bare loops ---- */

static int64_t count_lines(const uint8_t *at, const uint8_t *end)
{
    int64_t count = 0;
    for (; at && at < end; count++) {
        at = memchr(at, '\n', (size_t)(end - at));
        if (at) at++;
    }
    return count;
}

static int64_t count_records(const uint8_t *at, const uint8_t *end)
{
    int64_t count = 0;
    uint64_t length;
    for (; at < end; at += length + 16, count++) memcpy(&length, at, 8);
    return count;
}

/* ---- measuring ---- */

/* Of this process, so that others on the machine count for little */
static uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

struct work {
    const char *name;
    double goal; /* MB/s */
    void (*put)(struct buffer *);
    int64_t (*count)(const uint8_t *at, const uint8_t *end);
    const char *head, *source;
};

static double seconds_of_bare(const struct work *w, const struct buffer *b)
{
    double best = 1e9;
    static volatile int64_t seen;
    for (int i = 0; i < TURNS; i++) {
        const uint64_t begin = cpu_ns();
        seen = w->count(b->at, b->at + b->used);
        const double seconds = (double)(cpu_ns() - begin) / 1e9;
        if (seconds < best) best = seconds;
    }
    return seen ? best : 0;
}

static double seconds_of_reading(const struct work *w)
{
    double best = 1e9;
    for (int i = 0; i < TURNS; i++) {
        struct dataset d;
        const uint64_t begin = cpu_ns();
        source_open_ok(w->source, &d);
        const double seconds = (double)(cpu_ns() - begin) / 1e9;
        if (seconds < best) best = seconds;
        dataset_close(&d);
    }
    return best;
}

static void measure(const struct work *w, size_t bytes)
{
    struct buffer b = {0};
    buffer_put(&b, w->head, strlen(w->head));
    while (b.used < bytes) w->put(&b);
    file_write("rows", b.at, b.used);
    const double size = (double)b.used / 1e6;
    const double rate = size / seconds_of_reading(w);
    printf("%-10s %7.0f MB/s, goal %4.0f %-4s bare %7.0f MB/s\n", w->name, rate, w->goal,
           rate >= w->goal ? "met," : "NOT,", size / seconds_of_bare(w, &b));
    buffer_drop(&b);
}

static const struct work all[] = {
    {"csv", 200, put_csv, count_lines, "age,gain,occupation,education,country,y\n",
     "{'format': 'csv', 'file': 'rows', 'label': 'y'}, 'columns': ["
     "{'column': 'hash', 'name': 'occupation', 'buckets': 1000},"
     "{'column': 'hash', 'name': 'education', 'buckets': 1000},"
     "{'column': 'hash', 'name': 'country', 'buckets': 1000},"
     "{'column': 'crossed', 'name': 'one', 'keys': ['occupation', 'education'], 'buckets': 10000},"
     "{'column': 'crossed', 'name': 'two', 'keys': ['occupation', 'country'], 'buckets': 10000}],"
     "'batch_size': 1"},
    {"libsvm", 250, put_libsvm, count_lines, "",
     "{'format': 'libsvm', 'file': 'rows'}, 'columns': [{'column': 'ids', 'name': 'features',"
     "'rows': 1000000, 'weights': true, 'max': 14}], 'batch_size': 1"},
    {"tfrecord", 200, put_record, count_records, "", NULL},
};

/* Of all 39 features */
static char *tfrecord_source(void)
{
    static char text[8192];
    int used = snprintf(text, sizeof text,
                        "{'format': 'tfrecord', 'file': 'rows', 'label': 'label'}, "
                        "'batch_size': 1, 'columns': [");
    for (int i = 1; i <= NUMBERS; i++)
        used += snprintf(text + used, sizeof text - (size_t)used,
                         "{'column': 'numeric', 'name': 'I%d'},", i);
    for (int i = 1; i <= WORDS; i++)
        used += snprintf(text + used, sizeof text - (size_t)used,
                         "{'column': 'hash', 'name': 'C%d', 'buckets': 100000}%s", i,
                         i < WORDS ? "," : "]");
    return text;
}

int main(int argc, char **argv)
{
    const size_t bytes = (size_t)(argc > 1 ? atoi(argv[1]) : 32) << 20;
    if (folder_make(NULL)) return 1;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct work work = all[i];
        if (!work.source) work.source = tfrecord_source();
        if (argc < 3 || strcmp(argv[2], work.name) == 0) measure(&work, bytes);
    }
    return folder_remove(NULL) ? 1 : 0;
}
