/* bench_restore.c - a growing table from a checkpoint, against a plain read of the same file.
 *
 * For each size a checkpoint of so many keys with rows and slots of Adagrad is written and
 * restored. The file is read from the disk each time where the system lets go of what it keeps of
 * it, by turns: into one buffer, into memory that is kept, and by who restores; medians are
 * compared, and what each takes of the processor, which others may use meanwhile. The time of a row
 * must not grow with their number.
 *
 * usage: bench_restore [FOLDER [MILLION_KEYS ...]], else . 1 10; by hand 60, which takes 9 GB of
 * disk and 10 GB of memory
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/train/checkpoint/shard.h"
#include "core/train/variables/aside.h"
#include "core/train/variables/growing/growing.h"
#include "core/train/variables/growing/keys.h"
#include "kernels/device.h"

enum { WIDTH = 16, PATH_MAX_BYTES = 4096, READ_BYTES = 1 << 20, TURNS = 5 };
static const double GOAL_DISK = 0.7, GOAL_LINEAR = 1.5;

static void must(err e)
{
    if (e == OK) return;
    fprintf(stderr, "%s\n", error_text());
    exit(1);
}

struct bench {
    struct device device;
    struct arena arena;
    struct updater by;
    struct slice slice;
    struct shard_table table;
    struct shard shard;
    int64_t ledger[LEDGER_COLUMNS];
};

static void open_table(struct bench *b)
{
    static const struct growth growth = {.admit_after = 1};
    const struct kind *zeros = kinds_find(&initializer_kinds, "zeros");
    const struct table_description is = {.name = "bench",
                                         .shape = {2, {1, WIDTH}},
                                         .length = KEYS,
                                         .initializer = zeros->descriptor,
                                         .growth = &growth};
    must(table_open(&is, &b->by, &b->device, &b->table.rows));
}

static void open_bench(struct bench *b)
{
    const struct kind *adagrad = kinds_find(&optimizer_kinds, "adagrad");
    *b = (struct bench){
        .slice = {
            .name = "bench", .shape = {2, {1, WIDTH}}, .length = KEYS, .count = WIDTH, .parts = 1}};
    must(device_open_cpu(1, NULL, &b->device));
    b->by = (struct updater){.optimizer = adagrad->descriptor,
                             .attributes = arena_new(&b->arena, adagrad->object->size),
                             .slot_count = 1};
    b->table.slice = &b->slice;
    b->shard = (struct shard){.ps_count = 1,
                              .slot_names = {{1, {"Adagrad"}}},
                              .tables = &b->table,
                              .table_count = 1,
                              .global_step = 1,
                              .workers = 1,
                              .ledger = b->ledger};
}

static int by_key(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void fill(struct bench *b, int64_t count)
{
    struct growing *g = table_growing(b->table.rows);
    int64_t *keys = malloc((size_t)count * sizeof *keys), number;
    if (!keys) must(fail(ERR_MEMORY, "no memory for %lld keys", (long long)count));
    for (int64_t i = 0; i < count; i++) keys[i] = key_of_id(i);
    qsort(keys, (size_t)count, sizeof *keys, by_key);
    must(growing_restore_begin(g, 1, count, count, -1));
    for (int64_t i = 0; i < count; i++)
        must(growing_restore(g, &(struct key_state){keys[i], 0, 0}, &number));
    growing_restore_end(g);
    free(keys);
}

static void save(struct bench *b, const char *prefix)
{
    struct aside_room room;
    aside_room_open(&room);
    aside_room_begin(&room);
    table_save_begin(b->table.rows, &room);
    must(shard_write(&b->shard, prefix));
    table_save_end(b->table.rows);
    aside_room_close(&room);
}

/* So that it comes from the disk */
static int open_cold(const char *path)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) must(fail(ERR_IO, "%s: cannot be read", path));
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    return file;
}

/* Of the processor, whatever else runs on the machine */
struct used {
    double user_s, system_s;
};

