/* bench_table.c - rows of a table far beyond the caches, against the rate at which this machine
 * reads random cache lines, measured in the same run.
 *
 *   gather   each line of a row, and nothing else, comes from memory
 *   apply    the same of values and slots; they are written back, too
 *
 * Rows are made by the first calls, so small pages and what becomes of them are part of the figures
 * only where they say so ("first").
 *
 * usage: bench_table [MILLION_ROWS [WIDTH [ROWS_OF_A_BATCH]]], else 12, 16, 26624
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "core/base/random.h"
#include "core/train/variables/table.h"
#include "kernels/device.h"

enum { BATCHES = 64, LINE_FLOATS = 16, AHEAD = 32, SECOND_CACHE = 2, ARRAYS = 2, ROUNDS = 7 };
static const double WINDOW_NS = 1e8;
static const double GOAL = 0.6;

static void must(err e)
{
    if (e == OK) return;
    fprintf(stderr, "%s\n", error_text());
    exit(1);
}

struct bench {
    int64_t rows, width, count; /* count: of a batch, before what is there twice is left out */
    int64_t *ids[BATCHES], distinct[BATCHES];
    float *gradients; /* [count, width] */
    struct table *table;
    struct juncture now;
};

static int by_id(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void draw_batches(struct bench *b)
{
    for (int k = 0; k < BATCHES; k++) {
        int64_t *ids = b->ids[k] = malloc((size_t)b->count * sizeof *ids), distinct = 0;
        for (int64_t i = 0; i < b->count; i++)
            ids[i] = (int64_t)(random_u64((uint64_t)k, (uint64_t)i) % (uint64_t)b->rows);
        qsort(ids, (size_t)b->count, sizeof *ids, by_id);
        for (int64_t i = 0; i < b->count; i++)
            if (distinct == 0 || ids[distinct - 1] != ids[i]) ids[distinct++] = ids[i];
        b->distinct[k] = distinct;
    }
}

/* Of this process: who else runs on the machine counts less */
static double now_ns(void)
{
    return (double)clock() * (1e9 / CLOCKS_PER_SEC);
}

/* Nanoseconds for each row of the batches, again and again for a tenth of a second */
static double per_row_ns(struct bench *b, void (*body)(struct bench *, int batch))
{
    const double begin = now_ns();
    int64_t rows = 0;
    for (int k = 0; now_ns() - begin < WINDOW_NS; k = (k + 1) % BATCHES) {
        body(b, k);
        rows += b->distinct[k];
    }
    return (now_ns() - begin) / (double)rows;
}

/* ---- the limit: one number of each of as many lines, in the order of the rows ---- */

static float *lines; /* [rows, width] */
static volatile float kept;

static void read_lines(struct bench *b, int batch)
{
    const int64_t *ids = b->ids[batch], n = b->distinct[batch];
    float sum = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i + AHEAD < n) __builtin_prefetch(lines + ids[i + AHEAD] * b->width, 0, SECOND_CACHE);
        sum += lines[ids[i] * b->width];
    }
    kept = sum;
}

static void open_lines(const struct bench *b)
{
    const size_t bytes = (size_t)(b->rows * b->width) * sizeof(float);
    lines = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (lines == MAP_FAILED) must(fail(ERR_MEMORY, "no memory for %zu bytes", bytes));
    madvise(lines, bytes, MADV_HUGEPAGE);
    memset(lines, 1, bytes);
}

/* ---- the table ---- */

static void gather(struct bench *b, int batch)
{
    table_gather(b->table, b->ids[batch], b->distinct[batch], b->gradients);
}

static void apply(struct bench *b, int batch)
{
    must(table_apply(b->table, b->ids[batch], b->distinct[batch], b->gradients, NULL, &b->now));
}

static void step(struct bench *b, int batch)
{
    gather(b, batch);
    apply(b, batch);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Medians; what else the machine does changes from round to round, so each has its own limit. */
static void compare(struct bench *b, const char *name, void (*body)(struct bench *, int),
                    int arrays)
{
    const double lines_of_row = (double)((b->width + LINE_FLOATS - 1) / LINE_FLOATS * arrays);
    double ns[ROUNDS], limits[ROUNDS], ratios[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        limits[i] = per_row_ns(b, read_lines);
        ns[i] = per_row_ns(b, body);
        ratios[i] = limits[i] * lines_of_row / ns[i];
    }
    qsort(ns, ROUNDS, sizeof *ns, by_size);
    qsort(limits, ROUNDS, sizeof *limits, by_size);
    qsort(ratios, ROUNDS, sizeof *ratios, by_size);
    const double ratio = ratios[ROUNDS / 2];
    printf("%-22s %8.1f ns a row, a line %5.1f ns: %5.2f of the lines  %s\n", name, ns[ROUNDS / 2],
           limits[ROUNDS / 2], ratio, ratio >= GOAL ? "ok" : "NOT");
}

static void fill_all(struct bench *b)
{
    enum { PIECE = 4096 };
    float *piece = calloc((size_t)(PIECE * b->width), sizeof *piece);
    for (int array = 0; array < ARRAYS; array++)
        for (int64_t at = 0; at < b->rows; at += PIECE)
            table_write(b->table, array, at, b->rows - at < PIECE ? b->rows - at : PIECE, piece);
    free(piece);
}

static void bench_table(struct bench *b)
{
    const double begin = now_ns();
    step(b, 0);
    printf("%-22s %8.1f ns a row\n", "gather, apply, first",
           (now_ns() - begin) / (double)b->distinct[0]);
    fill_all(b);
    compare(b, "gather", gather, 1);
    compare(b, "apply adagrad", apply, ARRAYS);
}

int main(int argc, char **argv)
{
    cpu_environment_prepare(argv);
    struct device device;
    struct arena arena = {0};
    struct bench b = {.rows = (int64_t)((argc > 1 ? atof(argv[1]) : 12) * 1e6),
                      .width = argc > 2 ? atoi(argv[2]) : 16,
                      .count = argc > 3 ? atoi(argv[3]) : 26624,
                      .now = {.rate = 0.01f}};
    must(device_open_cpu(1, NULL, &device));
    b.gradients = calloc((size_t)(b.count * b.width), sizeof *b.gradients);
    draw_batches(&b);
    open_lines(&b);

    const struct kind *adagrad = kinds_find(&optimizer_kinds, "adagrad");
    const struct kind *zeros = kinds_find(&initializer_kinds, "zeros");
    const struct updater by = {.optimizer = adagrad->descriptor,
                               .attributes = arena_new(&arena, adagrad->object->size),
                               .slot_count = 1};
    const struct table_description is = {.name = "bench",
                                         .shape = {2, {b.rows, b.width}},
                                         .length = b.rows,
                                         .initializer = zeros->descriptor};
    must(table_open(&is, &by, &device, &b.table));
    bench_table(&b);
    table_close(b.table);
    for (int k = 0; k < BATCHES; k++) free(b.ids[k]);
    free(b.gradients);
    arena_free(&arena);
    device_close(&device);
    return 0;
}