static struct used used_until_now(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (struct used){
        (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec * 1e-6,
        (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec * 1e-6,
    };
}

static void add_used(struct used *sum, struct used since)
{
    const struct used now = used_until_now();
    sum->user_s += now.user_s - since.user_s;
    sum->system_s += now.system_s - since.system_s;
}

/* What is kept lies in memory of its own, which the system clears: no restore takes less. */
static double read_file(const char *path, int64_t bytes, bool keeps)
{
    static char buffer[READ_BYTES];
    const int file = open_cold(path);
    const uint64_t begin = clock_ns();
    const size_t room = keeps ? (size_t)bytes : sizeof buffer;
    char *kept = keeps
                     ? mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                     : buffer;
    if (kept == MAP_FAILED) must(fail(ERR_MEMORY, "no memory for %s", path));
    if (keeps) madvise(kept, room, MADV_HUGEPAGE);
    for (int64_t at = 0; at < bytes;) {
        const ssize_t got = pread(file, keeps ? kept + at : kept, READ_BYTES, at);
        if (got <= 0) must(fail(ERR_IO, "%s: cannot be read", path));
        at += got;
    }
    const double s = (double)(clock_ns() - begin) * 1e-9;
    if (keeps) munmap(kept, room);
    close(file);
    return s;
}

static int64_t size_of(const char *path)
{
    struct stat is;
    if (stat(path, &is)) must(fail(ERR_IO, "%s: cannot be looked at", path));
    return is.st_size;
}

static double restore(struct bench *b, const char *prefix, const char *path, int64_t count)
{
    struct bundle *bundle;
    close(open_cold(path));
    open_table(b);
    const uint64_t begin = clock_ns();
    must(bundle_open(prefix, &bundle));
    must(shard_read(bundle, NULL, &b->shard));
    bundle_close(bundle);
    const double s = (double)(clock_ns() - begin) * 1e-9;
    if (growing_rows(table_growing(b->table.rows)) != count) must(fail(ERR_INPUT, "rows are lost"));
    table_close(b->table.rows);
    return s;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double times[TURNS])
{
    qsort(times, TURNS, sizeof *times, by_size);
    return times[TURNS / 2];
}

/* Seconds of each turn, and what of the processor they took */
struct times {
    double s[TURNS];
    struct used used;
};

static void print(const char *what, struct times *of, double goal_s)
{
    const double s = median(of->s);
    printf(
        "       %-12s %8.2f s, of the processor %6.2f s and the system %6.2f; restored at %5.2f of "
        "its speed\n",
        what, s, of->used.user_s / TURNS, of->used.system_s / TURNS, s / goal_s);
}

/* Nanoseconds of a row */
static double measure(struct bench *b, const char *folder, int64_t count)
{
    enum { PLAIN, KEPT, RESTORED, WAYS };
    char prefix[PATH_MAX_BYTES], path[PATH_MAX_BYTES + 32];
    struct times times[WAYS] = {0};
    snprintf(prefix, sizeof prefix, "%s/bench_restore", folder);
    snprintf(path, sizeof path, "%s.data-00000-of-00001", prefix);
    open_table(b);
    fill(b, count);
    save(b, prefix);
    table_close(b->table.rows);
    const int64_t bytes = size_of(path);
    for (int i = 0; i < WAYS * TURNS; i++) {
        const int way = i % WAYS;
        const struct used before = used_until_now();
        times[way].s[i / WAYS] =
            way == RESTORED ? restore(b, prefix, path, count) : read_file(path, bytes, way == KEPT);
        add_used(&times[way].used, before);
    }
    must(bundle_remove(prefix));
    const double plain_s = median(times[PLAIN].s), s = median(times[RESTORED].s);
    const double ns = s * 1e9 / (double)count;
    printf("%6.1f million keys, %6.2f GB: %6.1f ns a row, %5.2f of the disk's speed  %s\n",
           (double)count * 1e-6, (double)bytes * 1e-9, ns, plain_s / s,
           plain_s / s >= GOAL_DISK ? "ok" : "NOT");
    print("restored", &times[RESTORED], s);
    print("read", &times[PLAIN], s);
    print("read, kept", &times[KEPT], s);
    return ns;
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {"1", "10"};
    cpu_environment_prepare(argv);
    const char *folder = argc > 1 ? argv[1] : ".";
    const int count = argc > 2 ? argc - 2 : 2;
    struct bench b;
    double first = 0, ns = 0;
    open_bench(&b);
    for (int i = 0; i < count; i++) {
        ns = measure(&b, folder, (int64_t)(atof(argc > 2 ? argv[2 + i] : usual[i]) * 1e6));
        if (i == 0) first = ns;
    }
    printf("a row of the last beside one of the first: %5.2f  %s\n", ns / first,
           ns / first <= GOAL_LINEAR ? "ok" : "NOT");
    arena_free(&b.arena);
    device_close(&b.device);
    return 0;
}
